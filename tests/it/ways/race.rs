//! Names, descriptors and directories that change their meaning between look and use.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ringfence::SandboxMode::WorkspaceWrite;

use crate::support::{Case, for_each_user, names, text};

use super::programs::RACE;
use super::way::{Way, python, shell};
use super::ways;

macro_rules! race {
    ($kind:literal, $what:literal) => {
        racing(concat!(
            "mkdir \"$S/i\"; echo inside > \"$S/i/f\"; cd \"$S\"; \"$HOME/race\" ",
            $kind,
            " ",
            $what,
            " 80 \"$S/i\" \"$T\""
        ))
    };
}

const fn racing(script: &'static str) -> Way {
    shell(script).tools(&[RACE])
}

ways! {
    a_text_that_changes_while_a_file_is_written: race!("text", "contents");
    a_text_that_changes_while_names_are_made: race!("text", "names");
    a_text_that_changes_while_metadata_are_set: race!("text", "metadata").metadata();
    a_link_that_changes_while_a_file_is_written: race!("link", "contents");
    a_link_that_changes_while_names_are_made: race!("link", "names");
    a_link_that_changes_while_metadata_are_set: race!("link", "metadata").metadata();
    a_descriptor_that_changes_while_a_file_is_written: race!("descriptor", "contents");
    a_descriptor_that_changes_while_names_are_made: race!("descriptor", "names");
    a_descriptor_that_changes_while_metadata_are_set: race!("descriptor", "metadata").metadata();
    a_working_directory_that_changes_while_a_file_is_written: race!("cwd", "contents");
    a_working_directory_that_changes_while_names_are_made: race!("cwd", "names");
    a_working_directory_that_changes_while_metadata_are_set: race!("cwd", "metadata").metadata();
    a_directory_that_becomes_a_link_while_its_tree_is_removed: python(r"
import threading
# A naive remover that goes by names, until what it removed was the outside's.
over = []
def swap():
    while not over:
        attempt_quietly(lambda: call((316, 276), AT, S + '/d', AT, S + '/way', 2))
def attempt_quietly(function):
    try: function()
    except OSError: pass
os.mkdir(S + '/d')
os.symlink(T + '/d', S + '/way')
thread = threading.Thread(target=swap)
thread.start()
round = 0
while round < 200 or 'BARE' in os.environ:
    round += 1
    attempt_quietly(lambda: put(S + '/d/f'))
    attempt_quietly(lambda: os.unlink(S + '/d/f'))
    if not os.path.exists(T + '/d/f'): break
over.append(1)
thread.join()
");
    two_at_once_that_help_one_another: python(r"
import socket
# One makes links, the other follows them, and they hand each other what they have open.
one, two = socket.socketpair()
if os.fork() == 0:
    os.chdir('/')
    fds = [os.open(T, os.O_RDONLY), os.open(T + '/f', os.O_RDONLY), os.open(T, os.O_PATH)]
    socket.send_fds(one, [b'x'], fds)
    os._exit(0)
got = socket.recv_fds(two, 1, 4)[1]
os.wait()
attempt(lambda: os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=got[0]), lambda: os.chmod('f', 0o700, dir_fd=got[0]),
        lambda: os.fchmod(got[1], 0o711), lambda: os.mkdir('made', dir_fd=got[2]))
");
}

/// Who stands in a directory keeps it when somebody outside moves it out, and gets nowhere from there.
#[test]
fn a_directory_that_is_moved_out_while_the_attempt_stands_in_it_leads_nowhere_else() {
    const ATTEMPT: &str = r"
import time
os.chdir('sub')
fd = os.open('.', os.O_RDONLY)
put('../go')
while not os.path.exists(W + '/moved'): time.sleep(0.001)
attempt(lambda: put('../new'), lambda: os.chmod('../f', 0o700), lambda: put('../f'), lambda: os.unlink('../f'),
        lambda: os.open('../new', os.O_WRONLY | os.O_CREAT, dir_fd=fd), lambda: os.rename('../f', 'moved'),
        lambda: os.link('../f', 'second'), lambda: put(T + '/new'), lambda: os.symlink(T + '/f', 'way') or put('way'))
";
    const MOVE: &str =
        "mkdir -p sub; echo keep > sub/f; until [ -e go ]; do sleep 0.01; done; mv sub \"$OUT/sub\"; touch moved";
    for_each_user(|world| {
        for evidence in ["auto", "off"] {
            world.prepare("rm -rf \"$W\"/* \"$OUT\"/*; mkdir sub; echo keep > sub/f; echo keep > \"$OUT/f\"; chmod 644 \"$OUT/f\"");
            let mut mover = world.command("bash");
            let mut mover = mover.args(["-euc", MOVE]).spawn().unwrap();
            let report = Case::new(WorkspaceWrite)
                .options(["--evidence", evidence])
                .env("T", "$OUT")
                .argv(python(ATTEMPT).words("tried"))
                .run_in(world);
            assert!(mover.wait().unwrap().success());
            assert!(report.stdout().contains("tried"), "{report}");
            assert_eq!(names(world.beside()), ["f", "sub"], "{report}");
            assert_eq!(text(world.outside("f")), "keep\n", "{report}");
            let bits = fs::metadata(world.outside("f")).unwrap().permissions().mode() & 0o777;
            assert_eq!(bits, 0o644, "{report}");
        }
    });
}
