//! Every call that changes files, one by one: outside it is refused and recorded as what it was,
//! inside it works and leaves no record.

mod rows;

use ringfence_backend::calls::Call;
use std::fmt::Write;

use nix::libc;
use ringfence::SandboxMode::{self, ReadOnly, WorkspaceWrite};

use rows::{Inside, ROOM, Row, everywhere, here};

use super::{ACCELERATED, CALL, assert_same, attempts, compile, records, snapshot, watched};
use crate::support::{CONTAINER, Case, Report, World, for_each_user};

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// Through the function of the C library, where there is one.
    Function,
    /// Through the function of a program that carries its C library in itself.
    Static,
    /// By the instruction itself.
    Instruction,
}

/// The rows that say something about this user.
fn rows(world: &World) -> Vec<Row> {
    let mut rows = everywhere();
    rows.extend(here());
    rows.retain(|row| row.inside != Inside::Mounts || world.uid() == 0);
    rows
}

impl Row {
    /// The shell command that makes the call.
    fn command(&self, route: Route) -> String {
        let what = self.function.filter(|_| route != Route::Instruction);
        let what = what.map_or_else(|| self.number.to_string(), str::to_owned);
        let args: Vec<_> = self.args.split(' ').map(|arg| format!("\"{arg}\"")).collect();
        format!("$TOOLS/call {what} {}", args.join(" "))
    }

    /// What is recorded when both sides of the border have been tried.
    fn expected(&self, mode: SandboxMode) -> Vec<String> {
        let Self { name, op, on, .. } = self;
        let line = |side: &str, on: &str, errno: &str| format!("{op} {side}/{name}/{on} {errno} call");
        match (self.inside, mode) {
            (Inside::Mounts, _) => vec![line("out", on, "EPERM"), line("w", on, "EPERM")],
            // From outside it is the old name that is refused, from inside the new one.
            (Inside::Across, WorkspaceWrite) => vec![line("out", "f", "EXDEV"), line("out", on, "EXDEV")],
            (Inside::Across, _) => vec![line("out", "f", "EROFS"), line("w", "f", "EROFS")],
            (_, WorkspaceWrite) => vec![line("out", on, "EROFS")],
            _ => vec![line("out", on, "EROFS"), line("w", on, "EROFS")],
        }
    }
}

/// Makes a directory for every row on both sides, and the program that calls.
fn furnish(world: &World, rows: &[Row], route: Route) {
    let names: Vec<_> = rows.iter().map(|row| row.name).collect();
    world.prepare(&format!(
        "{ROOM}; for row in {}; do for side in $OUT $W; do cp -a room $side/$row; done; done; rm -r room",
        names.join(" ")
    ));
    let options = if route == Route::Static { "-static" } else { "" };
    compile(world, "call", CALL, options);
}

/// Tries every row from outside, then from inside.
fn script(world: &World, rows: &[Row], route: Route) -> String {
    let mut script = format!("U={}\n", world.uid());
    for (side, other) in [("$OUT", "$W"), ("$W", "$OUT")] {
        for row in rows {
            let (name, command) = (row.name, row.command(route));
            let _ = writeln!(
                script,
                "B={side}/{name} O={other}/{name}; echo {side} {name} $({command})"
            );
        }
    }
    script
        .replace("echo $OUT", "echo outside")
        .replace("echo $W", "echo inside")
}

/// What a row's call said on one side.
fn said(report: &Report, side: &str, row: &Row) -> String {
    let start = format!("{side} {} ", row.name);
    let line = report.stdout().lines().find(|line| line.starts_with(&start));
    line.map_or_else(
        || panic!("no `{start}`:\n{report}"),
        |line| line[start.len()..].to_owned(),
    )
}

fn every_call(mode: SandboxMode, evidence: &str, route: Route) {
    for_each_user(|world| {
        let rows = rows(world);
        furnish(world, &rows, route);
        let rooms = || {
            rows.iter()
                .map(|row| snapshot(&world.inside(row.name)))
                .collect::<Vec<_>>()
        };
        let (outside, inside) = (snapshot(&world.beside()), rooms());
        let case = Case::new(mode).shell(&script(world, &rows, route));
        let report = watched(&case, evidence, world).run_in(world);
        report.assert_exit(0).assert_full();

        assert_same(&outside, &snapshot(&world.beside()), "the outside changed");
        let source = if evidence == "auto" && mode == WorkspaceWrite && ACCELERATED {
            "retry"
        } else {
            "notify"
        };
        assert_eq!(report.text("/sandbox/evidenceSource"), source);
        for (row, (before, now)) in rows.iter().zip(inside.iter().zip(&rooms())) {
            let name = row.name;
            assert_ne!(said(&report, "outside", row), "ok", "{name} was not refused\n{report}");
            let works = mode == WorkspaceWrite && matches!(row.inside, Inside::Changes | Inside::Works);
            if row.inside != Inside::MayWork {
                assert_eq!(said(&report, "inside", row) == "ok", works, "{name}\n{report}");
            }
            if mode == ReadOnly || row.inside != Inside::MayWork {
                let changes = mode == WorkspaceWrite && row.inside == Inside::Changes;
                assert_eq!(before != now, changes, "{name} inside: {before:#?}\n{now:#?}");
            }
        }
        let mut expected: Vec<_> = rows.iter().flat_map(|row| row.expected(mode)).collect();
        // Of a directory that crosses the border it is the directory that is refused from outside.
        for line in &mut expected {
            *line = line.replace("rename-directory-across/f", "rename-directory-across/d");
        }
        expected.sort();
        assert_same(
            &expected,
            &records(world, &report),
            &format!("{evidence}, {route:?}\n{report}"),
        );
    });
}

