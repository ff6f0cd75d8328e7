/* Many threads that open long chains of links, for as long as they live. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 48, LINKS = 38 };

static void *chase(void *last) {
    for (;;) syscall(SYS_openat, AT_FDCWD, last, O_CREAT | O_WRONLY, 0644);
    return 0;
}

int main(void) {
    static char target[4000], name[16];
    for (int i = 0; i < LINKS; i++) {
        target[0] = 0;
        for (int at = 0; at < 3900; at += 2) memcpy(target + at, "./", 3);
        sprintf(target + 3900, "l%d", i);
        sprintf(name, "l%d", i + 1);
        if (symlink(target, name) < 0) return 98;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, chase, name);
    }
    puts("busy");
    fflush(stdout);
    for (;;) pause();
}
