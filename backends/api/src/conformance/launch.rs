//! What reaches the command, and what it finds.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::sys::resource::Resource;
use nix::sys::stat::{Mode, umask};

use super::ended::await_fd;
use super::run::{Run, pin};
use super::world::{names, read, write};
use super::{Bench, list, must, said};
use crate::calls::{Call, table};
use crate::{Answer, ChildLimit, Observe, SandboxMode, Temp};

list![
    no_descriptor_of_the_runners_reaches_the_command,
    words_variables_and_directory_arrive_byte_for_byte,
    the_command_has_no_privilege_and_gains_none,
    limits_hold,
    a_call_that_is_watched_waits_for_its_answer,
];

fn no_descriptor_of_the_runners_reaches_the_command(bench: &Bench<'_>) -> Result<(), String> {
    let secret = bench.outside().join("secret");
    write(&secret, "keep\n")?;
    let file = said("a file", std::fs::File::options().read(true).write(true).open(&secret))?;
    // Duplicates made so are not close-on-exec.
    let _open = [
        said("a descriptor", nix::unistd::dup(&file))?,
        said("a descriptor", nix::unistd::dup(&file))?,
    ];
    let script = "
for number in range(3, 1024):
    try: os.write(number, b'x')
    except OSError as error:
        if error.errno == errno.EBADF: continue
    print(number, os.readlink('/proc/self/fd/%d' % number), sep='=')
print('all=tried')
";
    let ended = Run::writing(bench)?.attempts(script).finish()?;
    must(read(&secret)? == "keep\n", || {
        "a file was written through a descriptor of the runner's".to_owned()
    })?;
    ended.all(|what| what == "tried")?;
    // The one that is meant for it keeps its number.
    let mut run = Run::writing(bench)?;
    let extra = said("a descriptor", nix::unistd::dup(&file))?;
    let number = extra.as_raw_fd().to_string();
    run.extra = Some(extra);
    let ended = run.attempts(script).finish()?;
    let got: Vec<_> = ended.attempts()?.into_keys().collect();
    must(got == [number.clone(), "all".to_owned()], || {
        format!("it got {got:?}, and not {number} alone")
    })
}

/// Bytes that are hard to hand on.
const ODD: [&[u8]; 7] = [
    b"",
    b" a  b ",
    b"new\nline",
    b"\xff\xfe\x01",
    b"'\"\\$`*",
    b"--args",
    b"=",
];

fn words_variables_and_directory_arrive_byte_for_byte(bench: &Bench<'_>) -> Result<(), String> {
    let directory = bench.workspace().join(OsStr::from_bytes(b"o dd\n\xff\\040"));
    said("a directory", std::fs::create_dir(&directory))?;
    let mut run = Run::writing(bench)?.temp(Temp::Private)?;
    run.workdir = pin(&directory)?;
    run = run.shell("cat /proc/$$/cmdline > words; cat /proc/$$/environ > variables; umask > mask; pwd > where");
    run.argv[0] = OsString::from_vec(b"-na\xffme".to_vec());
    run.argv.extend(ODD.map(|bytes| OsString::from_vec(bytes.to_vec())));
    run.argv.push("x".repeat(100_000).into());
    for (number, bytes) in ODD.into_iter().enumerate() {
        run.env
            .push((format!("ODD_{number}").into(), OsString::from_vec(bytes.to_vec())));
    }
    run.env.push((OsString::from_vec(b"n\xffn".to_vec()), "v".into()));
    let before = umask(Mode::from_bits_truncate(0o027));
    let ended = run.finish();
    umask(before);
    ended?.must_succeed()?;
    let got = |name: &str| said(name, std::fs::read(directory.join(name)));
    let words = run.argv.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat());
    must(got("words")? == words.collect::<Vec<u8>>(), || {
        "the words are not those that were given".to_owned()
    })?;
    let variables = run
        .env
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    must(got("variables")? == variables.collect::<Vec<u8>>(), || {
        format!(
            "the variables are {}",
            String::from_utf8_lossy(&got("variables").unwrap_or_default())
        )
    })?;
    must(
        got("where")? == [directory.as_os_str().as_bytes(), b"\n"].concat(),
        || "it stood elsewhere".to_owned(),
    )?;
    let mask = got("mask")?;
    must(mask == b"0027\n", || {
        format!("the mask is {}", String::from_utf8_lossy(&mask))
    })
}

