/*
 * Asks io_uring for one thing, and prints `done` or the errno. `thread` before it: a thread of the
 * kernel takes the request.
 *
 *   ring [thread] create|remove|mkdir|symlink PATH
 *   ring [thread] rename|link OLD NEW
 *   ring [thread] xattr PATH
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int end(int error) {
    if (error) printf("%d\n", error);
    else puts("done");
    return 0;
}

static struct io_uring_sqe request(char **words) {
    struct io_uring_sqe it = {.fd = AT_FDCWD, .addr = (unsigned long)words[1]};
    const char *what = words[0];
    if (!strcmp(what, "create")) {
        it.opcode = IORING_OP_OPENAT;
        it.open_flags = O_CREAT | O_WRONLY;
        it.len = 0644;
    } else if (!strcmp(what, "remove")) {
        it.opcode = IORING_OP_UNLINKAT;
    } else if (!strcmp(what, "mkdir")) {
        it.opcode = IORING_OP_MKDIRAT;
        it.len = 0755;
    } else if (!strcmp(what, "symlink")) {
        it.opcode = IORING_OP_SYMLINKAT;
        it.addr = (unsigned long)"/etc";
        it.addr2 = (unsigned long)words[1];
    } else if (!strcmp(what, "xattr")) {
        it.opcode = IORING_OP_SETXATTR;
        it.addr = (unsigned long)"user.new";
        it.addr2 = (unsigned long)"1";
        it.addr3 = (unsigned long)words[1];
        it.len = 1;
    } else {
        it.opcode = strcmp(what, "link") ? IORING_OP_RENAMEAT : IORING_OP_LINKAT;
        it.addr2 = (unsigned long)words[2];
        it.len = (unsigned)AT_FDCWD;
    }
    return it;
}

int main(int count, char **words) {
    struct io_uring_params about = {0};
    if (count > 1 && !strcmp(words[1], "thread")) about.flags = IORING_SETUP_SQPOLL, words++, count--;
    if (count < 3) return 99;
    int ring = syscall(SYS_io_uring_setup, 4, &about);
    if (ring < 0) return end(errno);
    int both = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_POPULATE;
    char *in = mmap(0, about.sq_off.array + 4 * sizeof(unsigned), both, how, ring, IORING_OFF_SQ_RING);
    char *out = mmap(0, about.cq_off.cqes + 8 * sizeof(struct io_uring_cqe), both, how, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *requests = mmap(0, 4 * sizeof *requests, both, how, ring, IORING_OFF_SQES);
    if (in == MAP_FAILED || out == MAP_FAILED || requests == MAP_FAILED) return end(errno);
    requests[0] = request(words + 1);
    ((unsigned *)(in + about.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(in + about.sq_off.tail), 1, __ATOMIC_SEQ_CST);
    unsigned enter = IORING_ENTER_GETEVENTS | (about.flags ? IORING_ENTER_SQ_WAKEUP : 0);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, enter, 0, 0) < 0) return end(errno);
    struct io_uring_cqe *answer = (void *)(out + about.cq_off.cqes);
    return end(answer->res < 0 ? -answer->res : 0);
}
