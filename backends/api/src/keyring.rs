//! What has to be believed from one process to the next, kept where no confined command can write.
//!
//! A file of the user's can lie in some run's workspace, and then a command of that run can forge
//! it. The user's keyring (keyrings(7)) cannot be forged: the filter of every confined run refuses
//! the calls that reach it. It is gone with the boot, as what is kept there should be.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;

/// `KEY_SPEC_USER_KEYRING`, and operations of keyctl(2) (linux/keyctl.h).
const USER_KEYRING: libc::c_long = -4;
const SETPERM: libc::c_long = 5;
const UNLINK: libc::c_long = 9;
const SEARCH: libc::c_long = 10;
const READ: libc::c_long = 11;
/// Everything for the possessor and for the user; nothing for anybody else.
const PERMISSIONS: libc::c_long = 0x3f3f_0000;
/// More than anything kept here takes.
const LONGEST: usize = 4096;

/// Keeps a text under a name, in place of an older one.
///
/// # Errors
/// The operating system's: keys are not everywhere, and users have a quota.
pub fn keep(name: &CStr, text: &str) -> io::Result<()> {
    // SAFETY: reads C strings and a live slice with its length.
    let key = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            name.as_ptr(),
            text.as_ptr(),
            text.len(),
            USER_KEYRING,
        )
    };
    if key < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes numbers only.
    if unsafe { libc::syscall(libc::SYS_keyctl, SETPERM, key, PERMISSIONS) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The text kept under a name.
#[must_use]
pub fn kept(name: &CStr) -> Option<String> {
    let key = find(name)?;
    let mut text = vec![0; LONGEST];
    // SAFETY: fills a live buffer of the given length; the answer is the text's whole length.
    let length = unsafe { libc::syscall(libc::SYS_keyctl, READ, key, text.as_mut_ptr(), text.len()) };
    let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST)?;
    text.truncate(length);
    String::from_utf8(text).ok()
}

/// Forgets what is kept under a name.
pub fn forget(name: &CStr) {
    if let Some(key) = find(name) {
        // SAFETY: takes numbers only.
        unsafe { libc::syscall(libc::SYS_keyctl, UNLINK, key, USER_KEYRING) };
    }
}

fn find(name: &CStr) -> Option<libc::c_long> {
    // SAFETY: reads C strings.
    let key = unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            SEARCH,
            USER_KEYRING,
            c"user".as_ptr(),
            name.as_ptr(),
            0,
        )
    };
    (key > 0).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_replaced_and_forgotten() {
        let name = c"ringfence:test";
        keep(name, "first").unwrap();
        keep(name, "second").unwrap();
        assert_eq!(kept(name).as_deref(), Some("second"));
        forget(name);
        assert_eq!(kept(name), None);
    }
}
