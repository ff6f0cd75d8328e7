//! Links the released program statically where that works.
//!
//! Start-up is most of what a short run costs, and loading shared libraries is a good part of
//! start-up. A static, position-independent program also runs when the files of the C library are
//! out of its reach.
//!
//! `-C target-feature=+crt-static` would ask for the same thing, but it has to be given for the
//! whole build, and then procedural macros, which are shared libraries, cannot be built with the
//! default target. So the program alone gets `-static-pie` and a directory, searched before the
//! system's, whose `libc.so` and relatives are linker scripts that name the static archives: the
//! `-lc` that rustc writes then finds those. Integration tests, examples, build scripts and macros
//! are linked as ever.
//!
//! Wherever something is missing the program is linked the ordinary way, and nobody is told.
//! `RINGFENCE_LINK=dynamic` asks for that.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The libraries that rustc names for this target and that the C library holds as archives.
const C_LIBRARIES: [&str; 6] = ["c", "m", "dl", "rt", "pthread", "util"];

/// What the C compiler must be able to find besides their archives: start-up code and the unwinder.
const NEEDED: [&str; 3] = ["rcrt1.o", "libgcc_eh.a", "libgcc.a"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RINGFENCE_LINK");
    let archives = C_LIBRARIES.iter().map(|name| format!("lib{name}.a"));
    if !wanted() || !archives.chain(NEEDED.map(str::to_owned)).all(|file| found(&file)) {
        return;
    }
    let Some(directory) = env::var_os("OUT_DIR").map(|out| PathBuf::from(out).join("static")) else {
        return;
    };
    if write_scripts(&directory).is_ok() {
        // Only the program's own link may see the directory, so it is no `rustc-link-search`.
        println!("cargo::rustc-link-arg-bins=-L{}", directory.display());
        println!("cargo::rustc-link-arg-bins=-static-pie");
    }
}

/// Whether this is a release build of a kind that the recipe is known to work for.
fn wanted() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let native = env::var_os("HOST").is_some() && env::var_os("HOST") == env::var_os("TARGET");
    // Another linker, or static linking asked for in the usual way: whoever set that knows better.
    let plain = env::var_os("RUSTC_LINKER").is_none()
        && !env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|features| features.contains("crt-static"));
    is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && native
        && plain
        && !is("RINGFENCE_LINK", "dynamic")
}

/// Whether `cc`, which rustc links with, knows where `file` is. It echoes a name it does not know.
#[allow(clippy::disallowed_methods, reason = "a build has no command to confine")]
fn found(file: &str) -> bool {
    Command::new("cc")
        .arg(format!("-print-file-name={file}"))
        .output()
        .is_ok_and(|output| {
            let path = String::from_utf8_lossy(&output.stdout);
            output.status.success() && Path::new(path.trim()).is_absolute() && Path::new(path.trim()).exists()
        })
}

fn write_scripts(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for name in C_LIBRARIES {
        fs::write(
            directory.join(format!("lib{name}.so")),
            format!("GROUP ( -l:lib{name}.a )\n"),
        )?;
    }
    fs::write(directory.join("libgcc_s.so"), "GROUP ( -l:libgcc_eh.a -l:libgcc.a )\n")
}
