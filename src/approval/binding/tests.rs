use super::*;

/// A binding like any other.
pub(crate) fn binding() -> Binding {
    Binding {
        argv: vec!["make".into(), "test".into()],
        workdir: Place {
            path: "/w".into(),
            device: 1,
            inode: 2,
        },
        environment: environment(&[("A".into(), "b".into())]),
        executable: Executable {
            path: "/usr/bin/make".into(),
            device: 1,
            inode: 3,
            size: 4,
            modified: 5,
            sha256: Some([6; 32]),
        },
        stdin: "null".to_owned(),
        policy: "policy".to_owned(),
        difference: "difference".to_owned(),
        boot: "boot".to_owned(),
        uid: 1000,
        run: "run".to_owned(),
        nonce: [7; 32],
    }
}

#[test]
fn each_change_is_named_and_changes_the_digest() {
    let change = |what: Bound, change: &dyn Fn(&mut Binding)| {
        let (before, mut after) = (binding(), binding());
        change(&mut after);
        assert_eq!(before.first_change(&after), Some(what));
        assert_ne!(before.digest(), after.digest(), "{what:?}");
    };
    change(Bound::Argv, &|it| it.argv = vec!["maketest".into()]);
    change(Bound::Argv, &|it| it.argv.push("".into()));
    change(Bound::Argv, &|it| it.argv = vec!["maket".into(), "est".into()]);
    change(Bound::WorkingDirectory, &|it| it.workdir.path = "/v".into());
    change(Bound::WorkingDirectory, &|it| it.workdir.inode = 9);
    change(Bound::WorkingDirectory, &|it| it.workdir.device = 9);
    change(Bound::Environment, &|it| {
        it.environment = environment(&[("A".into(), "c".into())]);
    });
    change(Bound::Executable, &|it| it.executable.path = "/bin/make".into());
    change(Bound::Executable, &|it| it.executable.size = 9);
    change(Bound::Executable, &|it| it.executable.modified = 9);
    change(Bound::Executable, &|it| it.executable.sha256 = Some([9; 32]));
    change(Bound::Executable, &|it| it.executable.sha256 = None);
    change(Bound::Stdin, &|it| it.stdin = "pipe".to_owned());
    change(Bound::Policy, &|it| it.policy.push('x'));
    change(Bound::Difference, &|it| it.difference.push('x'));
    change(Bound::Boot, &|it| it.boot.push('x'));
    change(Bound::User, &|it| it.uid = 0);
    change(Bound::Run, &|it| it.run.push('x'));
    change(Bound::Nonce, &|it| it.nonce[31] = 0);
    assert_eq!(binding().first_change(&binding()), None);
}

#[test]
fn an_environment_is_the_same_in_any_order_and_another_with_another_border() {
    let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let (one, other) = (pair("A", "1"), pair("B", "2"));
    assert_eq!(
        environment(&[one.clone(), other.clone()]),
        environment(&[other, one.clone()])
    );
    assert_ne!(
        environment(&[pair("A", "1B")]),
        environment(&[one.clone(), pair("B", "")])
    );
    assert_ne!(environment(&[pair("A1", "")]), environment(&[one]));
}

#[test]
fn a_program_that_was_written_in_place_is_another() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("program");
    std::fs::write(&path, "one").unwrap();
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let before = Executable::examine(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    std::io::Write::write_all(&mut &file, b"two").unwrap();
    file.set_modified(modified).unwrap();
    let after = Executable::examine(&path).unwrap();
    assert_eq!(
        (before.inode, before.size, before.modified),
        (after.inode, after.size, after.modified)
    );
    assert_ne!(before, after, "its content tells");
    assert!(Executable::examine(place.path()).is_err());
    assert!(Executable::examine(&place.path().join("none")).is_err());
}
