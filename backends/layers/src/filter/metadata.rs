//! The filter for `read-only` without a mount layer: a long list, so it comes from seccompiler.

use std::collections::BTreeMap;

use libc::sock_filter;
use ringfence_backend::calls::{self, INODE_REQUESTS};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::Program;

/// ioctl types whose requests change inodes (btrfs, XFS, ext4 flags and the generic ones), and
/// those requests of them that do not.
const METADATA_TYPES: [u64; 5] = [0x94, b'X' as u64, b'f' as u64, b'v' as u64, b'r' as u64];
const HARMLESS: [u64; 10] = [
    0x8004_7210, // FAT_IOCTL_GET_ATTRIBUTES
    0x8218_7201, // VFAT_IOCTL_READDIR_BOTH
    0x8218_7202, // VFAT_IOCTL_READDIR_SHORT
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
    let metadata = calls::table().into_iter().filter(|(_, call)| call.is_metadata());
    compile(metadata.map(|(call, _)| call), &[])
}

/// The part of it that no path tells apart: requests to ioctl(2) that change an inode, and that the
/// runner makes for nobody.
///
/// # Errors
/// seccompiler's, which would be a fault of the tables above.
pub(crate) fn inode_requests() -> Result<Program, seccompiler::Error> {
    compile([], &INODE_REQUESTS)
}

/// A filter that refuses these calls and the ioctl(2) requests that change inodes, but for those that
/// are watched.
fn compile(refused: impl IntoIterator<Item = libc::c_long>, watched: &[u32]) -> Result<Program, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = refused.into_iter().map(|call| (call, Vec::new())).collect();
    let mut ioctls = Vec::new();
    for kind in METADATA_TYPES {
        let condition = |operator, value| SeccompCondition::new(1, SeccompCmpArgLen::Dword, operator, value);
        let mut conditions = vec![condition(SeccompCmpOp::MaskedEq(0xff00), kind << 8)?];
        let passed = HARMLESS
            .into_iter()
            .chain(watched.iter().map(|request| u64::from(*request)));
        for harmless in passed.filter(|request| (request >> 8) & 0xff == kind) {
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
        .map(|i| sock_filter {
            code: i.code,
            jt: i.jt,
            jf: i.jf,
            k: i.k,
        })
        .collect())
}
