//! From the deployment and the options to who is asked, and how long.

use std::env;
use std::ffi::OsString;

use ringfence::Error;
use ringfence::approval;
use ringfence::config::{Answerer, Approval, Settings};

use super::args::RetryArgs;
use super::values;

/// What a program that is asked gets of this process's environment.
const HOOK_ENV: [&str; 5] = ["PATH", "HOME", "USER", "LANG", "TZ"];

/// How the request of this retry is dealt with.
///
/// # Errors
/// [`Error::Input`] for an answerer that may not answer here, and for a time that makes no sense.
pub(crate) fn approval_settings(args: &RetryArgs, settings: &Settings) -> Result<approval::Settings, Error> {
    let deployed = settings.approval();
    if let Some(other) = args.answer.filter(|it| !may_answer(*it, deployed)) {
        return Err(not_deployed(other, deployed));
    }
    let env: Vec<(OsString, OsString)> = HOOK_ENV
        .iter()
        .filter_map(|name| Some((name.into(), env::var_os(name)?)))
        .collect();
    let mut found = approval::Settings::deployed(deployed, args.answer, &env);
    if let Some(wait) = &args.wait {
        found.request_ttl = found.request_ttl.min(values::duration("--wait", wait)?);
    }
    Ok(found)
}

fn may_answer(answerer: Answerer, deployed: &Approval) -> bool {
    deployed.answerers().contains(&answerer) && (answerer != Answerer::Hook || deployed.hook().is_some())
}

fn not_deployed(answerer: Answerer, deployed: &Approval) -> Error {
    let names: Vec<_> = deployed.answerers().iter().map(|it| it.name()).collect();
    Error::Input {
        field: "--answer".to_owned(),
        value: answerer.name().into(),
        reason: match answerer {
            Answerer::Hook => "no program that answers is deployed".to_owned(),
            _ => "the deployment does not let it answer".to_owned(),
        },
        hint: if names.is_empty() {
            "`answerers` in the deployment file says who may answer".to_owned()
        } else {
            format!("who may answer here: {}", names.join(", "))
        },
    }
}
