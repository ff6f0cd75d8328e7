/* Exchanges two names, again and again, until its input ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    struct pollfd input = {0, POLLIN, 0};
    if (count < 3) return 99;
    while (poll(&input, 1, 0) == 0) {
        for (int i = 0; i < 101; i++) renameat2(AT_FDCWD, words[1], AT_FDCWD, words[2], RENAME_EXCHANGE);
        /* Half of the time each name leads to each of them, so that a run can begin, too. */
        usleep(200);
    }
    return 0;
}
