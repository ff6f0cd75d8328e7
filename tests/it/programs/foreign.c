/*
 * Makes calls of 32 bits from a program of 64 (`int $0x80`), or those of x32, on a path: creates a
 * file, makes a directory, removes, sets mode bits, an attribute, inode flags. Says which worked.
 *
 *   foreign int80|x32 PATH-OF-A-FILE PATH-OF-NOTHING
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int x32;

static long make(long number32, long number, long a, long b, long c, long d, long e) {
    long result;
    if (x32) {
        register long r10 __asm__("r10") = d;
        register long r8 __asm__("r8") = e;
        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"(number | 0x40000000), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                         : "rcx", "r11", "memory");
        return result;
    }
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number32), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "r8", "r9", "r10", "r11", "memory");
    return (int)result;
}

static void say(const char *what, long result) { printf("%s %ld\n", what, result); }

int main(int count, char **words) {
    if (count < 4) return 99;
    x32 = !strcmp(words[1], "x32");
    /* Addresses of 32 bits. */
    char *low = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) return 98;
    long file = (long)strcpy(low, words[2]), nothing = (long)strcpy(low + 4096, words[3]);
    long name = (long)strcpy(low + 8192, "user.new"), flags = (long)(low + 12288);
    *(int *)flags = 0x40;
    say("create", make(5, 2, nothing, O_CREAT | O_WRONLY, 0644, 0, 0));
    say("unlink", make(10, 87, nothing, 0, 0, 0, 0));
    say("mkdir", make(39, 83, nothing, 0755, 0, 0, 0));
    say("truncate", make(92, 76, file, 1, 0, 0, 0));
    say("chmod", make(15, 90, file, 0600, 0, 0, 0));
    say("xattr", make(226, 188, file, name, name, 1, 0));
    int fd = open(words[2], O_RDONLY);
    say("flags", make(54, 16, fd, x32 ? 0x40086602 : 0x40046602, flags, 0, 0));
    return 0;
}
