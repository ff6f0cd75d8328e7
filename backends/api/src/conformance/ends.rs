//! How runs end: the command's own status, nobody left, and nothing that goes on.

use std::fs::File;
use std::io::Write;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::ended::{Started, await_fd};
use super::run::Run;
use super::world::{names, read};
use super::{Bench, list, must, said};
use crate::descriptor::End;
use crate::status::Word;

list![
    an_exit_status_is_the_commands_own,
    a_death_by_signal_is_the_commands_own,
    a_command_that_ends_at_once_is_not_lost,
    nobody_outlives_the_run_and_who_was_left_is_counted,
    a_run_ends_when_it_is_dropped,
    a_run_ends_when_it_is_killed,
    who_is_spared_goes_on_until_the_end,
    a_stopped_command_is_told_and_goes_on,
];

fn an_exit_status_is_the_commands_own(bench: &Bench<'_>) -> Result<(), String> {
    for status in [0, 3, 125, 255] {
        let ended = Run::writing(bench)?.shell(&format!("exit {status}")).finish()?;
        must(ended.end == Some(End::Exited(status)), || {
            format!("{status}: {}", ended.shown())
        })?;
        must(ended.survivors == Some(0), || {
            format!("{status}: survivors {:?}", ended.survivors)
        })?;
    }
    Ok(())
}

fn a_death_by_signal_is_the_commands_own(bench: &Bench<'_>) -> Result<(), String> {
    for signal in [Signal::SIGTERM, Signal::SIGKILL, Signal::SIGSEGV] {
        let ended = Run::writing(bench)?
            .shell(&format!("kill -{} $$", signal as i32))
            .finish()?;
        must(ended.end == Some(End::Killed(signal as i32)), || {
            format!("{signal}: {}", ended.shown())
        })?;
        // Nobody of the run catches what is the command's to die of.
        let caught = format!("trap 'exit 7' {0}; kill -{0} $$", signal as i32);
        let ended = Run::writing(bench)?.shell(&caught).finish()?;
        let expected = if signal == Signal::SIGKILL {
            End::Killed(9)
        } else {
            End::Exited(7)
        };
        must(ended.end == Some(expected), || {
            format!("{signal} caught: {}", ended.shown())
        })?;
    }
    Ok(())
}

/// Has this process and all that it starts take turns, so that what is done at once is often done before
/// the runner looks.
fn on_one_processor() -> Result<(), String> {
    let own = Pid::from_raw(0);
    let all = said("the processors", sched_getaffinity(own))?;
    let first = (0..CpuSet::count()).find(|number| all.is_set(*number) == Ok(true));
    let mut one = CpuSet::new();
    said("a processor", one.set(first.unwrap_or(0)))?;
    said("a processor", sched_setaffinity(own, &one))
}

fn a_command_that_ends_at_once_is_not_lost(bench: &Bench<'_>) -> Result<(), String> {
    on_one_processor()?;
    for _ in 0..20 {
        let ended = Run::writing(bench)?.argv(["/bin/true"]).finish()?;
        must(ended.end == Some(End::Exited(0)), || ended.shown())?;
        must(ended.survivors == Some(0), || {
            format!("survivors: {:?}", ended.survivors)
        })?;
    }
    Ok(())
}

/// A word in the environment of every process of this world's runs, by which they are found.
fn mark(bench: &Bench<'_>) -> Vec<u8> {
    let mut mark = b"RINGFENCE_MARK=".to_vec();
    mark.extend_from_slice(bench.world.path().as_os_str().as_encoded_bytes());
    mark
}

/// The processes of this world's runs that live, as the host sees them.
fn living(bench: &Bench<'_>) -> Result<Vec<String>, String> {
    let mark = mark(bench);
    let numbers = names("/proc".as_ref())?.into_iter();
    let numbers = numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(numbers
        .filter(|number| {
            let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|window| window == mark)
        })
        .collect())
}

fn marked<'a>(bench: &'a Bench<'a>) -> Result<Run<'a>, String> {
    Ok(Run::writing(bench)?.env("RINGFENCE_MARK", bench.world.path()))
}

