/* Cancels a thread that waits in opening a FIFO, and says what of its cleaning up was done. C, and C++. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *fifo;
static int how;
static volatile int cleaned, destroyed = 1;

#ifdef __cplusplus
struct Guard {
    Guard() { destroyed = 0; }
    ~Guard() { destroyed = 1; }
};
#endif

static void clean(void *unused) {
    (void)unused;
    cleaned = 1;
}

static void *waiting(void *unused) {
#ifdef __cplusplus
    Guard guard;
#endif
    pthread_cleanup_push(clean, 0);
    if (how == 0) open(fifo, O_WRONLY);
    else if (how == 1) openat(AT_FDCWD, fifo, O_WRONLY | O_CREAT, 0600);
    else creat(fifo, 0600);
    pthread_cleanup_pop(0);
    return unused;
}

int main(int count, char **words) {
    if (count < 2) return 99;
    fifo = words[1];
    for (how = 0; how < 3; how++) {
        pthread_t thread;
        void *result;
        cleaned = 0;
        pthread_create(&thread, 0, waiting, 0);
        usleep(150000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("%d %d %d\n", result == PTHREAD_CANCELED, cleaned, destroyed);
    }
    return 0;
}
