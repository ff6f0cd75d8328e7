//! By name: making, opening, cutting, removing, renaming and linking, straight and round corners.

use super::way::{python, shell};
use super::ways;

ways! {
    a_file_is_made_outside: python("os.open(T + '/new', os.O_WRONLY | os.O_CREAT)");
    a_file_is_made_outside_by_creat: python("call((85, 1024), T + '/new', 0o644)");
    a_file_outside_is_written_over: python("os.write(os.open(T + '/f', os.O_RDWR), b'x')");
    a_file_outside_is_appended_to: shell("echo x >> \"$T/f\"; echo y >& \"$T/g\"");
    a_file_outside_is_emptied_as_it_is_opened_for_reading: python("os.open(T + '/f', os.O_RDONLY | os.O_TRUNC)");
    a_file_outside_is_opened_as_the_third_access_mode_knows: python("os.open(T + '/f', 3 | os.O_TRUNC)");
    a_file_outside_is_cut_by_its_name: python("os.truncate(T + '/f', 2); os.truncate(T + '/g', 1000000)");
    a_file_outside_is_cut_through_a_descriptor_opened_again: python(r"
fd = os.open(T + '/f', os.O_RDONLY)
os.ftruncate(os.open('/proc/self/fd/%d' % fd, os.O_RDWR), 1)
");
    a_file_without_a_name_is_made_outside_and_named: python(r"
fd = os.open(T, os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b'x')
call((265, 37), AT, '/proc/self/fd/%d' % fd, AT, T + '/new', 0x400)
");
    a_file_without_a_name_that_was_made_inside_is_named_outside: python(r"
fd = os.open(S, os.O_TMPFILE | os.O_RDWR, 0o600)
call((265, 37), AT, '/proc/self/fd/%d' % fd, AT, T + '/new', 0x400)
");
    a_path_climbs_out_of_the_workspace: python("os.chdir(S); put(os.path.relpath(T + '/new'))");
    a_path_climbs_out_of_a_directory_that_is_open: python(r"
put_at = os.open(S, os.O_PATH | os.O_DIRECTORY)
os.open(os.path.relpath(T + '/new', S), os.O_WRONLY | os.O_CREAT, dir_fd=put_at)
");
    the_working_directory_is_moved_outside: python("os.chdir(T); put('new'); os.chdir('d'); put('../again')");
    a_path_is_built_of_steps_that_are_too_long_for_one: python(r"
os.chdir(T + '/.' * 1900 + '/d')
put('./' * 1900 + '../new')
");
    a_root_of_ones_own_choice_for_a_path: python(r"
how = struct.pack('QQQ', os.O_WRONLY | os.O_CREAT, 0o644, 0x10)
call(437, os.open(T, os.O_PATH), '/../new', how, 24)
");
    a_link_that_leads_to_a_file_outside: shell("echo x > \"$W/way\"").setup("ln -s \"$T/f\" way");
    a_link_that_leads_to_a_directory_outside: shell("echo x > \"$W/way/new\"; rm -f \"$W/way/f\"").setup("ln -s \"$T\" way");
    a_link_that_the_attempt_makes_itself: shell("ln -s \"$T\" \"$S/way\"; echo x > \"$S/way/new\"; touch \"$S/way/f\"");
    a_file_is_made_through_a_link_to_nothing: shell("ln -s \"$T/new\" \"$S/way\"; echo x > \"$S/way\"");
    a_chain_of_links_that_ends_outside: python(r"
for n in range(38): os.symlink('way%d' % (n + 1), S + '/way%d' % n)
os.symlink(T, S + '/way38')
put(S + '/way0/new')
");
    the_magic_links_to_ones_own_root_and_directory: python(r"
os.chdir('/')
for way in 'self/root', 'self/cwd', 'thread-self/root', 'self/task/%d/cwd' % os.getpid():
    attempt(lambda: put('/proc/' + way + T + '/new'))
");
    the_magic_link_to_a_directory_that_is_open: python(r"
fd = os.open(T, os.O_RDONLY)
attempt(lambda: put('/proc/self/fd/%d/new' % fd), lambda: put('/dev/fd/%d/d/../again' % fd))
");
    a_descriptor_that_only_names_is_opened_again: python(r"
fd = os.open(T + '/f', os.O_PATH)
for name in '/proc/self/fd/', '/dev/fd/', '/proc/thread-self/fd/':
    attempt(lambda: os.write(os.open(name + str(fd), os.O_RDWR), b'x'))
");
    a_file_is_renamed_out: python("put(S + '/x'); os.rename(S + '/x', T + '/new')");
    a_file_is_renamed_out_over_another: python("put(S + '/x'); os.replace(S + '/x', T + '/f')");
    a_directory_is_renamed_out: python("os.mkdir(S + '/x'); os.rename(S + '/x', T + '/empty')");
    a_file_outside_is_renamed_in: python("os.rename(T + '/f', S + '/x')");
    a_directory_outside_is_renamed_in: python("os.rename(T + '/d', S + '/x')");
    a_file_outside_is_renamed_in_its_directory: python(
        "attempt(lambda: os.rename(T + '/f', T + '/new'), lambda: os.rename(T + '/d/f', T + '/again'))"
    );
    what_lies_inside_is_exchanged_for_what_lies_outside: python(
        "put(S + '/x'); call((316, 276), AT, S + '/x', AT, T + '/f', 2)"
    );
    what_lies_outside_is_exchanged_for_one_another: python("call((316, 276), AT, T + '/f', AT, T + '/d', 2)");
    a_rename_outside_that_leaves_a_whiteout: python("call((316, 276), AT, T + '/f', AT, T + '/new', 4)");
    a_file_outside_is_linked_in_and_written: python(r"
os.link(T + '/f', S + '/x')
put(S + '/x', 'changed')
os.chmod(S + '/x', 0o600)
");
    a_link_outside_is_linked_in: python("os.link(T + '/l', S + '/x', follow_symlinks=False)");
    a_file_inside_is_linked_out: python("put(S + '/x'); os.link(S + '/x', T + '/new')");
    a_file_outside_gets_a_second_name_there: python("os.link(T + '/f', T + '/d/new')");
    a_descriptor_of_a_file_outside_is_linked_in: python(r"
fd = os.open(T + '/f', os.O_RDONLY)
attempt(lambda: call((265, 37), AT, '/proc/self/fd/%d' % fd, AT, S + '/x', 0x400),
        lambda: call((265, 37), fd, '', AT, S + '/y', EMPTY))
");
    a_descriptor_of_a_file_inside_is_linked_out: python(r"
put(S + '/x')
fd = os.open(S + '/x', os.O_RDWR)
attempt(lambda: call((265, 37), AT, '/proc/self/fd/%d' % fd, AT, T + '/new', 0x400),
        lambda: call((265, 37), fd, '', AT, T + '/again', EMPTY))
");
    a_file_outside_is_removed: python("os.unlink(T + '/f')");
    a_link_outside_is_removed: python("os.unlink(T + '/l')");
    a_directory_outside_is_removed: python("os.rmdir(T + '/empty')");
    a_tree_outside_is_removed: shell("rm -rf \"$T\"/* \"$T\"");
    a_directory_is_made_outside: python("os.mkdir(T + '/new'); os.umask(0)");
    a_link_is_made_outside: python("os.symlink('/etc', T + '/new')");
    a_named_pipe_is_made_outside: python("os.mkfifo(T + '/new')");
    a_socket_node_is_made_outside: python("os.mknod(T + '/new', 0o140644)");
    a_plain_file_is_made_outside_as_a_node: python("os.mknod(T + '/new', 0o100644)");
    a_whiteout_is_made_outside: python("os.mknod(T + '/new', 0o020000, 0)");
    a_device_node_is_made_outside: python("os.mknod(T + '/new', 0o020666, os.makedev(1, 3))").for_root();
    a_named_pipe_outside_is_written_to: python(
        "attempt(lambda: os.write(os.open(T + '/pipe', os.O_RDWR | os.O_NONBLOCK), b'x' * 9), lambda: put(T + '/pipe'))"
    )
        .setup("mkfifo \"$T/pipe\"")
        .neighbour(KEEPS_THE_PIPE)
        .witness(WHAT_IS_IN_THE_PIPE);
    the_temp_area_is_a_stepping_stone: shell(
        "D=$(mktemp -d -p /tmp); echo x > \"$D/x\"; ln -s \"$T\" \"$D/way\"; echo x > \"$D/way/new\"; \
         mv \"$D/x\" \"$T/moved\"; ln \"$T/f\" \"$D/second\" && echo x > \"$D/second\"; rm -r \"$D\""
    )
    .in_workspace_write();
    what_the_users_programs_read_when_they_start: shell(
        "echo x >> \"$HOME/.profile\"; mkdir -p \"$HOME/.ssh\" && echo x > \"$HOME/.ssh/authorized_keys\"; echo x > ~/.bashrc"
    )
    .undo("rm -rf \"$HOME/.profile\" \"$HOME/.ssh\" \"$HOME/.bashrc\"");
}

/// Keeps the pipe, and so what is in it.
const KEEPS_THE_PIPE: &str = r"
import signal
pipe = os.open(T + '/pipe', os.O_RDWR)
print('ready', flush=True)
signal.pause()
";

/// How many bytes are in it.
const WHAT_IS_IN_THE_PIPE: &str = "python3 -c 'import array, fcntl, os
waiting = array.array(\"i\", [0])
fcntl.ioctl(os.open(os.environ[\"T\"] + \"/pipe\", os.O_RDONLY | os.O_NONBLOCK), 0x541b, waiting)
print(waiting[0])'";
