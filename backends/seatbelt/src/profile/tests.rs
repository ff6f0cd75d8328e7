use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use proptest::prelude::*;

use super::evaluator::{Form, Node, Object, allows, read};
use super::*;

fn named(path: &str) -> Named<'_> {
    Named {
        field: "path",
        path: Path::new(path),
    }
}

fn read_only(closed: &[Door]) -> Rules<'static> {
    Rules {
        trees: vec![named("/private/var/folders/zz/T/rf-1")],
        closed: closed.iter().copied().collect(),
        ..Rules::default()
    }
}

fn workspace() -> Rules<'static> {
    Rules {
        trees: vec![named("/Users/ann/work"), named("/private/tmp")],
        files: vec![named("/Users/ann/.cache/one")],
        protected: vec![
            named("/Users/ann/work/.git/hooks"),
            named("/Users/ann/work/a/b/locked.toml"),
        ],
        held: vec![
            named("/Users/ann/work/.git"),
            named("/Users/ann/work/a"),
            named("/Users/ann/work/a/b"),
        ],
        closed: BTreeSet::new(),
    }
}

/// Compares a profile with the file that shows what it was.
fn is_golden(rules: &Rules<'_>, name: &str, golden: &str) {
    let made = text(rules).unwrap();
    assert!(
        made == golden,
        "tests/golden/{name} shows another profile than is made now:\n{made}"
    );
}

#[test]
fn profiles_read_as_the_golden_files_show() {
    is_golden(
        &read_only(&[]),
        "read-only.sb",
        include_str!("../../tests/golden/read-only.sb"),
    );
    is_golden(
        &workspace(),
        "workspace-write.sb",
        include_str!("../../tests/golden/workspace-write.sb"),
    );
    is_golden(
        &read_only(&[Door::Network]),
        "no-network.sb",
        include_str!("../../tests/golden/no-network.sb"),
    );
    is_golden(
        &read_only(&[Door::UnixSockets]),
        "no-unix-sockets.sb",
        include_str!("../../tests/golden/no-unix-sockets.sb"),
    );
    is_golden(
        &read_only(&[Door::Network, Door::UnixSockets]),
        "no-sockets.sb",
        include_str!("../../tests/golden/no-sockets.sb"),
    );
}

/// The members of the family of writes.
const WRITES: [&str; 11] = [
    "file-write-acl",
    "file-write-create",
    "file-write-data",
    "file-write-flags",
    "file-write-mode",
    "file-write-owner",
    "file-write-setugid",
    "file-write-times",
    "file-write-unlink",
    "file-write-xattr",
    "file-write-finderinfo",
];

fn file(profile: &str, operation: &str, path: &str) -> bool {
    allows(profile, operation, Object::File(path, Node::Ordinary))
}

/// To rename is to remove one name and to make another.
fn renames(profile: &str, from: &str, to: &str) -> bool {
    file(profile, "file-write-unlink", from) && file(profile, "file-write-create", to)
}

/// Both readings of which side the operation speaks of must agree.
fn links(profile: &str, from: &str, to: &str) -> bool {
    file(profile, "file-link", from) && file(profile, "file-link", to) && file(profile, "file-write-create", to)
}

#[test]
fn nothing_outside_the_roots_changes_in_any_way_and_everything_is_read() {
    let profiles = [
        text(&read_only(&[])).unwrap(),
        text(&workspace()).unwrap(),
        text(&Rules::default()).unwrap(),
    ];
    let outside = [
        "/",
        "/Users/ann",
        "/Users/ann/workshop",
        "/Users/ann/work.txt",
        "/private/etc/hosts",
        "/private/tmpfile",
        "/dev/nullx",
        "/Users/ann/.cache/one/beneath",
        "/Users/ann/.cache/ones",
    ];
    for profile in &profiles {
        for path in outside {
            for operation in WRITES.iter().chain(&CHANGES[1..]).chain(&RECENT_CHANGES) {
                assert!(!file(profile, operation, path), "{operation} {path}");
            }
            assert!(file(profile, "file-read-data", path) && file(profile, "process-exec", path));
        }
    }
}

