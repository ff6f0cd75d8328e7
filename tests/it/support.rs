//! What every test stands on: a fresh world, a case that runs in it, and what is known afterwards.

mod report;
mod world;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use ringfence::SandboxMode;

pub(crate) use report::{Outcome, Report};
pub(crate) use world::{Neighbour, User, World, for_each_user, names, text};

/// A container without capabilities in which no further user namespace can be made.
pub(crate) const CONTAINER: [&str; 9] = [
    "bwrap",
    "--dev-bind",
    "/",
    "/",
    "--unshare-user",
    "--disable-userns",
    "--cap-drop",
    "ALL",
    "--",
];

/// One run of the program with `--json`, described before it happens.
///
/// In scripts, options and arguments `$W` is the workspace, `$OUT` a directory beside it that the
/// user owns, and `$BIN` the program itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    mode: Option<SandboxMode>,
    setup: Option<String>,
    inside: Vec<OsString>,
    options: Vec<OsString>,
    env: Vec<(String, OsString)>,
    command: Vec<OsString>,
}

impl Case {
    /// A run under a mode.
    pub(crate) fn new(mode: SandboxMode) -> Self {
        Self {
            mode: Some(mode),
            ..Self::default()
        }
    }

    /// A run that does not say under which mode.
    pub(crate) fn without_a_mode() -> Self {
        Self::default()
    }

    /// A bash script that prepares the world, unconfined, as the same user, in the workspace.
    pub(crate) fn setup(mut self, script: &str) -> Self {
        self.setup = Some(script.to_owned());
        self
    }

    /// Another program that the run is started through.
    pub(crate) fn inside<S: Into<OsString>>(mut self, wrapper: impl IntoIterator<Item = S>) -> Self {
        self.inside = wrapper.into_iter().map(Into::into).collect();
        self
    }

    /// Options of `run`.
    pub(crate) fn options<S: Into<OsString>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.options.extend(words.into_iter().map(Into::into));
        self
    }

    /// A variable in the environment of the program.
    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// The command, as a text for `-c`.
    pub(crate) fn shell(mut self, text: &str) -> Self {
        self.command = vec!["-c".into(), text.into()];
        self
    }

    /// The command, word by word.
    pub(crate) fn argv<S: Into<OsString>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.command = std::iter::once("--".into())
            .chain(words.into_iter().map(Into::into))
            .collect();
        self
    }

    /// Prepares a fresh world for each user, runs the case in it, and has the outcome checked.
    pub(crate) fn run_as_each_user(&self, check: impl Fn(&World, &Report)) {
        for_each_user(|world| self.check_in(world, &check));
    }

    fn check_in(&self, world: &World, check: impl Fn(&World, &Report)) {
        if let Some(script) = &self.setup {
            world.prepare(script);
        }
        check(world, &self.run_in(world));
    }

    /// Runs the case in a world that is already prepared and reads the document it prints.
    pub(crate) fn run_in(&self, world: &World) -> Report {
        Report::read(self.outcome_in(world))
    }

    /// The same, started by the harness's own user, whoever the world's is.
    pub(crate) fn run_as_root_in(&self, world: &World) -> Report {
        let mut command = self.command_in(world);
        command.uid(0).gid(0);
        let outcome = world.outcome(command);
        eprintln!("{outcome}");
        Report::read(outcome)
    }

    /// Runs the case in a world that is already prepared, whatever it prints.
    pub(crate) fn outcome_in(&self, world: &World) -> Outcome {
        let outcome = world.outcome(self.command_in(world));
        eprintln!("{outcome}");
        outcome
    }

    /// The whole command line, not yet started.
    pub(crate) fn command_in(&self, world: &World) -> Command {
        let mut words: Vec<OsString> = self.inside.clone();
        words.extend([world.program().into(), "run".into(), "--json".into()]);
        if let Some(mode) = self.mode {
            words.extend(["--mode".into(), mode.name().into()]);
        }
        words.extend(self.options.iter().cloned());
        words.extend(self.command.iter().cloned());
        // A text for the shell finds `$W` and its like in the environment.
        let text = words.len() - usize::from(self.command.first().is_some_and(|word| word == "-c"));
        let mut words = words
            .iter()
            .enumerate()
            .map(|(i, word)| if i < text { world.expand(word) } else { word.clone() });
        let mut command = world.command(words.next().expect("a program"));
        command.args(words);
        command.envs(self.env.iter().map(|(name, value)| (name, world.expand(value))));
        command
    }
}
