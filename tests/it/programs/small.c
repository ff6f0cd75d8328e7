/* A program of 32 bits without a C library: makes the directory that is its first argument, and sets mode bits on it. */
static int call(int number, int a, int b) {
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b) : "memory");
    return result;
}

__attribute__((used)) static void begin(int *stack) {
    int path = stack[2];
    call(39, path, 0755);
    call(15, path, 0700);
    call(1, 0, 0);
}

__asm__(".globl _start\n_start: mov %esp, %eax\npush %eax\ncall begin\n");
