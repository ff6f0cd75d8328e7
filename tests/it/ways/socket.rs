//! Through sockets: names that are bound outside, and what a neighbour hands over.

use super::way::{Way, python};
use super::ways;

/// A neighbour that hands over descriptors, from the mounts of the host.
macro_rules! handed {
    ($descriptors:literal, $program:literal) => {
        python(concat!("got = receive()\n", $program))
            .neighbour(concat!("hand_over(", $descriptors, ")"))
            .undo("rm -f \"$HOME/socket\"")
    };
}

const fn bound(program: &'static str) -> Way {
    python(program)
}

ways! {
    a_socket_is_bound_outside: bound("import socket; socket.socket(socket.AF_UNIX).bind(T + '/new')");
    a_socket_for_messages_is_bound_outside: bound(
        "import socket; os.chdir(T); socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind('new')"
    );
    a_socket_is_bound_through_the_magic_link_to_a_directory: bound(
        "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind('/proc/self/fd/%d/new' % os.open(T, os.O_RDONLY))"
    );
    a_directory_that_a_neighbour_hands_over: handed!("os.open(T, os.O_RDONLY)", r"
attempt(lambda: os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=got[0]), lambda: os.unlink('f', dir_fd=got[0]),
        lambda: os.mkdir('made', dir_fd=got[0]), lambda: os.symlink('x', 'link', dir_fd=got[0]),
        lambda: os.rename('g', 'moved', src_dir_fd=got[0], dst_dir_fd=got[0]),
        lambda: os.link('g', 'second', src_dir_fd=got[0], dst_dir_fd=got[0]),
        lambda: os.mknod('pipe', 0o10644, dir_fd=got[0]), lambda: os.rmdir('empty', dir_fd=got[0]))
os.fchdir(got[0])
attempt(lambda: put('again'), lambda: put('d/f', 'longer than it was'))
");
    a_directory_that_a_neighbour_hands_over_and_what_lies_inside: handed!("os.open(T, os.O_RDONLY)", r"
put(S + '/x')
attempt(lambda: os.rename(S + '/x', 'new', dst_dir_fd=got[0]), lambda: os.link(S + '/x', 'again', dst_dir_fd=got[0]),
        lambda: os.rename('f', S + '/f', src_dir_fd=got[0]), lambda: os.link('g', S + '/g', src_dir_fd=got[0]))
");
    the_root_that_a_neighbour_hands_over: handed!("os.open('/', os.O_PATH)", r"
os.fchdir(got[0])
attempt(lambda: put('.' + T + '/new'), lambda: os.unlink('.' + T + '/f'))
os.chroot('.')
");
    the_workspace_that_a_neighbour_hands_over_and_the_way_up: handed!("os.open(W, os.O_PATH)", r"
os.fchdir(got[0])
attempt(lambda: put(os.path.relpath(T, W) + '/new'), lambda: put('../out/again'), lambda: os.rename('../out/f', 'f'),
        lambda: os.link('../out/f', 'second'), lambda: put('second', 'changed'))
");
    a_file_that_a_neighbour_hands_over_for_reading: handed!("os.open(T + '/f', os.O_RDONLY)", r"
attempt(lambda: os.write(os.open('/proc/self/fd/%d' % got[0], os.O_RDWR), b'x'),
        lambda: call((265, 37), AT, '/proc/self/fd/%d' % got[0], AT, S + '/x', 0x400),
        lambda: call((265, 37), got[0], '', AT, S + '/y', EMPTY))
for name in '/x', '/y': attempt(lambda: put(S + name, 'changed'))
");
    a_file_that_a_neighbour_hands_over_for_reading_is_cut: handed!(
        "os.open(T + '/f', os.O_RDONLY)",
        "os.truncate('/proc/self/fd/%d' % got[0], 0)"
    );
    what_lies_beneath_a_root_that_a_neighbour_hands_over_is_cut: handed!("os.open('/', os.O_PATH)", r"
os.fchdir(got[0])
os.truncate('.' + T + '/f', 0)
");
    a_name_that_a_neighbour_hands_over: handed!("os.open(T + '/f', os.O_PATH)", r"
os.write(os.open('/proc/self/fd/%d' % got[0], os.O_RDWR), b'x')
");
    a_process_that_a_neighbour_hands_over: handed!("os.pidfd_open(os.getpid()), os.open(T + '/f', os.O_RDWR)", r"
# Of the two only the process is kept: the file is the neighbour's to give, and it is taken from there.
os.close(got[1])
for number in range(3, 12): attempt(lambda: os.write(call(438, got[0], number, 0), b'x'))
");
    a_tree_attached_nowhere_that_a_neighbour_hands_over: python(r"
tree = receive()[0]
attempt(lambda: os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=tree), lambda: os.unlink('f', dir_fd=tree),
        lambda: os.write(os.open('g', os.O_RDWR, dir_fd=tree), b'x'), lambda: os.mkdir('made', dir_fd=tree))
")
    .neighbour("attempt(own_namespaces)\nhand_over(call(428, AT, T, 1))")
    .undo("rm -f \"$HOME/socket\"");
    a_root_attached_nowhere_that_a_neighbour_hands_over: python(r"
tree = receive()[0]
os.fchdir(tree)
attempt(lambda: put('.' + T + '/new'), lambda: os.unlink('.' + T + '/f'))
")
    .neighbour("attempt(own_namespaces)\nhand_over(call(428, AT, '/', 0x8001))")
    .undo("rm -f \"$HOME/socket\"");
}
