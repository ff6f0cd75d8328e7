/*
 * A thread makes a name mean what lies inside and then what lies outside, again and again, while this
 * one uses it. Both have a file `f`. Ends after ROUNDS uses, and not before 40 turns.
 *
 *   race text|link|directory|descriptor|cwd  contents|names|metadata  ROUNDS INSIDE OUTSIDE
 *
 * INSIDE and OUTSIDE are directories. Links are made in the working directory, and it is what `cwd`
 * changes.
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

static const char *kind, *side[2];
static char file[4096], made[4096];
static int base[2], shared = 77;
static atomic_bool over;
static atomic_int turns;

static void turn(int to) {
    switch (*kind) {
    case 't':
        memcpy(file, side[to], strlen(side[to]));
        memcpy(made, side[to], strlen(side[to]));
        break;
    case 'l':
    case 'd':
        unlink("next");
        if (symlink(side[to], "next") || rename("next", "way")) perror("link");
        break;
    case 'f': dup2(base[to], shared); break;
    case 'c':
        if (fchdir(base[to])) perror("fchdir");
        break;
    }
}

static void *flip(void *unused) {
    for (unsigned n = 0; !over; n++, turns++) turn(n & 1);
    return unused;
}

static void use(const char *what, int round) {
    int relative = *kind == 'f' ? shared : AT_FDCWD;
    if (!strcmp(what, "contents")) {
        int fd = openat(relative, file, O_WRONLY);
        if (fd >= 0 && write(fd, "x", 1) != 1) perror("write");
        close(fd);
        truncate(file, round & 3);
    } else if (!strcmp(what, "names")) {
        mkdirat(relative, made, 0755);
        unlinkat(relative, made, AT_REMOVEDIR);
        symlinkat("x", relative, made);
        unlinkat(relative, made, 0);
    } else {
        fchmodat(relative, file, 0600 | (round & 1) << 6, 0);
        setxattr(file, "user.race", "1", 1, 0);
        utimensat(relative, file, 0, 0);
        int fd = openat(relative, file, O_RDONLY);
        fchmod(fd, 0600 | (round & 1) << 6);
        close(fd);
    }
}

/* What would not be as it was if something outside had been hit. */
static long outside_changes(void) {
    struct stat file_now, directory_now;
    if (fstatat(base[1], "f", &file_now, 0) || fstatat(base[1], ".", &directory_now, 0)) return 0;
    return file_now.st_ctim.tv_sec * 31 + file_now.st_ctim.tv_nsec + directory_now.st_ctim.tv_sec * 17 +
           directory_now.st_ctim.tv_nsec;
}

int main(int count, char **words) {
    if (count < 6) return 99;
    kind = strcmp(words[1], "descriptor") ? words[1] : "fd";
    for (int i = 0; i < 2; i++) {
        /* Of one length, so that a text that is half of each ends where it should. */
        size_t length = strlen(words[4]) > strlen(words[5]) ? strlen(words[4]) : strlen(words[5]);
        char *padded = malloc(length + 1);
        memset(padded, '/', length);
        padded[length] = 0;
        memcpy(padded, words[4 + i], strlen(words[4 + i]));
        side[i] = padded;
        base[i] = open(side[i], O_PATH | O_DIRECTORY);
        if (base[i] < 0) return 98;
    }
    int text = *kind == 't', link = *kind == 'l' || *kind == 'd';
    snprintf(file, sizeof file, "%s%sf", text ? side[0] : link ? "way" : "", text || link ? "/" : "");
    snprintf(made, sizeof made, "%s%snew", text ? side[0] : link ? "way" : "", text || link ? "/" : "");
    turn(0);
    pthread_t thread;
    if (pthread_create(&thread, 0, flip, 0)) return 97;
    long before = outside_changes();
    /* Not before the other has begun as well, and where nobody confines it, not before it has hit. */
    for (int round = atoi(words[3]); round > 0 || turns < 40 || (getenv("BARE") && before == outside_changes()); round--)
        use(words[2], round);
    over = 1;
    pthread_join(thread, 0);
    return 0;
}
