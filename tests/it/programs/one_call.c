/*
 * Makes one call and prints `ok` or the name of its error.
 *
 *   call NUMBER ARGUMENT...   with the instruction itself, as programs do that have no C library
 *   call NAME ARGUMENT...     through the function of the C library
 *
 * An argument is a number, or
 *   =TEXT      the address of a text
 *   %W,W,...   the address of words of 64 bits
 *   @PATH      a descriptor, opened for reading
 *   ^PATH      a descriptor that only names (O_PATH), of a link itself if it is one
 *   O_A+O_B    flags of open(2), those whose bits depend on the machine
 *   !          the address of the inode flags of the first argument, with "no dump" turned over
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

typedef long (*function)(long, long, long, long, long, long);

#define F(name) { #name, (function)(void *)name }

static const struct {
    const char *name;
    function function;
} functions[] = {
    F(open), F(openat), F(creat), F(mkdir), F(mkdirat), F(mknod), F(mknodat), F(symlink), F(symlinkat), F(link),
    F(linkat), F(unlink), F(unlinkat), F(rmdir), F(rename), F(renameat), F(renameat2), F(truncate), F(chmod),
    F(fchmod), F(fchmodat), F(chown), F(lchown), F(fchown), F(fchownat), F(utime), F(utimes), F(futimesat),
    F(utimensat), F(setxattr), F(lsetxattr), F(fsetxattr), F(removexattr), F(lremovexattr), F(fremovexattr),
    F(futimens), F(ioctl), F(mount), F(umount2),
};

static long instruction(long number, const long *a)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

static long opened(const char *path, int flags)
{
    int fd = open(path, flags);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    return fd;
}

static long words(char *text)
{
    long *all = calloc(64, sizeof *all), *at = all;
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ","))
        *at++ = (long)strtoull(word, NULL, 0);
    return (long)all;
}

static long flags_of_open(char *text)
{
    static const struct {
        const char *name;
        long bits;
    } known[] = { { "O_WRONLY", O_WRONLY },       { "O_RDWR", O_RDWR },     { "O_CREAT", O_CREAT },
                  { "O_NOFOLLOW", O_NOFOLLOW },   { "O_TMPFILE", O_TMPFILE }, { "O_RDONLY", O_RDONLY },
                  { "O_DIRECTORY", O_DIRECTORY } };
    long bits = 0;
    for (char *word = strtok(text, "+"); word; word = strtok(NULL, "+"))
        for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
            if (!strcmp(known[i].name, word))
                bits |= known[i].bits;
    return bits;
}

static long argument(char *text, long first)
{
    static long flags;
    switch (*text) {
    case '=':
        return (long)(text + 1);
    case '%':
        return words(text + 1);
    case '@':
        return opened(text + 1, O_RDONLY | O_NONBLOCK);
    case 'O':
        return flags_of_open(text);
    case '^':
        return opened(text + 1, O_PATH | O_NOFOLLOW);
    case '!':
        if (ioctl((int)first, FS_IOC_GETFLAGS, &flags) < 0)
            perror("the inode flags");
        flags ^= FS_NODUMP_FL;
        return (long)&flags;
    default:
        return (long)strtoull(text, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    long a[6] = { 0 };
    for (int i = 2; i < argc && i < 8; i++)
        a[i - 2] = argument(argv[i], a[0]);
    long result = -ENOSYS;
    if (argc > 1 && strspn(argv[1], "0123456789") == strlen(argv[1])) {
        result = instruction(strtol(argv[1], NULL, 10), a);
    } else {
        for (unsigned i = 0; argc > 1 && i < sizeof functions / sizeof *functions; i++)
            if (!strcmp(functions[i].name, argv[1]))
                result = (int)functions[i].function(a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? -errno : 0;
    }
    puts(result < 0 ? strerrorname_np((int)-result) : "ok");
    return 0;
}
