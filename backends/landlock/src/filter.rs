//! System call filters.
//!
//! The filter of every run is assembled by hand because its length is its price: installing 20
//! instructions costs a third of what 84 cost. The long list of the fallback comes from
//! seccompiler.

use std::collections::BTreeMap;

use libc::sock_filter;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// A compiled filter.
pub(crate) type Program = Vec<sock_filter>;

/// `AUDIT_ARCH_*` of the calls a native program makes (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// Call numbers from here on are x32's (`__X32_SYSCALL_BIT`).
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`: the call's number, its architecture, the low half of its
/// second argument.
const NR: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENT_1: u32 = 24;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
#[cfg(target_arch = "x86_64")]
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;

/// Calls refused with EPERM: kernel modules, and keyrings that outlive the run.
const REFUSED: [libc::c_long; 6] = [
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Next,
    Ioctl,
    Allow,
    Eperm,
    Enosys,
}

/// An instruction with a symbolic jump for the case that its test holds.
struct Line(u16, u32, Label);

/// The filter of every confined run: foreign architectures and io_uring do not exist, keyrings and
/// kernel modules are refused, and nothing is typed into a terminal.
pub(crate) fn base() -> Program {
    let mut lines = vec![
        Line(LOAD, ARCHITECTURE, Label::Next),
        // Skips the refusal below when the architecture is ours.
        Line(JUMP_EQUAL, ARCH, Label::Next),
        Line(JUMP, 0, Label::Enosys),
        Line(LOAD, NR, Label::Next),
        #[cfg(target_arch = "x86_64")]
        Line(JUMP_GREATER_OR_EQUAL, X32, Label::Enosys),
        Line(JUMP_EQUAL, number(libc::SYS_io_uring_setup), Label::Enosys),
        Line(JUMP_EQUAL, number(libc::SYS_ioctl), Label::Ioctl),
    ];
    lines.extend(REFUSED.map(|call| Line(JUMP_EQUAL, number(call), Label::Eperm)));
    lines.push(Line(JUMP, 0, Label::Allow));
    let ioctl = lines.len();
    lines.push(Line(LOAD, ARGUMENT_1, Label::Next));
    lines.push(Line(JUMP_EQUAL, request(libc::TIOCSTI), Label::Eperm));
    lines.push(Line(JUMP_EQUAL, request(libc::TIOCLINUX), Label::Eperm));
    let allow = lines.len();
    let place = |label| match label {
        Label::Next => 0,
        Label::Ioctl => ioctl,
        Label::Allow => allow,
        Label::Eperm => allow + 1,
        Label::Enosys => allow + 2,
    };
    let mut program: Program = Vec::with_capacity(allow + 3);
    for (at, Line(code, k, label)) in lines.into_iter().enumerate() {
        let ahead = place(label).saturating_sub(at + 1);
        program.push(match (code, label) {
            (JUMP_EQUAL, Label::Next) => instruction(code, 1, 0, k),
            (_, Label::Next) => instruction(code, 0, 0, k),
            (JUMP, _) => instruction(code, 0, 0, u32::try_from(ahead).unwrap_or(0)),
            _ => instruction(code, u8::try_from(ahead).unwrap_or(0), 0, k),
        });
    }
    program.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program.push(instruction(
        RETURN,
        0,
        0,
        libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned(),
    ));
    program.push(instruction(
        RETURN,
        0,
        0,
        libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
    ));
    program
}

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// A call's number as a filter compares it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "call numbers are small and positive"
)]
const fn number(call: libc::c_long) -> u32 {
    call as u32
}

/// An ioctl request as a filter compares it: the kernel looks at 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "ioctl(2) requests have 32 bits")]
#[allow(
    clippy::unnecessary_cast,
    reason = "the type of a request differs between C libraries"
)]
const fn request(request: libc::Ioctl) -> u32 {
    request as u32
}

/// Calls that change metadata, whatever the path. Numbers that the `libc` crate does not name yet
/// are those of every architecture (linux/unistd.h).
fn metadata_calls() -> Vec<libc::c_long> {
    const FCHMODAT2: libc::c_long = 452;
    const SETXATTRAT: libc::c_long = 463;
    const REMOVEXATTRAT: libc::c_long = 466;
    const FILE_SETATTR: libc::c_long = 469;
    let mut calls = vec![
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        FCHMODAT2,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        SETXATTRAT,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
        REMOVEXATTRAT,
        FILE_SETATTR,
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_lchown,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
    ]);
    calls
}

/// ioctl types whose requests change inodes (btrfs, XFS, ext4 flags and the generic ones), and
/// those requests of them that do not.
const METADATA_TYPES: [u64; 4] = [0x94, b'X' as u64, b'f' as u64, b'v' as u64];
const HARMLESS: [u64; 7] = [
    0x4004_9409, // FICLONE
    0x4020_940d, // FICLONERANGE
    0xc018_9436, // FIDEDUPERANGE
    0x801c_581f, // FS_IOC_FSGETXATTR
    0x8008_6601, // FS_IOC_GETFLAGS
    0xc020_660b, // FS_IOC_FIEMAP
    0x8008_7601, // FS_IOC_GETVERSION
];

/// The filter for `read-only` without a mount layer: every call that changes metadata gets EROFS.
///
/// # Errors
/// seccompiler's, which would be a fault of the tables above.
pub(crate) fn metadata() -> Result<Program, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        metadata_calls().into_iter().map(|call| (call, Vec::new())).collect();
    let mut ioctls = Vec::new();
    for kind in METADATA_TYPES {
        let condition = |operator, value| SeccompCondition::new(1, SeccompCmpArgLen::Dword, operator, value);
        let mut conditions = vec![condition(SeccompCmpOp::MaskedEq(0xff00), kind << 8)?];
        for harmless in HARMLESS.into_iter().filter(|request| (request >> 8) & 0xff == kind) {
            conditions.push(condition(SeccompCmpOp::Ne, harmless)?);
        }
        ioctls.push(SeccompRule::new(conditions)?);
    }
    rules.insert(libc::SYS_ioctl, ioctls);
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(libc::EROFS.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let program = seccompiler::BpfProgram::try_from(filter)?;
    Ok(program
        .into_iter()
        .map(|i| instruction(i.code, i.jt, i.jf, i.k))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter as the kernel would, for the instructions that occur in it.
    fn verdict(program: &[sock_filter], arch: u32, nr: u32, argument_1: u32) -> u32 {
        let mut accumulator = 0;
        let mut at = 0;
        loop {
            let i = program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { i.jt } else { i.jf });
            match i.code {
                LOAD => {
                    accumulator = match i.k {
                        NR => nr,
                        ARCHITECTURE => arch,
                        ARGUMENT_1 => argument_1,
                        _ => 0,
                    };
                }
                JUMP_EQUAL => at += jump(accumulator == i.k),
                0x35 => at += jump(accumulator >= i.k),
                0x25 => at += jump(accumulator > i.k),
                0x45 => at += jump(accumulator & i.k != 0),
                0x54 => accumulator &= i.k,
                JUMP => at += i.k as usize,
                RETURN => return i.k,
                other => panic!("an instruction that the test does not know: {other:#x}"),
            }
        }
    }

    fn errno(value: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | value.cast_unsigned()
    }

    #[test]
    fn foreign_architectures_and_io_uring_do_not_exist() {
        let base = base();
        assert_eq!(
            verdict(&base, 0x4000_0003, number(libc::SYS_read), 0),
            errno(libc::ENOSYS)
        );
        assert_eq!(
            verdict(&base, ARCH, number(libc::SYS_io_uring_setup), 0),
            errno(libc::ENOSYS)
        );
        #[cfg(target_arch = "x86_64")]
        assert_eq!(verdict(&base, ARCH, X32 | 1, 0), errno(libc::ENOSYS));
    }

    #[test]
    fn keyrings_modules_and_typing_into_terminals_are_refused() {
        let base = base();
        for call in REFUSED {
            assert_eq!(verdict(&base, ARCH, number(call), 0), errno(libc::EPERM), "call {call}");
        }
        for typed in [libc::TIOCSTI, libc::TIOCLINUX] {
            assert_eq!(
                verdict(&base, ARCH, number(libc::SYS_ioctl), request(typed)),
                errno(libc::EPERM)
            );
        }
    }

    #[test]
    fn ordinary_calls_pass_the_base_filter() {
        let base = base();
        for call in [libc::SYS_read, libc::SYS_openat, libc::SYS_fchmod, libc::SYS_execve] {
            assert_eq!(
                verdict(&base, ARCH, number(call), 0),
                libc::SECCOMP_RET_ALLOW,
                "call {call}"
            );
        }
        assert_eq!(
            verdict(&base, ARCH, number(libc::SYS_ioctl), request(libc::TCGETS)),
            libc::SECCOMP_RET_ALLOW
        );
    }

    #[test]
    fn the_base_filter_stays_short() {
        assert!(base().len() <= 22, "{} instructions", base().len());
    }

    #[test]
    fn every_metadata_call_is_refused_in_the_fallback() {
        let metadata = metadata().unwrap();
        for call in metadata_calls() {
            assert_eq!(
                verdict(&metadata, ARCH, number(call), 0),
                errno(libc::EROFS),
                "call {call}"
            );
        }
        // FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR change an inode, FS_IOC_GETFLAGS and FICLONE do not.
        for (ioctl, want) in [
            (0x4008_6602, errno(libc::EROFS)),
            (0x401c_5820, errno(libc::EROFS)),
            (0x8008_6601, libc::SECCOMP_RET_ALLOW),
            (0x4004_9409, libc::SECCOMP_RET_ALLOW),
            (request(libc::TCGETS), libc::SECCOMP_RET_ALLOW),
        ] {
            assert_eq!(
                verdict(&metadata, ARCH, number(libc::SYS_ioctl), ioctl),
                want,
                "ioctl {ioctl:#x}"
            );
        }
        assert_eq!(
            verdict(&metadata, ARCH, number(libc::SYS_openat), 0),
            libc::SECCOMP_RET_ALLOW
        );
    }
}
