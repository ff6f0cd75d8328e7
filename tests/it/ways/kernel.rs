//! By calls that are not the usual ones: rings, foreign tables, numbers with rubbish in them, filters and domains of one's own.

use super::programs::{FOREIGN, RING, SMALL};
use super::way::{Way, python, shell};
use super::ways;

const fn ring(script: &'static str) -> Way {
    shell(script).tools(&[RING]).needs(rings)
}

/// kernel.io_uring_disabled: 0 means that everybody may use it.
fn rings() -> Result<(), &'static str> {
    match std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        Ok(text) if text.trim() != "0" => Err("io_uring, which this host has switched off"),
        _ => Ok(()),
    }
}

ways! {
    a_ring_makes_a_file: ring("\"$HOME/ring\" create \"$T/new\"");
    a_ring_removes_a_file: ring("\"$HOME/ring\" remove \"$T/f\"");
    a_ring_makes_a_directory: ring("\"$HOME/ring\" mkdir \"$T/new\"");
    a_ring_makes_a_link: ring("\"$HOME/ring\" symlink \"$T/new\"");
    a_ring_renames: ring("\"$HOME/ring\" rename \"$T/f\" \"$T/new\"");
    a_ring_links: ring("\"$HOME/ring\" link \"$T/f\" \"$T/new\"");
    a_ring_sets_an_attribute: ring("\"$HOME/ring\" xattr \"$T/f\"");
    a_thread_of_the_kernel_takes_what_a_ring_asks: ring(
        "\"$HOME/ring\" thread create \"$T/new\"; \"$HOME/ring\" thread xattr \"$T/f\""
    );
    a_descriptor_with_rubbish_in_its_upper_half: python(r"
rubbish = 0x7fffffff00000000
call((257, 56), (AT & 0xffffffff) | rubbish, T + '/new', os.O_WRONLY | os.O_CREAT | rubbish, 0o644)
");
    a_number_with_rubbish_in_its_upper_half: python(r"
call(((83, 34)[not X86]) | 0x100000000, *([T + '/new', 0o755] if X86 else [AT, T + '/new', 0o755]))
");
    a_request_with_rubbish_in_its_upper_half: python(r"
fd = os.open(T + '/f', os.O_RDONLY)
call((16, 29), fd, 0x7fffffff00000000 | 0x40086602, struct.pack('l', 0x40))
")
    .metadata();
    mode_bits_with_rubbish_in_the_upper_half: python(
        "call((268, 53), (AT & 0xffffffff) | 0x1234500000000, T + '/f', 0o700 | 0x1234500000000)"
    )
    .metadata();
    flags_of_the_newer_way_to_open: python(r"
how = struct.pack('QQQQ', os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644, 0x08, 0)
call(437, os.open(T, os.O_PATH), 'new', how, 32)
");
    a_domain_of_ones_own_that_allows_the_outside: python(r"
libc.prctl(38, 1, 0, 0, 0)
rules = call(444, struct.pack('Q', 0x1fff), 8, 0)
call(445, rules, 1, struct.pack('=Qi', 0x1fff, os.open(T, os.O_PATH)), 0)
attempt(lambda: call(446, rules, 0))
attempt(lambda: put(T + '/new'), lambda: os.unlink(T + '/f'))
");
    a_filter_of_ones_own_that_lets_everything_go_on: python(r"
libc.prctl(38, 1, 0, 0, 0)
text = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(text)))
attempt(lambda: call((317, 277), 1, 0, program))
attempt(lambda: put(T + '/new'), lambda: os.chmod(T + '/f', 0o700))
");
    a_listener_of_ones_own_that_answers_go_on: python(r"
import threading
libc.prctl(38, 1, 0, 0, 0)
def listen(number):
    # One call waits for the listener, which says that it is to go on.
    text = ctypes.create_string_buffer(struct.pack('HBBI' * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 6, 0, 0, 0x7fc00000, 6, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(text)))
    return call((317, 277), 1, 8, program), text, program
def answer(listener):
    request = ctypes.create_string_buffer(80)
    fcntl.ioctl(listener, 0xc0502100, request, True)
    reply = ctypes.create_string_buffer(struct.pack('QqiI', struct.unpack_from('Q', request)[0], 0, 0, 1), 24)
    fcntl.ioctl(listener, 0xc0182101, reply, True)
number = (83, 34)[not X86]
def both():
    listener = listen(number)[0]
    threading.Thread(target=answer, args=(listener,), daemon=True).start()
attempt(both)
call((83, 34), *([T + '/new', 0o755] if X86 else [AT, T + '/new', 0o755]))
");
    privileges_that_are_asked_back: python(r"
attempt(lambda: libc.prctl(38, 0, 0, 0, 0), lambda: libc.prctl(8, 1, 0, 0, 0), lambda: libc.prctl(28, 0, 0, 0, 0))
header, all_of_them = struct.pack('II', 0x20080522, 0), struct.pack('IIIIII', *[0xffffffff] * 6)
attempt(lambda: call((126, 91), header, all_of_them), lambda: os.setuid(0), lambda: os.setgroups([0]))
attempt(lambda: os.chown(T + '/f', 12, 12), lambda: put(T + '/new'))
");
}

#[cfg(target_arch = "x86_64")]
ways! {
    calls_by_the_table_of_32_bits: shell("\"$HOME/foreign\" int80 \"$T/f\" \"$T/new\"")
        .tools(&[FOREIGN])
        .needs(foreign_table);
    a_program_of_32_bits: shell("\"$HOME/small\" \"$T/new\"").tools(&[SMALL]).needs(foreign_table);
}

/// `config` of the running kernel does not lie anywhere for sure; whether it runs such a program does.
#[cfg(target_arch = "x86_64")]
fn foreign_table() -> Result<(), &'static str> {
    // arch_prctl(2) aside, it is what this file is for: it is there exactly when the table is.
    if std::path::Path::new("/proc/sys/abi/vsyscall32").exists() {
        Ok(())
    } else {
        Err("a kernel with the table of 32 bits")
    }
}
