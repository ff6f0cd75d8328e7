//! The deployment file: what a machine fixes, what its user prefers, what a workspace tightens.

mod doctor;
mod layers;
mod system;

use std::fs;
use std::path::PathBuf;

use crate::support::World;

/// The user's file.
fn users(world: &World) -> PathBuf {
    world.home().join(".config/ringfence/config.toml")
}

/// Writes the user's file.
pub(crate) fn of_the_user(world: &World, text: &str) {
    fs::create_dir_all(users(world).parent().unwrap()).unwrap();
    fs::write(users(world), format!("schema = 1\n{text}")).unwrap();
}

/// Writes the file of the workspace.
pub(crate) fn of_the_workspace(world: &World, text: &str) {
    fs::write(world.inside(".ringfence.toml"), format!("schema = 1\n{text}")).unwrap();
}