/// Two processes that leave their parent's session and group, each of which says that it is there. What
/// a boundary with a fault lets go on ends by itself after a while.
const LEAVERS: &str = "
import signal
signal.alarm(60)
def leaver(twice):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if twice and os.fork() != 0: os._exit(0)
        signal.alarm(60)
        for number in [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]: signal.signal(number, signal.SIG_IGN)
        os.write(theirs, b'x')
        while True: signal.pause()
    os.read(ours, 1)
    if twice: os.wait()
leaver(True)
leaver(False)
with open('there', 'w') as there: there.write('x')
";

/// A fifo in the workspace. Opened for both, it keeps nobody waiting and never ends.
fn fifo(bench: &Bench<'_>, name: &str) -> Result<File, String> {
    let path = bench.workspace().join(name);
    said(name, mkfifo(&path, Mode::S_IRWXU))?;
    said(name, File::options().read(true).write(true).open(&path))
}

/// Starts them, and waits until they are there.
fn leavers<'a>(bench: &'a Bench<'a>, and: &str) -> Result<Started, String> {
    let there = fifo(bench, "there")?;
    let started = marked(bench)?.attempts(&format!("{LEAVERS}{and}")).start()?;
    await_fd(there, "the processes that leave")?;
    Ok(started)
}

fn nobody_outlives_the_run_and_who_was_left_is_counted(bench: &Bench<'_>) -> Result<(), String> {
    let ended = leavers(bench, "sys.exit(3)\n")?.finish()?;
    let living = living(bench)?;
    must(living.is_empty(), || format!("{living:?} outlive the run"))?;
    must(ended.end == Some(End::Exited(3)), || ended.shown())?;
    must(ended.survivors == Some(2), || {
        format!("survivors: {:?}", ended.survivors)
    })
}

fn a_run_ends_when_it_is_dropped(bench: &Bench<'_>) -> Result<(), String> {
    let started = leavers(bench, "while True: signal.pause()\n")?;
    let there = living(bench)?;
    must(there.len() >= 3, || {
        format!("only {there:?} of the run are seen from outside")
    })?;
    drop(started);
    let living = living(bench)?;
    must(living.is_empty(), || format!("{living:?} go on"))
}

fn a_run_ends_when_it_is_killed(bench: &Bench<'_>) -> Result<(), String> {
    let started = leavers(bench, "while True: signal.pause()\n")?;
    started.launched.kill();
    let ended = started.finish()?;
    let living = living(bench)?;
    must(living.is_empty(), || format!("{living:?} go on"))?;
    must(ended.end == Some(End::Killed(9)), || ended.shown())
}

fn who_is_spared_goes_on_until_the_end(bench: &Bench<'_>) -> Result<(), String> {
    let (mut first, mut second) = (fifo(bench, "first")?, fifo(bench, "second")?);
    let script = "(read _ < second; echo late > late) & read _ < first; exit 4";
    let started = marked(bench)?.shell(script).start()?;
    started.launched.spare();
    said("the fifo", first.write_all(b"go\n"))?;
    await_fd(started.launched.notice(), "the end of the command")?;
    must(started.launched.word() == Some(Word::Ended), || {
        "it was not told that others are left".to_owned()
    })?;
    let end = started.launched.ended();
    must(end == Some(End::Exited(4)), || format!("{end:?}"))?;
    said("the fifo", second.write_all(b"go\n"))?;
    let ended = started.finish()?;
    must(read(&bench.workspace().join("late"))? == "late\n", || {
        "it was killed before its end".to_owned()
    })?;
    must(ended.end == Some(End::Exited(4)), || ended.shown())
}

fn a_stopped_command_is_told_and_goes_on(bench: &Bench<'_>) -> Result<(), String> {
    on_one_processor()?;
    for _ in 0..20 {
        let started = marked(bench)?.shell("kill -STOP $$; echo on; exit 5").start()?;
        await_fd(started.launched.notice(), "the word that the command was stopped")?;
        let word = started.launched.word();
        must(word == Some(Word::Stopped), || format!("the word is {word:?}"))?;
        let command = started.launched.command.ok_or("the command's number is not known")?;
        let known = living(bench)?.contains(&command.to_string());
        must(known, || format!("{command} is no process of the run"))?;
        said("SIGCONT", kill(Pid::from_raw(command), Signal::SIGCONT))?;
        let ended = started.finish()?;
        must(ended.end == Some(End::Exited(5)) && ended.text() == "on\n", || {
            ended.shown()
        })?;
    }
    Ok(())
}
