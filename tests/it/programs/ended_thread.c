/*
 * Ends a thread that waits in open(2) and prints what it cleans up on its way out.
 *
 *   cancel PIPE
 *
 * Where the stack can be read from inside the call, both handlers run and the frames are many.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path;

static void say(const char *text)
{
    if (write(1, text, strlen(text)) < 0)
        _exit(2);
}

static void pushed(void *unused)
{
    (void)unused;
    say("the pushed handler\n");
}

static void attached(int *unused)
{
    (void)unused;
    say("the end of a variable\n");
}

static void frames(int signal)
{
    void *all[64];
    (void)signal;
    say(backtrace(all, 64) > 5 ? "many frames\n" : "few frames\n");
}

static __attribute__((noinline)) int wait_in_open(void)
{
    int fd = open(path, O_WRONLY);
    say("opened\n");
    return fd;
}

static void *body(void *unused)
{
    __attribute__((cleanup(attached))) int variable = 0;
    pthread_cleanup_push(pushed, NULL);
    variable = wait_in_open();
    pthread_cleanup_pop(0);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *result, *first[1];
    backtrace(first, 1);
    signal(SIGUSR1, frames);
    if (argc != 2 || mkfifo(path = argv[1], 0600) < 0 || pthread_create(&thread, NULL, body, NULL))
        return 2;
    usleep(100000);
    pthread_kill(thread, SIGUSR1);
    usleep(100000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    say(result == PTHREAD_CANCELED ? "cancelled\n" : "returned\n");
    return 0;
}
