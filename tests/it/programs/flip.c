/*
 * A thread makes a path mean one file and then the other, FLIPS times, while this one changes
 * whatever the path means at the moment. Prints how often each of the changes worked.
 *
 *   flip memory FLIPS INSIDE OUTSIDE   the text of the path changes: both are of one length
 *   flip link FLIPS INSIDE OUTSIDE     the path is the link `cur`, which leads to one or the other
 *   flip directory FLIPS INSIDE OUTSIDE   a directory on the way is a link
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static char path[4096];
static const char *kind, *target[2];
static atomic_bool over;
static long flips;

static void turn(int side)
{
    if (*kind == 'm') {
        /* One byte differs, so every moment has a whole path. */
        for (size_t i = 0; path[i]; i++)
            if (((volatile char *)path)[i] != target[side][i])
                ((volatile char *)path)[i] = target[side][i];
        usleep(10);
        return;
    }
    unlink("next");
    if (symlink(target[side], "next") < 0 || rename("next", "cur") < 0)
        perror("the link");
}

static void *flip(void *unused)
{
    for (long n = 0; n < flips; n++)
        turn((int)(n & 1));
    turn(0);
    over = 1;
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    kind = argv[1];
    flips = atol(argv[2]);
    target[0] = argv[3];
    target[1] = argv[4];
    strcpy(path, *kind == 'm' ? target[0] : *kind == 'l' ? "cur" : "cur/f");
    turn(0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, flip, NULL))
        return 2;
    long chmods = 0, opens = 0, stamps = 0, names = 0, tries = 0;
    for (unsigned mode = 0; !over; mode ^= 1, tries++) {
        chmods += !chmod(path, 0600 | mode << 6);
        int fd = open(path, O_WRONLY | O_TRUNC);
        if (fd >= 0 && write(fd, "x", 1) == 1)
            opens++;
        close(fd);
        stamps += !utimensat(AT_FDCWD, path, NULL, 0);
        names += !setxattr(path, "user.b", "1", 1, 0);
    }
    pthread_join(thread, NULL);
    printf("%ld %ld %ld %ld of %ld\n", chmods, opens, stamps, names, tries);
    return 0;
}
