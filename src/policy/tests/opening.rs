//! Settling the paths a policy is made from.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::World;
use crate::policy::{Field, PolicyError, host_temp, open_root, open_writable};

#[test]
fn a_path_that_is_missing_loops_or_passes_through_a_file_is_refused_as_it_was_given() {
    let world = World::new();
    let work = world.path("work");
    symlink("round", work.join("about")).unwrap();
    symlink("about", work.join("round")).unwrap();
    for (given, reason) in [
        ("/x/nowhere", "does not exist"),
        ("./sub/../nowhere", "does not exist"),
        ("round", "go round in a circle"),
        ("../cache/file/x", "is not a directory"),
        ("", "does not exist"),
    ] {
        let error = open_writable(&work, Path::new(given)).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(&format!("{given:?}")) && message.contains(reason),
            "{message}"
        );
        assert!(
            matches!(
                error,
                PolicyError::Unusable {
                    field: Field::WritableRoot,
                    ..
                }
            ),
            "{message}"
        );
    }
    let error = open_root(&work.join("round")).unwrap_err();
    assert!(error.to_string().contains("work/round"), "{error}");
    let error = open_root(&world.path("cache/file")).unwrap_err();
    assert!(error.to_string().contains("is not a directory"), "{error}");
}

#[test]
fn a_path_behind_a_closed_directory_is_refused_to_all_but_root() {
    let world = World::new();
    let closed = world.path("other");
    fs::create_dir(closed.join("in")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let opened = open_writable(&world.path("work"), Path::new("../other/in"));
    let area = host_temp(Some(&closed.join("in")), Path::new("/no-workspace")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let root = nix::unistd::geteuid().is_root();
    assert_eq!(area.iter().any(|path| path.path().starts_with(&closed)), root);
    match opened {
        Ok(path) => assert!(root && path.path() == closed.join("in")),
        Err(error) => {
            let message = error.to_string();
            assert!(
                !root && message.contains("\"../other/in\"") && message.contains("may not reach it"),
                "{message}"
            );
        }
    }
}

#[test]
fn a_relative_root_is_taken_from_the_workspace_root_and_the_hint_says_where_it_was_sought() {
    let world = World::new();
    let work = world.path("work");
    assert_eq!(open_writable(&work, Path::new("sub")).unwrap().path(), work.join("sub"));
    let hint = open_writable(&work, Path::new("nowhere")).unwrap_err().hint();
    assert!(hint.contains(work.join("nowhere").to_str().unwrap()), "{hint}");
    let hint = open_writable(&work, Path::new("~/nowhere")).unwrap_err().hint();
    assert!(hint.contains("$HOME"), "{hint}");
}

#[test]
fn a_device_is_no_writable_root() {
    let error = open_writable(Path::new("/"), Path::new("dev/null")).unwrap_err();
    assert!(
        matches!(&error, PolicyError::Device { path } if path == Path::new("dev/null")),
        "{error}"
    );
}

#[test]
fn the_hosts_temp_area_is_what_is_there_of_it() {
    let world = World::new();
    let paths = |tmpdir: Option<&Path>| {
        let area = host_temp(tmpdir, Path::new("/no-workspace")).unwrap();
        area.iter().map(|root| root.path().to_owned()).collect::<Vec<_>>()
    };
    let usual = paths(None);
    assert!(usual.contains(&open_root(Path::new("/tmp")).unwrap().path().to_owned()));
    let named = paths(Some(&world.path("temp")));
    assert_eq!(named, [usual.clone(), vec![world.path("temp")]].concat());
    for absent in ["/x/nowhere", ".", ""] {
        assert_eq!(paths(Some(Path::new(absent))), usual, "{absent:?}");
    }
}

#[test]
fn a_tmpdir_that_is_a_file_is_refused_and_not_made_writable() {
    let world = World::new();
    let error = host_temp(Some(&world.path("cache/file")), Path::new("/no-workspace")).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("temp directory") && message.contains("cache/file"),
        "{message}"
    );
    assert!(error.hint().contains("TMPDIR"));
}

#[test]
fn a_link_in_the_workspace_that_leads_out_of_it_is_not_followed() {
    let world = World::new();
    let root = world.path("cache");
    symlink("/usr", root.join("out")).unwrap();
    let error = open_writable(&root, Path::new("out")).unwrap_err();
    assert!(matches!(error, PolicyError::LeadsOut { .. }), "{error}");
    let error = host_temp(Some(&root.join("out")), &root).unwrap_err();
    assert!(matches!(error, PolicyError::LeadsOut { .. }), "{error}");
    assert!(open_writable(&root, Path::new("../cache")).is_ok());
}
