//! Where the one-line documents go: stdout with `--json`, the file or descriptor asked for, and the
//! stream of events.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, poll};
use ringfence::Error;
use serde::Serialize;

use super::args::RunArgs;
use super::render;

/// How long a reader of events may take to make room for the next, in milliseconds.
const PATIENCE: u16 = 1000;

/// The receivers of a run's document.
pub(crate) struct Documents {
    stdout: bool,
    others: Vec<(String, File)>,
    events: Option<File>,
}

impl Documents {
    /// Stdout when `stdout` says so; nobody else yet.
    pub(crate) const fn new(stdout: bool) -> Self {
        Self {
            stdout,
            others: Vec::new(),
            events: None,
        }
    }

    /// Whether the document goes to stdout, so that nothing has to be said in words.
    pub(crate) const fn on_stdout(&self) -> bool {
        self.stdout
    }

    /// Opens `--report` and `--report-fd` before anything runs: a report that could never be
    /// written is found out in time, and the command cannot exchange the file meanwhile.
    ///
    /// # Errors
    /// [`Error::Input`] that names the option.
    pub(crate) fn open(&mut self, args: &RunArgs) -> Result<(), Error> {
        if let Some(path) = &args.report {
            let hint = "name a file that you may write, by a path without links";
            let file = create(path, 0o666).map_err(|e| refused("--report", path, &e, hint))?;
            self.others.push((format!("--report {}", path.display()), file));
        }
        if let Some(number) = args.report_fd {
            self.others
                .push((format!("--report-fd {number}"), open_descriptor("--report-fd", number)?));
        }
        if let Some(number) = args.events_fd {
            self.events = Some(open_descriptor("--events-fd", number)?);
        }
        Ok(())
    }

    /// Tells an event, one line, to whoever follows the run. A reader that is gone is told nothing
    /// more, and the run goes on.
    pub(crate) fn event(&mut self, name: &'static str, document: &impl Serialize) {
        #[derive(Serialize)]
        struct Named<'a, T> {
            event: &'static str,
            #[serde(flatten)]
            document: &'a T,
        }
        let Some(file) = &mut self.events else { return };
        let written = serde_json::to_vec(&Named { event: name, document })
            .map_err(io::Error::other)
            .and_then(|mut line| {
                line.push(b'\n');
                // The command waits meanwhile, and its deadline too.
                let mut reader = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
                match poll(&mut reader, PATIENCE) {
                    Ok(0) => return Err(io::Error::other("nobody reads them")),
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
                file.write_all(&line)
            });
        if let Err(error) = written {
            render::trouble(&format!("events could not be told any further: {error}"));
            self.events = None;
        }
    }

    /// Writes the document, one line, to every receiver.
    ///
    /// One that does not take it is named on stderr and changes nothing else: the command has run,
    /// and the exit status goes on speaking of the command.
    pub(crate) fn deliver(&mut self, document: &impl Serialize) {
        if !self.stdout && self.others.is_empty() {
            return;
        }
        let mut line = match serde_json::to_vec(document) {
            Ok(line) => line,
            Err(error) => return render::trouble(&format!("the report could not be written: {error}")),
        };
        line.push(b'\n');
        if self.stdout
            && let Err(error) = render::document(&line)
        {
            render::trouble(&format!("the report could not be written to standard output: {error}"));
        }
        for (name, file) in &mut self.others {
            // Whatever the command wrote into the file meanwhile is no part of the report.
            let ours = name.starts_with("--report ") && file.metadata().is_ok_and(|about| about.is_file());
            let emptied = if ours { file.set_len(0) } else { Ok(()) };
            let there = emptied.and_then(|()| still_named(name, file));
            if let Err(error) = there.and_then(|()| file.write_all(&line)) {
                render::trouble(&format!("the report could not be written ({name}): {error}"));
            }
        }
    }
}

/// Makes or empties a file. No link is followed on the way: a command of an earlier run may have left it.
#[cfg(target_os = "linux")]
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<File> {
    use nix::fcntl::{AT_FDCWD, OpenHow, ResolveFlag, openat2};
    use nix::sys::stat::Mode;
    let how = OpenHow::new()
        .flags(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_CLOEXEC)
        .mode(Mode::from_bits_truncate(mode))
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(File::from(openat2(AT_FDCWD, path, how)?))
}

/// Makes or empties a file. No link is followed on the way but for those of the system itself: a command
/// of an earlier run may have left it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    const SYSTEMS: [&str; 3] = ["/tmp", "/var", "/etc"];
    let linked = SYSTEMS.iter().any(|link| path.starts_with(link));
    let plain = match path.strip_prefix("/") {
        Ok(rest) if linked => Path::new("/private").join(rest),
        _ => path.to_owned(),
    };
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .custom_flags(nix::libc::O_NOFOLLOW_ANY)
        .open(plain)
}

/// Whether a report's file still stands under its name.
fn still_named(name: &str, file: &File) -> io::Result<()> {
    let Some(path) = name.strip_prefix("--report ") else {
        return Ok(());
    };
    let (here, there) = (file.metadata()?, std::fs::symlink_metadata(path));
    let same = there.is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino()));
    if same {
        Ok(())
    } else {
        Err(io::Error::other(
            "the file was exchanged for another while the command ran",
        ))
    }
}

fn open_descriptor(option: &str, number: i32) -> Result<File, Error> {
    let hint = format!("open it for writing first, as in `{option} 3 3>file`");
    inherited(number).map_err(|e| refused(option, number.to_string(), &e, &hint))
}

fn refused(field: &str, value: impl Into<OsString>, error: &io::Error, hint: &str) -> Error {
    Error::Input {
        field: field.to_owned(),
        value: value.into(),
        reason: error.to_string(),
        hint: hint.to_owned(),
    }
}

/// A descriptor that was handed to this process and that can be written.
fn inherited(number: i32) -> io::Result<File> {
    let fd = ringfence_backend::descriptor::inherited(number)?;
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    if flags & OFlag::O_ACCMODE == OFlag::O_RDONLY {
        return Err(io::Error::other("it is open for reading only"));
    }
    Ok(File::from(fd))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_report_file_gets_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        let mut documents = Documents::new(false);
        documents
            .open(&RunArgs {
                report: Some(path.clone()),
                ..RunArgs::default()
            })
            .unwrap();
        documents.deliver(&["a\nb"]);
        assert_eq!(std::fs::read_to_string(path).unwrap(), "[\"a\\nb\"]\n");
    }

    #[test]
    fn a_report_that_could_not_be_written_is_refused_before_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let missing = RunArgs {
            report: Some(directory.path().join("none/report.json")),
            ..RunArgs::default()
        };
        let error = Documents::new(false).open(&missing).unwrap_err();
        assert!(matches!(error, Error::Input { field, .. } if field == "--report"));

        let readable = File::open("/dev/null").unwrap();
        for number in [readable.as_raw_fd(), 987_654] {
            let args = RunArgs {
                report_fd: Some(number),
                ..RunArgs::default()
            };
            let error = Documents::new(false).open(&args).unwrap_err();
            assert!(matches!(error, Error::Input { field, .. } if field == "--report-fd"));
        }
    }
}
