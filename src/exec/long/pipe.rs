//! A text in a pipe, where there are no files without a name that can be sealed.

use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// What a text and a final NUL byte are read from, once; nobody else has a way to them.
///
/// A thread writes what the pipe does not hold yet. It ends when all is read, or nobody is left who
/// could.
pub(super) fn aside(text: &[u8]) -> io::Result<OwnedFd> {
    let (read, mut write) = io::pipe()?;
    // A clone is never one of the first three.
    let read = OwnedFd::from(read).try_clone()?;
    let mut text = text.to_vec();
    text.push(0);
    std::thread::Builder::new().spawn(move || {
        // A command that does not read its text has ended.
        let _ = write.write_all(&text);
    })?;
    Ok(read)
}