fn the_command_has_no_privilege_and_gains_none(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
wanted = ['CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs']
for line in open('/proc/self/status'):
    name, value = line.split(':', 1)
    if name in wanted: print(name, int(value, 16), sep='=')
";
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let ended = Run::new(bench, mode)?.attempts(script).finish()?;
        for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            ended.must_be(name, &["0"])?;
        }
        ended.must_be("NoNewPrivs", &["1"])?;
    }
    Ok(())
}

fn limits_hold(bench: &Bench<'_>) -> Result<(), String> {
    let limit = |resource: Resource, soft, hard| ChildLimit {
        resource: resource as i32,
        soft,
        hard,
    };
    let mut run = Run::writing(bench)?;
    run.limits = vec![
        limit(Resource::RLIMIT_FSIZE, 4096, 4096),
        limit(Resource::RLIMIT_NOFILE, 17, 23),
        limit(Resource::RLIMIT_CORE, 0, 0),
    ];
    let script = "
def numbers(kind):
    got = ctypes.create_string_buffer(16); checked(libc.getrlimit(kind, got))
    return '%d to %d' % (int.from_bytes(got.raw[:8], 'little'), int.from_bytes(got.raw[8:], 'little'))
print('size', numbers(1), sep='=')
print('descriptors', numbers(7), sep='=')
def fill():
    with open('file', 'wb', 0) as file:
        while file.write(bytes(1024)): pass
def many():
    while True: os.dup(0)
def raise_again():
    import struct
    checked(libc.setrlimit(1, struct.pack('QQ', 8192, 8192)))
attempt('fill', fill)
attempt('many', many)
attempt('raise', raise_again)
";
    let ended = run.attempts(script).finish()?;
    ended.must_be("size", &["4096 to 4096"])?;
    ended.must_be("descriptors", &["17 to 23"])?;
    ended.must_be("fill", &["EFBIG"])?;
    ended.must_be("many", &["EMFILE"])?;
    ended.must_be("raise", &["EPERM"])?;
    let size = said("the file", std::fs::metadata(bench.workspace().join("file")))?.len();
    must(size == 4096, || format!("the file has {size} bytes"))
}

fn a_call_that_is_watched_waits_for_its_answer(bench: &Bench<'_>) -> Result<(), String> {
    let script = "
attempt('first', os.mkdir, D + '/first')
attempt('second', os.mkdir, D + '/second')
attempt('inside', os.mkdir, H + '/inside')
";
    let mut run = Run::writing(bench)?.attempts_on(&bench.outside(), &bench.workspace(), script);
    run.observe = Observe::Required;
    let mut started = run.start()?;
    let listener = started.launched.listener.take().ok_or("no listener arrived")?;
    let directories: Vec<_> = table()
        .into_iter()
        .filter(|(_, call)| matches!(call, Call::MakeDirectory(_)))
        .collect();
    let mut made = 0;
    while made < 3 {
        await_fd(&listener, "a call that waits")?;
        let waiting = said("the listener", listener.receive())?;
        let makes = directories.iter().any(|(number, _)| *number == waiting.number);
        must(started.launched.ended().is_none(), || {
            "the command did not wait".to_owned()
        })?;
        let answer = if makes && made == 0 {
            Answer::Fail(nix::errno::Errno::EDQUOT)
        } else {
            Answer::Continue
        };
        made += i32::from(makes);
        said("the listener", listener.answer(waiting.id, answer))?;
    }
    let ended = started.finish()?;
    // The answer is what the call is told, and what goes on is judged by the kernel.
    ended.must_be("first", &["EDQUOT"])?;
    ended.must_be("second", &["EROFS", "EACCES"])?;
    ended.must_be("inside", &["done"])?;
    let made = names(&bench.outside())?;
    must(made.is_empty(), || format!("{made:?} were made outside"))
}
