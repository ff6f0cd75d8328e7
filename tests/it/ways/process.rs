//! Through other processes: neighbours of the same user, the runner, and what outlives a run.

use super::way::{Way, python, shell};
use super::ways;

/// A neighbour that has the directory and a file of it open.
const HOLDER: &str = r"
import time
os.chdir(T)
keep = os.open('f', os.O_RDWR), os.open('.', os.O_RDONLY)
os.dup2(keep[0], 70); os.dup2(keep[1], 71)
libc.prctl(0x59616d61, -1, 0, 0, 0)
print('ready', flush=True)
while True: time.sleep(60)
";

/// A neighbour that makes a file as soon as a byte of its memory, whose place it tells, is not zero.
const PUPPET: &str = r"
import time
string = ctypes.create_string_buffer(4096)
put(os.environ['HOME'] + '/place', '%018d' % ctypes.addressof(string))
libc.prctl(0x59616d61, -1, 0, 0, 0)
print('ready', flush=True)
while string.raw[0] == 0: time.sleep(0.001)
put(T + '/new')
while True: time.sleep(60)
";

const fn at_holder(program: &'static str) -> Way {
    python(program).neighbour(HOLDER)
}

/// The attempt pulls the string by `pull(place)`, and waits for what comes of it if that worked.
macro_rules! at_puppet {
    ($pull:literal) => {
        python(concat!(
            "import time\nplace = int(open(os.environ['HOME'] + '/place').read())\n",
            $pull,
            "\npull(place)\nwhile not os.path.exists(T + '/new'): time.sleep(0.001)"
        ))
        .neighbour(PUPPET)
    };
}

