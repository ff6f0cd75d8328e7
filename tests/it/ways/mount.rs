//! By mounting: as root, and as anybody in a user namespace.

use super::way::{Way, python, shell};
use super::{since, ways};

/// An attempt with a user namespace and a mount namespace of its own. Confined it goes on where it
/// cannot have them; bare it must not, since the mounts would be the host's.
macro_rules! alone {
    ($program:literal) => {
        python(concat!(
            "try: own_namespaces()\nexcept OSError:\n    if 'BARE' in os.environ: raise\n",
            $program
        ))
    };
}

/// An attempt that stays in the mounts it was started in.
const fn here(program: &'static str) -> Way {
    python(program).for_root()
}

ways! {
    the_outside_is_bound_to_a_place_inside: alone!(r"
os.mkdir(S + '/m')
mount(T, S + '/m', None, 0x1000)
put(S + '/m/new')
");
    all_mounts_are_made_writable_again: alone!(r"
attempt(lambda: mount('none', '/', None, 0x20 | 0x1000), lambda: mount('none', '/', None, 0x20))
attempt(lambda: put(T + '/new'), lambda: os.chmod(T + '/f', 0o700))
");
    the_outside_is_bound_to_itself_and_made_writable: alone!(r"
attempt(lambda: mount(T, T, None, 0x1000), lambda: mount('none', T, None, 0x20 | 0x1000))
attempt(lambda: put(T + '/new'), lambda: os.chmod(T + '/f', 0o700))
");
    all_mounts_are_made_writable_by_their_attributes: alone!(r"
attempt(lambda: call(442, AT, '/', 0x8000, struct.pack('QQQQ', 0, 1, 0, 0), 32))
attempt(lambda: put(T + '/new'), lambda: os.chmod(T + '/f', 0o700))
");
    what_covers_the_outside_is_taken_away: alone!(r"
for path in T, os.path.dirname(T), W, '/proc', '/':
    attempt(lambda: call((166, 39), path, 2))
attempt(lambda: put(T + '/new'), lambda: put('/proc/%d/root' % os.getppid() + T + '/again'))
");
    a_tree_that_is_attached_nowhere: alone!(r"
tree = call(428, AT, T, 1)
os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=tree)
os.chmod('f', 0o700, dir_fd=tree)
");
    a_tree_that_is_made_writable_as_it_is_taken: alone!(r"
tree = call(467, AT, T, 1, struct.pack('QQQQ', 0, 1, 0, 0), 32)
os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=tree)
")
    .needs(since!(6, 15));
    a_tree_that_is_attached_inside: alone!(r"
os.mkdir(S + '/m')
tree = call(428, AT, T, 1)
call(429, tree, '', AT, S + '/m', 4)
put(S + '/m/new')
");
    a_layer_that_writes_to_the_outside: alone!(r"
os.makedirs(S + '/m')
mount('overlay', S + '/m', 'overlay', 0, 'lowerdir=%s/empty,upperdir=%s/d,workdir=%s/work' % (T, T, T))
put(S + '/m/new')
")
    .setup("mkdir \"$T/work\"");
    a_layer_that_is_made_by_the_newer_calls: alone!(r"
context = call(430, 'overlay', 0)
for name, path in ('lowerdir', 'empty'), ('upperdir', 'd'), ('workdir', 'work'):
    call(431, context, 1, name, T + '/' + path, 0)
call(431, context, 6, None, None, 0)
tree = call(432, context, 0, 0)
os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=tree)
")
    .setup("mkdir \"$T/work\"");
    a_file_system_that_is_reconfigured: alone!(r"
def writable():
    context = call(433, AT, T, 0)
    call(431, context, 0, 'rw', None, 0)
    call(431, context, 7, None, None, 0)
attempt(writable, lambda: put(T + '/new'))
");
    another_root_is_put_in_place: alone!(r"
mount(T, T, None, 0x1000 | 0x4000)
os.chdir(T)
call((155, 41), '.', './empty')
put('/new')
");
    a_root_below_with_a_directory_kept_open: alone!(r"
outside = os.open(T, os.O_RDONLY)
os.mkdir(S + '/m')
os.chroot(S + '/m')
os.fchdir(outside)
attempt(lambda: put('new'), lambda: os.chmod('f', 0o700))
for step in range(40): os.chdir('..')
os.chroot('.')
put(T + '/again')
");
    the_namespaces_of_before_are_entered_again: python(r"
before = [os.open('/proc/self/ns/' + kind, os.O_RDONLY) for kind in ('user', 'mnt', 'pid')]
try: own_namespaces()
except OSError:
    if 'BARE' in os.environ: raise
attempt(*[lambda fd=fd: call((308, 268), fd, 0) for fd in before])
attempt(lambda: put(T + '/new'), lambda: os.chmod(T + '/f', 0o700))
");
    a_new_view_of_all_processes: alone!(r"
os.mkdir(S + '/m')
attempt(lambda: mount('proc', S + '/m', 'proc'))
for number in os.listdir(S + '/m') or os.listdir('/proc'):
    if os.path.exists(T + '/new'): break
    if number.isdigit(): attempt(lambda: put('/proc/%s/root' % number + T + '/new'))
");
    something_is_mounted_over_the_outside: here("mount('tmpfs', T + '/d', 'tmpfs')").undo("umount \"$T/d\"");
    the_inside_is_bound_over_the_outside: here("mount(W, T + '/d', None, 0x1000)").undo("umount \"$T/d\"");
    a_mount_beside_the_workspace_is_taken_away: here("call((166, 39), T + '/d', 2)")
        .before("mount -t tmpfs t \"$T/d\"")
        .undo("umount \"$T/d\" 2> /dev/null; true");
    a_mount_is_moved_to_another_place_outside: here("mount(T + '/d/a', T + '/d/b', None, 0x2000)")
        .before("cd \"$T/d\"; mount -t tmpfs t . && cd . && mount --make-private \"$T/d\" && cd \"$T/d\" && mkdir a b && mount -t tmpfs t a")
        .undo("umount -R \"$T/d\"");
    a_mount_beside_the_workspace_is_made_read_only: here("mount('none', T + '/d', None, 0x20 | 1)")
        .before("mount -t tmpfs t \"$T/d\"")
        .witness("grep -F \"$T\" /proc/self/mountinfo")
        .undo("umount \"$T/d\"");
    a_mount_that_is_shared_with_the_host: shell(
        "mount -t tmpfs t \"$T/d/m\" && echo x > \"$T/d/m/new\""
    )
    .for_root()
    .before("mount -t tmpfs t \"$T/d\"; mount --make-shared \"$T/d\"; mkdir \"$T/d/m\"")
    .undo("umount \"$T/d/m\" 2> /dev/null; umount \"$T/d\"");
    the_file_system_that_the_outside_lies_on_is_mounted_again: shell(
        "mkdir \"$S/m\"; mknod \"$S/disk\" b $(stat -c '%Hd %Ld' \"$T\"); mount -t $(findmnt -no FSTYPE -T \"$T\") \"$S/disk\" \"$S/m\" && \
         echo x > \"$S/m/$T/new\"; umount \"$S/m\""
    )
    .for_root()
    .needs(lies_on_a_disk);
    a_handle_is_opened: python(HANDLE).for_root();
    a_handle_is_opened_in_a_new_user_namespace: alone!(r"
# Who made the mount namespace may open the handles of directories, of a mount that has no others beneath it.
handle, number = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136), ctypes.c_int()
call((303, 264), AT, T + '/d/sub', handle, ctypes.byref(number), 0)
found = call((304, 265), os.open(T + '/d', os.O_RDONLY), handle, os.O_RDONLY | os.O_DIRECTORY)
os.write(os.open('f', os.O_WRONLY, dir_fd=found), b'x')
")
    .before("mount -t tmpfs t \"$T/d\"; mkdir -m 777 \"$T/d/sub\"; echo keep > \"$T/d/sub/f\"; chown -R \"$U\" \"$T/d\"")
    .undo("umount \"$T/d\"")
    .for_root()
    .needs(since!(6, 12));
}

const HANDLE: &str = r"
handle, number = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136), ctypes.c_int()
call((303, 264), AT, T + '/f', handle, ctypes.byref(number), 0)
os.write(call((304, 265), os.open('/', os.O_RDONLY), handle, os.O_RDWR), b'x')
";

/// A file system of a block device, which can be mounted at a second place.
fn lies_on_a_disk() -> Result<(), &'static str> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata("/var/lib").unwrap().dev();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    if std::path::Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists() {
        Ok(())
    } else {
        Err("worlds that lie on a block device")
    }
}
