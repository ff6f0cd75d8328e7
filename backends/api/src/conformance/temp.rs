//! The temp area: the host's, the run's own, or none.

use std::path::Path;

use super::run::Run;
use super::world::read;
use super::{Bench, list, must, said};
use crate::{HOST_TEMP, SandboxMode, Temp};

list![
    a_host_temp_area_is_the_hosts_own,
    a_private_temp_area_is_the_runs_own_and_nothing_reaches_the_hosts,
    no_temp_area_is_none,
];

/// Makes a file of one name in each part of the temp area.
const MAKE: &str = "
def make(directory):
    fd = os.open(directory + '/' + os.environ['NAME'], os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    os.write(fd, b'of the run'); os.close(fd)
for directory in ['/tmp', '/var/tmp', '/dev/shm']: attempt(directory, make, directory)
if D: attempt('own', make, D)
";

const SHM: &str = "/dev/shm";

/// A run that makes files of that name.
fn making<'a>(run: Run<'a>, bench: &Bench<'_>, name: &str, temp: Temp) -> Result<Run<'a>, String> {
    let run = run.temp(temp)?.env("NAME", Path::new(name));
    let run = if temp == Temp::Private {
        run.env("D", &bench.scratch())
    } else {
        run
    };
    Ok(run.attempts(MAKE))
}

/// A name that is taken nowhere: that of the world.
fn name(bench: &Bench<'_>) -> String {
    bench
        .world
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Which parts of the host's temp area have that name; they are removed.
fn found(name: &str) -> Vec<&'static str> {
    let there = HOST_TEMP.into_iter();
    there
        .filter(|area| std::fs::remove_file(Path::new(area).join(name)).is_ok())
        .collect()
}

fn a_host_temp_area_is_the_hosts_own(bench: &Bench<'_>) -> Result<(), String> {
    let name = name(bench);
    let ended = making(Run::writing(bench)?, bench, &name, Temp::Host)?.finish()?;
    let there = found(&name);
    ended.all_done()?;
    must(there == HOST_TEMP, || format!("on the host it is in {there:?} alone"))
}

fn a_private_temp_area_is_the_runs_own_and_nothing_reaches_the_hosts(bench: &Bench<'_>) -> Result<(), String> {
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let name = name(bench);
        let ended = making(Run::new(bench, mode)?, bench, &name, Temp::Private)?.finish()?;
        let there = found(&name);
        must(there.is_empty(), || {
            format!("{mode}: a file was made in {there:?} of the host")
        })?;
        for area in ["/tmp", "/var/tmp"] {
            ended.must_be(area, &["EROFS", "EACCES"])?;
        }
        // Where nothing can be shown at another place, shared memory is closed instead.
        let shown = ended
            .plan
            .steps
            .iter()
            .any(|step| matches!(step, crate::PlanStep::Shown { at, .. } if at == Path::new(SHM)));
        must(shown == ended.plan.has_mounts(), || {
            format!("{mode}: the run has no {SHM} of its own: {:?}", ended.plan)
        })?;
        if shown {
            ended.must_be(SHM, &["done"])?;
            // It is one directory under two names.
            ended.must_be("own", &["EEXIST"])?;
        } else {
            ended.must_be(SHM, &["EACCES"])?;
            ended.must_be("own", &["done"])?;
        }
        let made = bench.scratch().join(&name);
        must(read(&made)? == "of the run", || {
            format!("{mode}: {} was not written", made.display())
        })?;
        said("the file", std::fs::remove_file(made))?;
    }
    Ok(())
}

fn no_temp_area_is_none(bench: &Bench<'_>) -> Result<(), String> {
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let name = name(bench);
        let ended = making(Run::new(bench, mode)?, bench, &name, Temp::None)?.finish()?;
        let there = found(&name);
        must(there.is_empty(), || {
            format!("{mode}: a file was made in {there:?} of the host")
        })?;
        ended.all_refused()?;
    }
    Ok(())
}
