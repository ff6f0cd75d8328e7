//! What a plan says of itself.

use std::collections::BTreeSet;

use super::ended::governs;
use super::run::Run;
use super::world::write;
use super::{Bench, list, must};
use crate::{Effect, Enforcement, HostSupport, SandboxMode, StdioKind};

list![
    enforcement_is_what_coverage_amounts_to,
    a_mode_that_confines_nothing_is_not_served,
];

fn enforcement_is_what_coverage_amounts_to(bench: &Bench<'_>) -> Result<(), String> {
    // A run that protects something, so that every word is put to the test.
    let kept = bench.workspace().join("kept");
    write(&kept, "keep\n")?;
    let run = Run::writing(bench)?.protect(&kept)?;
    let plan = run.plan()?;
    let here = bench.host().coverage.enforcement();
    must(plan.enforcement == Some(here.clone()), || {
        format!("{:?}, and the host gives {here:?}", plan.enforcement)
    })?;
    let mut handed = run.command()?;
    handed.stdio[1] = StdioKind::Handed;
    let plan = run.plan_with(&handed)?;
    must(!governs(&plan, Effect::InheritedDescriptors), || {
        "a file that was handed on is open".to_owned()
    })?;
    // Taking something from a host never makes it do more.
    let whole = bench.host().clone();
    let less: [fn(&mut HostSupport); 4] = [
        |host| host.landlock_abi = 0,
        |host| host.landlock_abi = host.landlock_abi.min(1),
        |host| host.sealed = false,
        |host| host.mounts = false,
    ];
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let run = Run::new(bench, mode)?;
        let open = |host: &HostSupport| match run.plan_on(host)?.enforcement {
            Some(Enforcement::Full) => Ok(BTreeSet::new()),
            Some(Enforcement::Partial { ungoverned }) if !ungoverned.is_empty() => Ok(ungoverned),
            other => Err(format!("{mode} is enforced as {other:?}")),
        };
        let before = open(&whole)?;
        for take in less {
            let mut host = whole.clone();
            take(&mut host);
            let after = open(&host)?;
            must(after.is_superset(&before), || {
                format!("{mode}: with less of a host {after:?} are open, not {before:?}")
            })?;
        }
    }
    Ok(())
}

fn a_mode_that_confines_nothing_is_not_served(bench: &Bench<'_>) -> Result<(), String> {
    let run = Run::new(bench, SandboxMode::DangerFullAccess)?;
    match run.plan() {
        Ok(plan) => Err(format!("it is planned: {plan:?}")),
        Err(_) => Ok(()),
    }
}
