//! Setting a file against those above it. Nothing below ever loosens what stands above.

use std::fmt::Write as _;
use std::time::Duration;

use ringfence_backend::{Require, SandboxMode};

use super::approval::{Answerer, ApprovalPolicy, Looseness};
use super::error::{ConfigError, Key};
use super::layer::{Layer, Origin};
use super::said::{Said, Standing};
use super::{Recording, Settings};

/// A value of a key, as files have it, and whether it may take another's place.
pub(super) trait Tightens: Sized {
    /// Whether this is as strict as `above`.
    fn is_as_strict_as(&self, above: &Self) -> bool;
    /// The value as a file has it.
    fn shown(&self) -> String;
}

impl<T: Tightens> Standing<T> {
    /// Takes what a file says. Whether that may be looser turns on whether a file above speaks of it; in a
    /// workspace it never may.
    fn take(&mut self, said: Option<Said<T>>, origin: Origin, key: impl FnOnce() -> Key) -> Result<(), ConfigError> {
        let Some(Said { value, place }) = said else {
            return Ok(());
        };
        let fixed = self.said_in.is_some() || origin == Origin::Workspace;
        if fixed && !value.is_as_strict_as(&self.value) {
            return Err(ConfigError::Looser {
                place,
                key: key(),
                value: value.shown(),
                fixed: self.value.shown(),
                said_in: self.said_in.clone(),
            });
        }
        // What is only said again still stands where it was said first.
        if self.said_in.is_none() || value.shown() != self.value.shown() {
            *self = Self {
                value,
                said_in: Some(place),
            };
        }
        Ok(())
    }
}

impl Settings {
    /// Sets a file beneath those that were merged before.
    pub(super) fn merge(&mut self, layer: Layer) -> Result<(), ConfigError> {
        let origin = layer.origin;
        self.ceiling.take(layer.ceiling, origin, || Key::top("ceiling"))?;
        self.take_mode(layer.mode, origin)?;
        self.require.take(layer.require, origin, || Key::top("require"))?;
        self.audit.take(layer.audit, origin, || Key::top("audit"))?;
        let approval = &mut self.approval;
        let key = |name| move || Key::approval(name);
        approval.policy.take(layer.policy, origin, key("policy"))?;
        approval.hook.take(layer.hook, origin, key("hook"))?;
        approval.notify.take(layer.notify, origin, key("notify"))?;
        approval
            .hook_timeout
            .take(layer.hook_timeout, origin, key("hook_timeout"))?;
        approval
            .request_ttl
            .take(layer.request_ttl, origin, key("request_ttl"))?;
        approval.grant_ttl.take(layer.grant_ttl, origin, key("grant_ttl"))?;
        let looseness = layer.max_looseness;
        approval.max_looseness.take(looseness, origin, key("max_looseness"))?;
        // Whoever deploys a program that answers wants it to be asked.
        let unsaid = approval.answerers.said_in.is_none();
        if unsaid && approval.hook().is_some() && !approval.answerers().contains(&Answerer::Hook) {
            approval.answerers.value.push(Answerer::Hook);
        }
        let answerers = layer.answerers;
        if let Some(Said { value, place }) = &answerers
            && value.contains(&Answerer::Hook)
            && approval.hook().is_none()
        {
            return Err(ConfigError::NoHook { place: place.clone() });
        }
        approval.answerers.take(answerers, origin, key("answerers"))?;
        approval.reject.extend(layer.reject);
        Ok(())
    }

    /// The default mode is a choice, so the user's file may make another, up to the ceiling.
    fn take_mode(&mut self, said: Option<Said<SandboxMode>>, origin: Origin) -> Result<(), ConfigError> {
        let ceiling = &self.ceiling;
        if let Some(Said { value, place }) = said {
            let limit = if origin == Origin::Workspace && self.mode.value < ceiling.value {
                &self.mode
            } else {
                ceiling
            };
            if value > limit.value {
                return Err(ConfigError::Looser {
                    place,
                    key: Key::top("mode"),
                    value: value.shown(),
                    fixed: limit.value.shown(),
                    said_in: limit.said_in.clone(),
                });
            }
            self.mode = Standing {
                value,
                said_in: Some(place),
            };
        } else if self.mode.value > ceiling.value {
            // A ceiling that comes down takes the default with it.
            self.mode = ceiling.clone();
        }
        Ok(())
    }
}

impl Tightens for SandboxMode {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self <= above
    }

    fn shown(&self) -> String {
        quoted(self.name())
    }
}

impl Tightens for Require {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self >= above
    }

    fn shown(&self) -> String {
        quoted(match self {
            Self::Partial => "partial",
            Self::Full => "full",
        })
    }
}

impl Tightens for Recording {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self >= above
    }

    fn shown(&self) -> String {
        quoted(self.name())
    }
}

impl Tightens for ApprovalPolicy {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self >= above
    }

    fn shown(&self) -> String {
        quoted(match self {
            Self::Ask => "ask",
            Self::Never => "never",
        })
    }
}

impl Tightens for Looseness {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self <= above
    }

    fn shown(&self) -> String {
        quoted(match self {
            Self::ExtraRoots => "extra-roots",
            Self::Mode => "mode",
            Self::FullAccess => "full-access",
        })
    }
}

impl Tightens for Duration {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self <= above
    }

    fn shown(&self) -> String {
        quoted(&format!("{self:?}"))
    }
}

impl Tightens for Vec<Answerer> {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self.iter().all(|answerer| above.contains(answerer))
    }

    fn shown(&self) -> String {
        listed(self.iter().map(|answerer| answerer.name()))
    }
}

/// A program. Another one is not a stricter one.
impl Tightens for Vec<String> {
    fn is_as_strict_as(&self, above: &Self) -> bool {
        self == above
    }

    fn shown(&self) -> String {
        listed(self.iter().map(String::as_str))
    }
}

fn quoted(word: &str) -> String {
    format!("{word:?}")
}

fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        let _ = write!(text, "{}{word:?}", if text.is_empty() { "" } else { ", " });
    }
    format!("[{text}]")
}