ways! {
    the_root_of_a_neighbour: at_holder("put('/proc/%d/root' % N + T + '/new')");
    the_working_directory_of_a_neighbour: at_holder("put('/proc/%d/cwd/new' % N)");
    a_descriptor_of_a_neighbours_file: at_holder("os.write(os.open('/proc/%d/fd/70' % N, os.O_RDWR), b'x')");
    a_descriptor_of_a_neighbours_directory: at_holder("put('/proc/%d/fd/71/new' % N)");
    the_threads_of_a_neighbour: at_holder("put('/proc/%d/task/%d/cwd/new' % (N, N))");
    mode_bits_through_a_neighbours_links: at_holder(
        "attempt(*[lambda way=way: os.chmod('/proc/%d/%s' % (N, way), 0o700) for way in ('fd/70', 'cwd', 'root' + T + '/g')])"
    );
    a_descriptor_taken_from_a_neighbour: at_holder("os.write(call(438, os.pidfd_open(N), 70, 0), b'x')");
    a_directory_taken_from_a_neighbour: at_holder("os.fchdir(call(438, os.pidfd_open(N), 71, 0)); put('new')");
    the_mounts_of_a_neighbour: at_holder(
        "call((308, 268), os.pidfd_open(N), 0x20000); put(T + '/new')"
    )
    .for_root();
    the_mounts_of_a_neighbour_by_the_name_of_its_namespace: shell(
        "nsenter --mount=/proc/$N/ns/mnt bash -c 'echo x > \"$T/new\"'"
    )
    .neighbour(HOLDER)
    .for_root();
    the_program_that_a_neighbour_runs: shell("chmod 700 /proc/$N/exe; echo x > /proc/$N/exe").neighbour(r"
import shutil
shutil.copy('/bin/sleep', os.environ['HOME'] + '/sleep')
print('ready', flush=True)
os.execv(os.environ['HOME'] + '/sleep', ['sleep', '1000'])
");
    the_notes_about_a_neighbour: shell("echo 5 > /proc/$N/oom_score_adj; echo 3f > /proc/$N/coredump_filter")
        .neighbour(HOLDER)
        .witness("cat /proc/$N/oom_score_adj /proc/$N/coredump_filter");
    a_neighbours_memory_as_a_file: at_puppet!(r"
def pull(place): os.pwrite(os.open('/proc/%d/mem' % N, os.O_RDWR), b'x', place)");
    a_neighbours_memory_by_the_call: at_puppet!(r"
def pull(place):
    text = ctypes.create_string_buffer(b'x')
    here, there = struct.pack('QQ', ctypes.addressof(text), 1), struct.pack('QQ', place, 1)
    call((311, 271), N, here, 1, there, 1, 0)");
    a_neighbour_that_is_traced: at_puppet!(r"
def pull(place):
    call((101, 117), 16, N, 0, 0)
    os.waitpid(N, 0x40000000)
    call((101, 117), 4, N, place, 1)
    call((101, 117), 17, N, 0, 0)");
    a_neighbour_that_is_seized: at_puppet!(r"
def pull(place):
    call((101, 117), 0x4206, N, 0, 0)
    call((101, 117), 0x4207, N, 0, 0)
    os.waitpid(N, 0x40000000)
    call((101, 117), 5, N, place, 1)
    call((101, 117), 17, N, 0, 0)");
    the_process_that_started_the_attempt: shell(
        r"bash -c 'for p in $PPID 1; do for way in root$T cwd/../out cwd/t; do
           echo x > /proc/$p/$way/new; chmod 700 /proc/$p/$way/f; done; done'; true"
    );
    every_process_that_can_be_seen: python(r"
for number in [name for name in os.listdir('/proc') if name.isdigit()]:
    attempt(lambda: put('/proc/' + number + '/root' + T + '/new%s' % number))
    if os.path.exists(T + '/new' + number): break
");
    the_runner_itself_without_confinement: shell(
        "\"$BIN\" run -m danger-full-access -c 'echo x > \"$T/new\"; chmod 700 \"$T/f\"'"
    );
    the_runner_itself_with_one_grant_more: shell("\"$BIN\" run -m workspace-write --write \"$T\" -c 'echo x > \"$T/new\"'");
    the_runner_itself_in_another_workspace: shell(
        "\"$BIN\" run -m workspace-write -C \"$T\" -c 'echo x > new; rm f; chmod 700 d'"
    );
    the_runner_itself_and_its_report: shell("cd \"$S\"; \"$BIN\" run -m danger-full-access --report \"$T/new\" -- true");
    the_runner_itself_and_its_state: shell(
        "export RINGFENCE_STATE_DIR=\"$T/d\"; \"$BIN\" run -m workspace-write -C \"$T/empty\" -- true; \"$BIN\" doctor"
    )
    .in_workspace_write();
    a_program_with_the_bit_of_another_user: shell("\"$T/touch\" \"$T/f\" \"$T/theirs/new\"")
        .before("cp /bin/touch \"$T/touch\"; chmod 4755 \"$T/touch\"; mkdir -m 700 \"$T/theirs\"");
    a_program_with_capabilities_of_its_own: python(
        "import subprocess; subprocess.run([T + '/python', '-c', 'import os; os.chown(os.environ[\"T\"] + \"/f\", 12, 12)'])"
    )
    .before(
        "cp \"$(readlink -f \"$(command -v python3)\")\" \"$T/python\"; python3 -c 'import os, struct
os.setxattr(os.environ[\"T\"] + \"/python\", \"security.capability\", struct.pack(\"IIIII\", 0x2000001, 1, 0, 0, 0))'"
    )
    .needs(root_prepares)
    .metadata();
    what_goes_on_when_the_attempt_is_over: python(r"
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    # Its output stays open, so that whoever waits for that waits for this.
    while os.getppid() == parent: pass
    attempt(lambda: put(T + '/new'), lambda: os.utime(T + '/f'))
    os._exit(0)
");
    what_was_started_twice_over_and_waits: python(r"
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(writing)
        # Until the attempt has ended.
        os.read(reading, 1)
        put(T + '/new')
    os._exit(0)
os.wait()
");
    the_memory_of_a_process_that_dies_outside: shell(
        "ulimit -c unlimited; cd \"$T\" && bash -c 'kill -SEGV $$'; cd \"$T/d\" && bash -c 'kill -ABRT $$'"
    )
    .needs(dumps_lie_where_the_process_was);
    a_thread_with_a_directory_of_its_own: python(r"
import threading
def use():
    call((272, 97), 0x200)
    os.chdir(T)
    attempt(lambda: put('new'), lambda: os.chmod('f', 0o700))
thread = threading.Thread(target=use)
thread.start()
thread.join()
");
    a_child_that_shares_all_memory: python(r#"
child = os.posix_spawn('/bin/bash', ['bash', '-c', 'cd "$T" && echo x > new && mv f moved'], os.environ)
os.waitpid(child, 0)
"#);
}

/// Root of the harness prepares what the user then uses.
fn root_prepares() -> Result<(), &'static str> {
    if nix::unistd::geteuid().is_root() {
        Ok(())
    } else {
        Err("root")
    }
}

/// core(5): a pattern without a pipe or a place of its own.
fn dumps_lie_where_the_process_was() -> Result<(), &'static str> {
    if crate::support::text("/proc/sys/kernel/core_pattern").starts_with(['|', '/']) {
        Err("a core_pattern that leaves dumps where the process was")
    } else {
        Ok(())
    }
}
