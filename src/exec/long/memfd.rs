//! A text in a sealed memfd.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// What a text and a final NUL byte are read from; nobody can change them any more.
pub(super) fn aside(text: &[u8]) -> io::Result<OwnedFd> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    // A clone is never one of the first three, in whose place the command's own streams come: a host
    // may have closed its own.
    let fd = memfd_create(c"command", flags)?.try_clone()?;
    let mut file = File::from(fd);
    file.write_all(text)?;
    file.write_all(&[0])?;
    let seals = SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    // The offset is shared with the command.
    io::Seek::rewind(&mut file)?;
    if file.metadata()?.len() != text.len() as u64 + 1 {
        return Err(Errno::EIO.into());
    }
    Ok(file.into())
}
