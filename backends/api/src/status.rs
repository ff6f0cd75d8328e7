//! The status channel: what the child tells the runner before the command runs.
//!
//! A close-on-exec socket that the command never holds. `Armed` says that the boundary stands;
//! `Failed` names a stage and an errno; a launch that ends without it after `Armed` has executed the
//! program. Without `Armed` the command never ran, whatever the exit status says. Later one byte
//! from the runner says that everybody was asked to end, and a [`Word`] comes from the reaper. To the reaper, the end of the channel says that the run is to end.

/// Where a launch stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// The process itself and its namespaces.
    Namespaces = 1,
    /// The runner is gone, or the child could not tie its life to it.
    Parent,
    /// A session of its own.
    Session,
    /// The maps of the user namespace.
    UserMap,
    /// Mounts private and read-only.
    Mounts,
    /// A writable root that could not be kept writable, or is no longer what it was.
    WritableRoot,
    /// A protected path that could not be made read-only, or is no longer what it was.
    Protected,
    /// The accelerator could not be put in its place.
    Accelerator,
    /// The working directory is no longer what it was, or cannot be entered.
    WorkingDirectory,
    /// Standard streams.
    Streams,
    /// Inherited descriptors.
    Descriptors,
    /// Dropping capabilities.
    Capabilities,
    /// The Landlock domain.
    Landlock,
    /// The system call filter.
    Seccomp,
    /// The filter's listener, through which denials are known.
    Listener,
    /// Executing the program.
    Exec,
    /// The command's resource limits.
    Limits,
    /// The launcher's order, and its place inside a boundary that another program made.
    Place,
}

impl Stage {
    const ALL: [Self; 18] = [
        Self::Namespaces,
        Self::Parent,
        Self::Session,
        Self::UserMap,
        Self::Mounts,
        Self::WritableRoot,
        Self::Protected,
        Self::Accelerator,
        Self::WorkingDirectory,
        Self::Streams,
        Self::Descriptors,
        Self::Capabilities,
        Self::Landlock,
        Self::Seccomp,
        Self::Listener,
        Self::Exec,
        Self::Limits,
        Self::Place,
    ];

    /// What was being done, for a sentence that begins with "could not".
    #[must_use]
    pub const fn attempt(self) -> &'static str {
        match self {
            Self::Namespaces => "make a process with namespaces of its own",
            Self::Parent => "tie the command's life to the runner's",
            Self::Session => "give the command a session of its own",
            Self::UserMap => "map the caller into a user namespace",
            Self::Mounts => "make the mounts read-only",
            Self::WritableRoot => "keep a writable root writable",
            Self::Protected => "keep a protected path as it is",
            Self::Accelerator => "show the copy of the C library",
            Self::WorkingDirectory => "enter the working directory",
            Self::Streams => "set up the standard streams",
            Self::Descriptors => "close inherited descriptors",
            Self::Capabilities => "drop capabilities",
            Self::Landlock => "enter the Landlock domain",
            Self::Seccomp => "install the system call filter",
            Self::Listener => "watch for denials",
            Self::Exec => "execute the program",
            Self::Limits => "set the command's limits",
            Self::Place => "find itself in the boundary that was asked for",
        }
    }
}

/// A stage and the errno it ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not {}: {}", stage.attempt(), std::io::Error::from_raw_os_error(*errno))]
pub struct Failure {
    /// Where it stopped.
    pub stage: Stage,
    /// The kernel's errno.
    pub errno: i32,
}

/// One record of the channel: eight bytes, written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The boundary stands.
    Armed,
    /// The launch stopped.
    Failed(Failure),
    /// The outcome of one numbered attempt of a trial; errno 0 is success.
    Tried {
        /// The attempt's number.
        attempt: u8,
        /// The kernel's errno.
        errno: i32,
    },
    /// The launcher runs, inside what another program has made.
    Here,
    /// The command's process was started; what failed then was told before.
    Started,
}

/// What a reaper says of its run once the command runs: one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Word {
    /// The command has ended, and others are left.
    Ended = 1,
    /// The command was stopped (SIGSTOP, SIGTSTP and their like).
    Stopped = 2,
}

/// The size of a record in bytes.
pub const RECORD: usize = 8;

impl Record {
    /// The record's bytes.
    #[must_use]
    pub const fn encode(self) -> [u8; RECORD] {
        let (kind, number, errno) = match self {
            Self::Armed => (b'A', 0, 0),
            Self::Failed(failure) => (b'F', failure.stage as u8, failure.errno),
            Self::Tried { attempt, errno } => (b'T', attempt, errno),
            Self::Here => (b'H', 0, 0),
            Self::Started => (b'S', 0, 0),
        };
        let e = errno.to_ne_bytes();
        [kind, number, 0, 0, e[0], e[1], e[2], e[3]]
    }

    /// Reads one record; `None` for bytes that are none.
    #[must_use]
    pub fn decode(bytes: [u8; RECORD]) -> Option<Self> {
        let [kind, number, 0, 0, e0, e1, e2, e3] = bytes else {
            return None;
        };
        let errno = i32::from_ne_bytes([e0, e1, e2, e3]);
        match kind {
            b'A' => Some(Self::Armed),
            b'F' => {
                let stage = Stage::ALL.into_iter().find(|stage| *stage as u8 == number)?;
                Some(Self::Failed(Failure { stage, errno }))
            }
            b'H' => Some(Self::Here),
            b'S' => Some(Self::Started),
            b'T' => Some(Self::Tried { attempt: number, errno }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_survives_the_channel() {
        let stages = Stage::ALL
            .into_iter()
            .map(|stage| Record::Failed(Failure { stage, errno: 13 }));
        let others = [
            Record::Armed,
            Record::Here,
            Record::Started,
            Record::Tried { attempt: 3, errno: 30 },
        ];
        for record in stages.chain(others) {
            assert_eq!(Record::decode(record.encode()), Some(record));
        }
    }

    #[test]
    fn bytes_that_are_no_record_are_refused() {
        assert_eq!(Record::decode([0; RECORD]), None);
        assert_eq!(Record::decode([b'F', 99, 0, 0, 1, 0, 0, 0]), None);
        assert_eq!(Record::decode([b'A', 0, 1, 0, 0, 0, 0, 0]), None);
    }
}
