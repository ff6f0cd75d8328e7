/* Makes one call, or a few of a kind, and says of each `done` or its errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
enum { OPEN_TREE_ATTR = 467, CREATE = 6 };

static long say(long result) {
    if (result < 0) printf("%d\n", errno);
    else puts("done");
    fflush(stdout);
    return result;
}

static int enter(void) { return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP); }

/* The calls of the newer mount interface. Their arguments are worth nothing: EPERM comes first. */
static void mounting(void) {
    char attributes[32] = {0};
    say(syscall(SYS_fsopen, "tmpfs", 0));
    say(syscall(SYS_fsconfig, -1, CREATE, 0, 0, 0));
    say(syscall(SYS_fsmount, -1, 0, 0));
    say(syscall(SYS_fspick, AT_FDCWD, "/", 0));
    say(syscall(SYS_open_tree, AT_FDCWD, "/", 1));
    say(syscall(OPEN_TREE_ATTR, AT_FDCWD, "/", 1, attributes, sizeof attributes));
    say(syscall(SYS_move_mount, AT_FDCWD, "/", AT_FDCWD, "/", 0));
    say(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, attributes, sizeof attributes));
}

/* A control group reached through a mount of one's own, which no other mount covers. */
static void control_group(const char *path) {
    enter();
    int context = syscall(SYS_fsopen, "cgroup2", 0);
    syscall(SYS_fsconfig, context, CREATE, 0, 0, 0);
    int root = syscall(SYS_fsmount, context, 0, 0);
    say(fchmodat(root, path, 0601, 0));
    say(mkdirat(root, "ringfence-test-new", 0700));
}

/* The user's keyring: two ways in, and two to find what is there. */
static void keys(void) {
    long user = -4, session = -3;
    say(syscall(SYS_add_key, "user", "ringfence-test", "x", 1, session));
    say(syscall(SYS_keyctl, 0, user, 1));
    say(syscall(SYS_keyctl, 10, user, "user", "ringfence:accelerator", 0));
    say(syscall(SYS_request_key, "user", "ringfence:accelerator", 0, 0));
}

static void queue(const char *what, const char *name) {
    if (!strcmp(what, "make")) say(syscall(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL, 0600, 0));
    if (!strcmp(what, "change")) {
        int queue = say(syscall(SYS_mq_open, name, O_RDONLY, 0, 0));
        say(fchmod(queue, 0601));
    }
    if (!strcmp(what, "remove")) say(syscall(SYS_mq_unlink, name));
    if (!strcmp(what, "look")) {
        struct stat about;
        int queue = syscall(SYS_mq_open, name, O_RDONLY, 0, 0);
        if (queue < 0 || fstat(queue, &about) < 0) say(-1);
        else printf("%o\n", about.st_mode & 0777);
    }
}

/* A path in memory that is hard to look at. */
static void hidden(const char *how, const char *path) {
    char *page;
    if (!strcmp(how, "secret")) {
        int memory = syscall(SYS_memfd_secret, 0);
        if (memory < 0 || ftruncate(memory, 4096) < 0) {
            puts("none");
            return;
        }
        page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    } else {
        page = mmap(0, 4096, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (page == MAP_FAILED) exit(9);
    strcpy(page, path);
    say(syscall(SYS_openat, AT_FDCWD, page, O_CREAT | O_WRONLY, 0644));
}

/* The limits of the runner: no more descriptors, no more bytes in files, no more time. */
static void limits(pid_t runner) {
    int kinds[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS};
    for (int i = 0; i < 4; i++) {
        struct rlimit least = {1, 1};
        say(syscall(SYS_prlimit64, runner, kinds[i], &least, 0));
    }
}

static void bind_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    say(bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address));
}

static void open_how(const char *directory, const char *path, unsigned long flags, unsigned long resolve) {
    struct open_how how = {.flags = flags, .resolve = resolve, .mode = flags & O_CREAT ? 0644 : 0};
    int base = open(directory, O_PATH | O_DIRECTORY);
    say(syscall(SYS_openat2, base, path, &how, sizeof how));
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    const char *a = count > 2 ? words[2] : "", *b = count > 3 ? words[3] : "";
    struct timespec omitted[] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    if (!strcmp(what, "mounting")) enter(), mounting();
    else if (!strcmp(what, "cgroup")) control_group(a);
    else if (!strcmp(what, "keys")) keys();
    else if (!strcmp(what, "queue")) queue(a, b);
    else if (!strcmp(what, "hidden")) hidden(a, b);
    else if (!strcmp(what, "limits")) limits(atoi(a));
    else if (!strcmp(what, "bind")) bind_to(a);
    else if (!strcmp(what, "link-descriptor")) say(linkat(open(a, O_RDONLY), "", AT_FDCWD, b, AT_EMPTY_PATH));
    else if (!strcmp(what, "read-how")) open_how(".", a, O_RDONLY, 0);
    else if (!strcmp(what, "root-how")) open_how(a, b, O_CREAT | O_WRONLY, RESOLVE_IN_ROOT);
    else if (!strcmp(what, "omit")) say(utimensat(AT_FDCWD, a, omitted, 0));
    else if (!strcmp(what, "open")) say(syscall(SYS_openat, AT_FDCWD, a, O_CREAT | O_WRONLY, 0644));
    else if (!strcmp(what, "unlink")) say(unlink(a));
    else if (!strcmp(what, "truncate")) say(truncate(a, 0));
    else if (!strcmp(what, "chmod")) say(chmod(a, 0601));
    else if (!strcmp(what, "symlink")) say(symlink("x", a));
    else if (!strcmp(what, "link")) say(link(a, b));
    else if (!strcmp(what, "rename")) say(rename(a, b));
    else if (!strcmp(what, "mkfifo")) say(mkfifo(a, 0600));
    else return 99;
    return 0;
}
