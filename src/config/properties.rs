//! What holds for every three files: nothing below ever loosens what stands above.

use std::path::PathBuf;
use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use ringfence_backend::{Require, SandboxMode};

use super::layer::{Layer, Origin};
use super::said::Said;
use super::{Answerer, ApprovalPolicy, Looseness, Recording, Settings};
use crate::tables::Place;

fn said<T: std::fmt::Debug + Clone + 'static>(values: Vec<T>) -> impl Strategy<Value = Option<Said<T>>> {
    option::of(select(values).prop_map(|value| Said {
        value,
        place: Place {
            file: PathBuf::from("/f"),
            line: 1,
        },
    }))
}

fn any_layer(origin: Origin) -> impl Strategy<Value = Layer> {
    let everybody = [Answerer::Tty, Answerer::Queue, Answerer::Hook];
    let groups: Vec<_> = (0_u8..8)
        .map(|bits| {
            (0..3)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| everybody[bit])
                .collect::<Vec<_>>()
        })
        .collect();
    let times = || said([1, 2, 3].map(Duration::from_mins).into());
    let programs = || said(vec![vec!["/a".to_owned()], vec!["/b".to_owned()]]);
    let first = (
        said(SandboxMode::ALL.into()),
        said(SandboxMode::ALL.into()),
        said(vec![Require::Partial, Require::Full]),
        said(vec![Recording::Off, Recording::On, Recording::Required]),
        said(vec![ApprovalPolicy::Ask, ApprovalPolicy::Never]),
        said(groups),
    );
    let others = (
        programs(),
        times(),
        times(),
        times(),
        said(vec![Looseness::ExtraRoots, Looseness::Mode, Looseness::FullAccess]),
    );
    (first, others).prop_map(move |((mode, ceiling, require, audit, policy, answerers), others)| {
        let layer = Layer {
            mode,
            ceiling,
            require,
            audit,
            policy,
            answerers,
            ..Layer::empty(origin)
        };
        if origin == Origin::Workspace {
            return layer;
        }
        let (hook, hook_timeout, request_ttl, grant_ttl, max_looseness) = others;
        Layer {
            hook,
            hook_timeout,
            request_ttl,
            grant_ttl,
            max_looseness,
            ..layer
        }
    })
}

/// Some of the three files, in their order.
fn any_layers() -> impl Strategy<Value = Vec<Layer>> {
    let all = Origin::ALL.map(any_layer);
    (all, subsequence(vec![0_usize, 1, 2], 0..=3))
        .prop_map(|(layers, chosen)| chosen.into_iter().map(|at| layers[at].clone()).collect())
}

/// Asserts of everything that `above` says that `below` is as strict.
fn assert_as_strict(above: &Settings, below: &Settings, by_default: bool) {
    let counts = |said: bool| said || by_default;
    let (upper, lower) = (&above.approval, &below.approval);
    if counts(above.ceiling.said_in.is_some()) {
        assert!(below.ceiling() <= above.ceiling());
    }
    if counts(above.require.said_in.is_some()) {
        assert!(below.require() >= above.require());
    }
    if counts(above.audit.said_in.is_some()) {
        assert!(below.audit() >= above.audit());
    }
    if counts(upper.policy.said_in.is_some()) {
        assert!(lower.policy() >= upper.policy());
    }
    if counts(upper.answerers.said_in.is_some()) {
        assert!(lower.answerers().iter().all(|it| upper.answerers().contains(it)));
    }
    if counts(upper.hook.said_in.is_some()) {
        assert_eq!(lower.hook(), upper.hook());
    }
    if counts(upper.max_looseness.said_in.is_some()) {
        assert!(lower.max_looseness() <= upper.max_looseness());
    }
    for (upper, lower) in [
        (&upper.hook_timeout, &lower.hook_timeout),
        (&upper.request_ttl, &lower.request_ttl),
        (&upper.grant_ttl, &lower.grant_ttl),
    ] {
        if counts(upper.said_in.is_some()) {
            assert!(lower.value <= upper.value);
        }
    }
    if by_default {
        assert!(below.mode() <= above.mode());
    }
}

proptest! {
    #[test]
    fn no_file_below_ever_loosens_what_one_above_says(layers in any_layers()) {
        let mut settings = Settings::default();
        for layer in layers {
            let (above, origin) = (settings.clone(), layer.origin);
            if settings.merge(layer).is_err() {
                break;
            }
            prop_assert!(settings.mode() <= settings.ceiling());
            assert_as_strict(&above, &settings, origin == Origin::Workspace);
        }
    }
}
