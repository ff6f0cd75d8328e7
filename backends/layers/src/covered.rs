//! What a container covers in /proc, and a /proc of the run's own would show.

use crate::kernel::has_mounts_below;

/// What most hosts mount in /proc, and nothing that is hidden by it.
const BINFMT: &str = "/proc/sys/fs/binfmt_misc";

/// That nothing is covered. In a user namespace the kernel refuses to mount another /proc over one that is
/// covered in part; root is not asked (mount_namespaces(7)).
///
/// Containers also cover parts with themselves, to make them read-only. Where the run's own /proc is
/// `read_only` under every policy, that hides nothing.
///
/// # Errors
/// What is covered, in a sentence.
pub fn nothing_covered_in_proc(read_only: bool) -> Result<(), String> {
    // The usual case, and a tenth of the time that the table takes.
    if has_mounts_below(c"/proc") == Ok(false) {
        return Ok(());
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(|e| format!("/proc/self/mountinfo: {e}"))?;
    covered(&mounts, read_only).map_or(Ok(()), |at| {
        Err(format!("{at} is covered, and a /proc of the run's own would show it"))
    })
}

/// The first path that is covered in a table of mounts.
fn covered(mounts: &str, read_only: bool) -> Option<&str> {
    // proc_pid_mountinfo(5): the fourth field is what is mounted of its file system, the fifth where; the
    // file system's type is the first field behind the dash.
    let covers = |line: &&str| {
        let mut fields = line.split(' ').skip(3);
        let (root, at) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let with_itself = at.strip_prefix("/proc") == Some(root) && line.contains(" - proc ");
        at.starts_with("/proc/") && at != BINFMT && !(read_only && with_itself)
    };
    mounts.lines().find(covers)?.split(' ').nth(4)
}

#[cfg(test)]
mod tests {
    use super::covered;

    #[test]
    fn what_lies_over_a_part_of_proc_is_found() {
        let ordinary = "1 0 0:1 / /proc rw - proc proc rw\n2 1 0:2 / /proc/sys/fs/binfmt_misc rw - binfmt_misc b rw\n";
        assert_eq!(covered(ordinary, false), None);
        let masked = format!("{ordinary}3 1 0:3 / /proc/irq ro - tmpfs t ro\n");
        for read_only in [false, true] {
            assert_eq!(covered(&masked, read_only), Some("/proc/irq"));
        }
        let other = format!("{ordinary}3 1 0:1 /bus /proc/irq ro - proc proc rw\n");
        assert_eq!(covered(&other, true), Some("/proc/irq"));
    }

    #[test]
    fn a_part_that_lies_over_itself_hides_nothing_in_a_read_only_proc() {
        let table = "1 0 0:1 / /proc rw - proc proc rw\n2 1 0:1 /irq /proc/irq ro - proc proc rw\n";
        assert_eq!(covered(table, true), None);
        assert_eq!(covered(table, false), Some("/proc/irq"));
    }
}
