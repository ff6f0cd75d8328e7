//! Through descriptors and memory: bytes that get out of a descriptor, and descriptors that were there before.

use super::way::{python, shell};
use super::ways;

ways! {
    room_is_taken_in_a_file_outside: python("os.posix_fallocate(os.open(T + '/f', os.O_RDWR), 0, 100000)");
    a_hole_is_made_in_a_file_outside: python("call((285, 47), os.open(T + '/f', os.O_RDWR), 3, 0, 4)");
    bytes_are_copied_out_in_the_kernel: python(r"
put(S + '/x', 'copied')
source = os.open(S + '/x', os.O_RDONLY)
os.copy_file_range(source, os.open(T + '/f', os.O_WRONLY), 6)
");
    extents_are_shared_with_a_file_outside: python(r"
put(S + '/x', 'shared')
source = os.open(S + '/x', os.O_RDONLY)
# Where the file system can share none, the copy that programs fall back on.
target = os.open(T + '/f', os.O_WRONLY | os.O_TRUNC)
attempt(lambda: fcntl.ioctl(target, 0x40049409, source), lambda: os.copy_file_range(source, target, 6))
");
    bytes_are_sent_out: python(r"
put(S + '/x', 'sent')
os.sendfile(os.open(T + '/f', os.O_WRONLY), os.open(S + '/x', os.O_RDONLY), 0, 4)
");
    bytes_are_spliced_out: python(r"
reading, writing = os.pipe()
os.write(writing, b'spliced')
os.splice(reading, os.open(T + '/f', os.O_WRONLY), 7)
");
    bytes_are_written_at_a_place: python("os.pwritev(os.open(T + '/f', os.O_WRONLY | os.O_DSYNC), [b'x', b'y'], 1)");
    memory_is_shared_with_a_file_outside: python(r"
import mmap
memory = mmap.mmap(os.open(T + '/f', os.O_RDWR), 5, mmap.MAP_SHARED)
memory[0:2] = b'xy'
memory.flush()
");
    a_mapped_file_is_opened_by_the_name_of_its_mapping: python(r"
import mmap
fd = os.open(T + '/f', os.O_RDONLY)
memory = mmap.mmap(fd, 5, mmap.MAP_PRIVATE, mmap.PROT_READ)
name = [line.split()[0] for line in open('/proc/self/maps') if line.strip().endswith(T + '/f')][0]
os.write(os.open('/proc/self/map_files/' + name, os.O_RDWR), b'x')
")
    .for_root();
    a_file_that_the_caller_had_open_for_writing: shell("echo x >&9; echo y > /proc/self/fd/9").through("exec 9>> \"$T/f\"");
    a_file_that_the_caller_had_open_for_reading: shell(
        "chmod 777 /proc/self/fd/9; echo y > /proc/self/fd/9; ln -L /proc/self/fd/9 \"$S/x\""
    )
    .through("exec 9< \"$T/f\"");
    a_directory_that_the_caller_had_open: python(r"
attempt(lambda: os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=9), lambda: os.unlink('f', dir_fd=9),
        lambda: os.mkdir('made', dir_fd=9), lambda: os.chmod('g', 0o777, dir_fd=9))
os.fchdir(9)
put('again')
")
    .through("exec 9< \"$T\"");
    a_root_that_the_caller_had_open: python("os.fchdir(250); put('.' + T + '/new')").through("exec 250< /");
    a_descriptor_far_above_the_others: python("os.write(900, b'x')").through("ulimit -n 1000; exec 900>> \"$T/f\"");
    a_mapping_is_made_writable_afterwards: python(r"
fd = os.open(T + '/f', os.O_RDWR)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, 4096, 1, 1, fd, 0)
libc.mprotect(ctypes.c_void_p(at), 4096, 3)
ctypes.memset(at, 120, 2)
");
    a_write_that_another_queue_makes_later: python(r"
import time, errno
# The C library's own threads write it.
class Control(ctypes.Structure):
    _fields_ = [('fd', ctypes.c_int), ('op', ctypes.c_int), ('prio', ctypes.c_int), ('buffer', ctypes.c_void_p),
                ('size', ctypes.c_size_t), ('rest', ctypes.c_char * 200)]
text = ctypes.create_string_buffer(b'x')
request = Control(os.open(T + '/f', os.O_WRONLY), 0, 0, ctypes.addressof(text), 1)
libc.aio_write(ctypes.byref(request))
while libc.aio_error(ctypes.byref(request)) == errno.EINPROGRESS: time.sleep(0.001)
");
    a_write_that_the_kernels_own_queue_makes: python(r"
context = ctypes.c_ulong()
call((206, 0), 1, ctypes.byref(context))
text = ctypes.create_string_buffer(b'x')
fd = os.open(T + '/f', os.O_WRONLY)
request = ctypes.create_string_buffer(struct.pack('QIIHhIQQqQII', 0, 0, 0, 1, 0, fd, ctypes.addressof(text), 1, 0, 0, 0, 0))
call((209, 2), context.value, 1, struct.pack('Q', ctypes.addressof(request)))
call((208, 4), context.value, 1, 1, ctypes.create_string_buffer(64), None)
");
}