#[test]
fn every_call_is_recorded_through_the_c_library() {
    every_call(WorkspaceWrite, "strict", Route::Function);
}

#[test]
fn every_call_is_recorded_through_the_accelerated_c_library() {
    every_call(WorkspaceWrite, "auto", Route::Function);
}

#[test]
fn every_call_of_a_static_program_is_recorded() {
    every_call(WorkspaceWrite, "strict", Route::Static);
    every_call(WorkspaceWrite, "auto", Route::Static);
}

#[test]
fn every_call_by_the_instruction_itself_is_recorded() {
    every_call(WorkspaceWrite, "strict", Route::Instruction);
    every_call(WorkspaceWrite, "auto", Route::Instruction);
}

#[test]
fn every_call_is_recorded_in_read_only() {
    every_call(ReadOnly, "auto", Route::Function);
    every_call(ReadOnly, "strict", Route::Instruction);
}

#[test]
fn what_is_refused_where_there_are_no_mounts_is_recorded_on_either_side() {
    for_each_user(|world| {
        let rows = rows(world);
        furnish(world, &rows, Route::Instruction);
        let before = snapshot(&world.beside());
        let case = Case::new(WorkspaceWrite)
            .inside(CONTAINER)
            .shell(&script(world, &rows, Route::Instruction));
        let report = watched(&case, "auto", world).run_in(world);
        report.assert_exit(0);
        assert_same(&before, &snapshot(&world.beside()), "the outside changed");
        let recorded = attempts(world, &report);
        let unseen = rows.iter().flat_map(|row| {
            [("outside", "out"), ("inside", "w")]
                .into_iter()
                .filter_map(|(side, place)| {
                    let refused = said(&report, side, row);
                    let across = row.inside == Inside::Across;
                    let seen = recorded.iter().any(|it| {
                        it.starts_with(&format!("{} {place}/{}/", row.op, row.name)) || across && it.contains(row.name)
                    });
                    (refused != "ok" && !seen).then(|| format!("{side} {}: {refused}", row.name))
                })
        });
        assert_same(
            &[],
            &unseen.collect::<Vec<_>>(),
            &format!("refused and not recorded\n{report}"),
        );
    });
}

#[test]
fn there_is_a_row_for_every_call_that_is_watched() {
    let tried: Vec<_> = everywhere().into_iter().chain(here()).map(|row| row.number).collect();
    // bind(2) takes a socket, so it has a test of its own: `programs::a_socket_that_is_bound_outside_…`.
    let missing: Vec<_> = ringfence_backend::calls::table()
        .into_iter()
        .filter(|(number, call)| {
            // The newer calls that mount have one as well.
            !tried.contains(number) && *number != libc::SYS_bind && !matches!(call, Call::Mount(_))
        })
        .collect();
    assert!(missing.is_empty(), "not tried: {missing:?}");
}

#[test]
fn the_newer_calls_that_mount_are_denials_to_root_as_well() {
    let Some(world) = World::of_root("the_newer_calls_that_mount_are_denials_to_root_as_well") else {
        return;
    };
    world.prepare("mkdir $OUT/d");
    compile(&world, "call", CALL, "");
    let unseen: Vec<_> = [
        format!("{} =tmpfs 0", libc::SYS_fsopen),
        format!("{} -100 =$OUT/d 1", libc::SYS_open_tree),
        format!("{} -100 =$OUT/d -100 =$OUT 0", libc::SYS_move_mount),
        format!("{} -100 =$OUT/d 0 %1,0,0,0 32", libc::SYS_mount_setattr),
    ]
    .into_iter()
    .filter(|call| {
        let case = Case::new(WorkspaceWrite).shell(&format!("$TOOLS/call {call}"));
        let report = watched(&case, "auto", &world).run_in(&world);
        assert_eq!(report.stdout(), "EPERM\n");
        !attempts(&world, &report)
            .iter()
            .all(|attempt| attempt.starts_with("mount "))
            || *report.field("/sandbox/denied") == false
    })
    .collect();
    assert!(unseen.is_empty(), "refused and not recorded: {unseen:?}");
}