#[test]
fn beneath_the_roots_everything_changes_but_for_nodes_and_mounts() {
    let profile = text(&workspace()).unwrap();
    for path in [
        "/Users/ann/work/src/main.rs",
        "/private/tmp/x",
        "/Users/ann/work/.gitignore",
    ] {
        for operation in WRITES.iter().chain(&["file-link"]) {
            assert!(file(&profile, operation, path), "{operation} {path}");
        }
        for operation in &CHANGES[2..] {
            assert!(!file(&profile, operation, path), "{operation} {path}");
        }
        for node in [Node::Block, Node::Character] {
            assert!(!allows(&profile, "file-write-data", Object::File(path, node)));
            assert!(!allows(&profile, "file-ioctl", Object::File(path, node)));
        }
    }
    assert!(file(&profile, "file-write-data", "/Users/ann/.cache/one"));
    assert!(renames(&profile, "/Users/ann/work/a1", "/private/tmp/a1"));
    assert!(links(&profile, "/Users/ann/work/a1", "/private/tmp/a1"));
    assert!(!links(&profile, "/Users/ann/secret", "/private/tmp/a1"));
}

#[test]
fn a_root_is_neither_removed_nor_exchanged_nor_moved_into_another() {
    let profile = text(&workspace()).unwrap();
    for root in ["/Users/ann/work", "/private/tmp", "/Users/ann/.cache/one"] {
        assert!(!renames(&profile, root, "/private/tmp/moved"), "{root}");
        assert!(!file(&profile, "file-write-unlink", root), "{root}");
        assert!(!file(&profile, "file-write-create", root), "{root}");
    }
}

#[test]
fn what_is_protected_does_not_change_and_no_directory_above_it_moves() {
    let profile = text(&workspace()).unwrap();
    for path in [
        "/Users/ann/work/.git/hooks",
        "/Users/ann/work/.git/hooks/pre-commit",
        "/Users/ann/work/a/b/locked.toml",
    ] {
        for operation in WRITES.iter().chain(&["file-link"]) {
            assert!(!file(&profile, operation, path), "{operation} {path}");
        }
        assert!(file(&profile, "file-read-data", path));
        assert!(!links(&profile, path, "/Users/ann/work/alias"), "{path}");
    }
    for above in ["/Users/ann/work/.git", "/Users/ann/work/a", "/Users/ann/work/a/b"] {
        assert!(!renames(&profile, above, "/private/tmp/away"), "{above}");
        assert!(!renames(&profile, "/private/tmp/instead", above), "{above}");
        let beside = format!("{above}/beside");
        assert!(file(&profile, "file-write-create", &beside), "{beside}");
        assert!(file(&profile, "file-write-times", above), "{above}");
    }
}

#[test]
fn the_program_itself_stays_what_and_where_it_is_inside_a_root_too() {
    let program = "/Users/ann/work/target/debug/ringfence";
    let profile = text(&workspace()).unwrap() + &keeping(Path::new(program)).unwrap();
    for operation in WRITES.iter().chain(&["file-link"]) {
        assert!(!file(&profile, operation, program), "{operation}");
    }
    for above in ["/Users/ann/work/target", "/Users/ann/work/target/debug"] {
        assert!(!renames(&profile, above, "/private/tmp/away"), "{above}");
        assert!(
            file(&profile, "file-write-create", &format!("{above}/other")),
            "{above}"
        );
    }
    assert!(keeping(Path::new("/a\nb")).is_err());
}

#[test]
fn the_ordinary_devices_are_written_and_keep_their_modes() {
    let profile = text(&Rules::default()).unwrap();
    for path in DEVICES.into_iter().chain(["/dev/ttys000", "/dev/ttys123"]) {
        for (operation, expected) in [
            ("file-write-data", true),
            ("file-ioctl", true),
            ("file-write-mode", false),
            ("file-write-unlink", false),
        ] {
            let allowed = allows(&profile, operation, Object::File(path, Node::Character));
            assert_eq!(allowed, expected, "{operation} {path}");
        }
    }
    for path in [
        "/dev/disk0",
        "/dev/rdisk0",
        "/dev/ttys",
        "/dev/ttys1/x",
        "/dev/auditpipe",
    ] {
        for node in [Node::Block, Node::Character] {
            assert!(!allows(&profile, "file-write-data", Object::File(path, node)), "{path}");
            assert!(!allows(&profile, "file-ioctl", Object::File(path, node)), "{path}");
        }
    }
}

