//! Mode bits, owners, times, attributes, access lists and inode flags. Landlock asks about none of them.

use super::way::{Way, python, shell};
use super::{since, ways};

/// An attempt at metadata, which may be left open where there are no mounts.
const fn change(program: &'static str) -> Way {
    python(program).metadata()
}

ways! {
    mode_bits_by_name: shell("chmod 777 \"$T/f\" \"$T/d\" \"$T\"").metadata();
    mode_bits_by_a_path_from_an_open_directory: change("os.chmod('f', 0o777, dir_fd=os.open(T, os.O_RDONLY))");
    mode_bits_by_a_descriptor_opened_for_reading: change("os.fchmod(os.open(T + '/f', os.O_RDONLY), 0o777)");
    mode_bits_of_a_directory_that_is_open: change("os.fchmod(os.open(T, os.O_RDONLY), 0o700)");
    mode_bits_by_the_call_with_flags: change("call(452, AT, T + '/f', 0o777, 0x100)").needs(since!(6, 6));
    mode_bits_by_the_call_with_flags_of_a_descriptor_that_only_names: change(
        "call(452, os.open(T + '/f', os.O_PATH), '', 0o777, EMPTY)"
    )
    .needs(since!(6, 6));
    mode_bits_by_the_magic_link_to_a_descriptor: change(r"
for flags in os.O_RDONLY, os.O_PATH:
    fd = os.open(T + '/f', flags)
    attempt(lambda: os.chmod('/proc/self/fd/%d' % fd, 0o777))
");
    mode_bits_through_a_link_inside: shell("chmod 600 way && chmod -R 777 wide/").setup("ln -s \"$T/f\" way; ln -s \"$T\" wide").metadata();
    mode_bits_of_the_working_directory: change("os.chdir(T); os.chmod('.', 0o700); os.chmod('d/../f', 0o700)");
    owner_by_name: change("os.chown(T + '/f', 12, 12)").for_root();
    group_to_ones_own_by_name: change("os.chown(T + '/f', -1, os.getgid())");
    owner_of_a_link: change("os.lchown(T + '/l', os.getuid(), os.getgid())");
    owner_by_a_descriptor: change("os.fchown(os.open(T + '/f', os.O_RDONLY), os.getuid(), -1)");
    owner_of_a_descriptor_that_only_names: change("call((260, 54), os.open(T + '/f', os.O_PATH), '', os.getuid(), -1, EMPTY)");
    times_by_name: shell("touch -d 2001-01-01 \"$T/f\"; touch \"$T/d\"").metadata();
    times_in_whole_seconds: change("call((132, -1), T + '/f', struct.pack('qq', 1, 1)) if X86 else os.utime(T + '/f', (1, 1))");
    times_in_microseconds: change("call((235, -1), T + '/f', struct.pack('qqqq', 1, 0, 1, 0)) if X86 else os.utime(T + '/f', (1, 1))");
    times_from_an_open_directory: change(r"
fd = os.open(T, os.O_RDONLY)
attempt(lambda: call((261, -1), fd, 'f', struct.pack('qqqq', 1, 0, 1, 0)), lambda: os.utime('d', dir_fd=fd))
");
    times_by_a_descriptor: change("os.utime(os.open(T + '/f', os.O_RDONLY), (1, 1))");
    times_of_a_link: change("os.utime(T + '/l', (1, 1), follow_symlinks=False)");
    times_of_a_descriptor_that_only_names: change(
        "call((280, 88), os.open(T + '/f', os.O_PATH), '', struct.pack('qqqq', 1, 0, 1, 0), EMPTY)"
    );
    an_attribute_by_name: change("xattr(T + '/f'); xattr(T + '/d')");
    an_attribute_by_the_call_for_links: change("call((189, 6), T + '/f', 'user.new', '1', 1, 0)");
    an_attribute_by_a_descriptor: change("xattr(os.open(T + '/f', os.O_RDONLY))");
    an_attribute_by_the_magic_link_to_a_descriptor: change("xattr('/proc/self/fd/%d' % os.open(T + '/f', os.O_PATH))");
    an_attribute_by_the_call_with_a_directory: change(r"
value = ctypes.create_string_buffer(b'1')
arguments = struct.pack('QII', ctypes.addressof(value), 1, 0)
attempt(lambda: call(463, os.open(T, os.O_PATH), 'f', 0, 'user.new', arguments, 16),
        lambda: call(463, os.open(T + '/f', os.O_PATH), '', EMPTY, 'user.again', arguments, 16))
")
    .needs(since!(6, 13));
    an_attribute_is_removed: change("os.removexattr(T + '/f', 'user.kept')");
    an_attribute_is_removed_by_a_descriptor: change("os.removexattr(os.open(T + '/f', os.O_RDONLY), 'user.kept')");
    an_attribute_is_removed_by_the_call_with_a_directory: change(
        "call(466, os.open(T, os.O_PATH), 'f', 0, 'user.kept')"
    )
    .needs(since!(6, 13));
    an_access_list: change(r"
entry = lambda tag, bits, who=0xffffffff: struct.pack('HHI', tag, bits, who)
entries = entry(1, 6) + entry(2, 7, 12) + entry(4, 4) + entry(16, 7) + entry(32, 4)
attempt(lambda: os.setxattr(T + '/f', 'system.posix_acl_access', struct.pack('I', 2) + entries),
        lambda: os.setxattr(T + '/d', 'system.posix_acl_default', struct.pack('I', 2) + entries))
");
    a_capability_on_a_program: change("os.setxattr(T + '/f', 'security.capability', struct.pack('IIIII', 0x2000001, 1, 0, 0, 0))")
        .for_root();
    a_trusted_attribute: change("os.setxattr(T + '/f', 'trusted.new', b'1')").for_root();
    inode_flags: change("fcntl.ioctl(os.open(T + '/f', os.O_RDONLY), 0x40086602, struct.pack('l', 0x40))");
    inode_flags_of_a_directory: shell("chattr +d \"$T/d\"; chattr +A \"$T/f\"").metadata();
    extended_inode_flags: change(
        "fcntl.ioctl(os.open(T + '/f', os.O_RDONLY), 0x401c5820, struct.pack('IIIII8x', 0x80, 0, 0, 0, 0))"
    );
    inode_flags_by_the_call_with_a_path: change(r"
attributes = struct.pack('QIIII', 0x80, 0, 0, 0, 0)
attempt(lambda: call(469, AT, T + '/f', attributes, 24, 0), lambda: call(469, os.open(T, os.O_RDONLY), 'd', attributes, 24, 0))
")
    .needs(since!(6, 17));
    the_generation_of_an_inode: change(
        "fcntl.ioctl(os.open(T + '/f', os.O_RDONLY), 0x40087602, struct.pack('l', 7))"
    );
    everything_that_was_noted_beside_a_file: change(r"
import shutil
# One after the other on one descriptor, as an archiver does it.
fd = os.open(T + '/d', os.O_RDONLY | os.O_DIRECTORY)
attempt(lambda: os.fchown(fd, os.getuid(), os.getgid()), lambda: os.fchmod(fd, 0o711),
        lambda: os.utime(fd, (5, 5)), lambda: xattr(fd), lambda: shutil.copystat('/etc/hostname', T + '/f'))
");
}