#[test]
fn closed_doors_are_closed_and_the_others_stay_open() {
    let of = |closed: &[Door]| text(&read_only(closed)).unwrap();
    let cases = [
        (of(&[]), true, true, true),
        (of(&[Door::Network]), false, true, false),
        (of(&[Door::UnixSockets]), true, false, false),
        (of(&[Door::Network, Door::UnixSockets]), false, false, false),
    ];
    for (profile, internet, unix, resolver) in &cases {
        for operation in ["network-bind", "network-inbound", "network-outbound"] {
            assert_eq!(allows(profile, operation, Object::Internet), *internet, "{operation}");
            let socket = Object::Unix("/private/tmp/socket");
            assert_eq!(allows(profile, operation, socket), *unix, "{operation}");
        }
        let asked = allows(profile, "network-outbound", Object::Unix(RESOLVER));
        assert_eq!(asked, *resolver);
    }
}

#[test]
fn only_processes_of_the_run_are_taken_hold_of() {
    let profile = text(&workspace()).unwrap();
    for own in [true, false] {
        assert_eq!(allows(&profile, "mach-priv-task-port", Object::Process(own)), own);
    }
}

#[test]
fn a_path_that_no_rule_can_name_ends_the_plan_wherever_it_stands() {
    let path = Path::new(OsStr::from_bytes(b"/w/\xff"));
    let bad = Named { field: "path", path };
    let places: [fn(&mut Rules<'static>, Named<'static>); 4] = [
        |rules, bad| rules.trees.push(bad),
        |rules, bad| rules.files.push(bad),
        |rules, bad| rules.protected.push(bad),
        |rules, bad| rules.held.push(bad),
    ];
    for place in places {
        let mut rules = workspace();
        place(&mut rules, bad);
        let refused = text(&rules).unwrap_err();
        assert_eq!((refused.field, refused.path), ("path", path));
    }
}

/// The forms of a profile with every literal taken out, and the literals.
fn taken_apart(forms: &[Form], literals: &mut Vec<String>) -> Vec<Form> {
    let apart = |form: &Form| match form {
        Form::Literal(text) => {
            literals.push(text.clone());
            Form::Literal(String::new())
        }
        Form::List(forms) => Form::List(taken_apart(forms, literals)),
        other => other.clone(),
    };
    forms.iter().map(apart).collect()
}

/// Names that try to end a literal, and any others.
fn names() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(vec![
        "\"",
        "\\",
        "\\\"",
        "\"))(allow file-write*)(deny x (literal \"",
        ")",
        "(",
        ";",
        "#\"",
        "\n",
        "\0",
        "\u{7f}",
        "\u{85}",
        "ü",
        " ",
        "a",
    ]);
    let made = prop::collection::vec(hostile, 0..12).prop_map(|parts| parts.concat());
    prop_oneof![made, any::<String>()]
}

proptest! {
    #[test]
    fn no_name_ends_its_literal_or_adds_a_rule(name in names()) {
        let path = format!("/w/{name}");
        let rules = |path| Rules {
            trees: vec![named(path)],
            files: vec![named(path)],
            protected: vec![named(path)],
            held: vec![named(path)],
            closed: BTreeSet::new(),
        };
        let plain = read(&text(&rules("/w/plain")).unwrap()).unwrap();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let shape = taken_apart(&plain, &mut before);
        match text(&rules(&path)) {
            Ok(made) => {
                let forms = read(&made).unwrap();
                prop_assert_eq!(taken_apart(&forms, &mut after), shape);
                let expected: Vec<_> = before
                    .iter()
                    .map(|literal| if literal == "/w/plain" { path.as_str() } else { literal })
                    .collect();
                prop_assert_eq!(after, expected);
            }
            Err(_) => prop_assert!(name.chars().any(char::is_control) || path.len() > 1023),
        }
    }
}
