//! Telling a key that was pressed from what came in one piece: a paste, a sequence of a special key.

/// What came from the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// One key.
    Byte(u8),
    /// Enter alone.
    Enter,
    /// More than a finger does at once.
    Several,
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// What has come and is not understood yet.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pasting: bool,
    /// The beginning of a mark whose rest has not come.
    rest: Vec<u8>,
}

impl Keys {
    /// Reads what came in one burst. Nothing while a paste goes on.
    pub(super) fn read(&mut self, burst: &[u8]) -> Option<Pressed> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(burst);
        let mut marked = false;
        let mut from = 0;
        loop {
            let mark = if self.pasting { PASTE_ENDS } else { PASTE_BEGINS };
            let Some(at) = find(&bytes[from..], mark) else {
                break;
            };
            from += at + mark.len();
            self.pasting = !self.pasting;
            marked = true;
        }
        let left = &bytes[from..];
        let mark = if self.pasting { PASTE_ENDS } else { PASTE_BEGINS };
        // A lone escape is a key, and no mark that was cut off.
        let least = if self.pasting { 1 } else { 2 };
        let cut = (least..mark.len()).rev().find(|count| left.ends_with(&mark[..*count]));
        if let Some(count) = cut {
            self.rest = left[left.len() - count..].to_vec();
            return None;
        }
        if self.pasting {
            return None;
        }
        match left {
            _ if marked => Some(Pressed::Several),
            [] => None,
            [b'\r' | b'\n'] => Some(Pressed::Enter),
            [byte] => Some(Pressed::Byte(*byte)),
            _ => Some(Pressed::Several),
        }
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bursts: &[&[u8]]) -> Vec<Option<Pressed>> {
        let mut keys = Keys::default();
        bursts.iter().map(|burst| keys.read(burst)).collect()
    }

    #[test]
    fn one_key_is_one_key_and_a_burst_is_none() {
        let a = Some(Pressed::Byte(b'a'));
        assert_eq!(read(&[b"a"]), [a]);
        assert_eq!(read(&[b"\n"]), [Some(Pressed::Enter)]);
        let several = Some(Pressed::Several);
        assert_eq!(read(&[b"a\n", b"aa", b"\x1b[A", b"a"]), [several, several, several, a]);
    }

    #[test]
    fn what_is_in_a_paste_is_no_key_however_it_comes() {
        let several = Some(Pressed::Several);
        assert_eq!(read(&[b"\x1b[200~a\x1b[201~"]), [several]);
        assert_eq!(read(&[b"\x1b[200~", b"a", b"\x1b[201~"]), [None, None, several]);
        assert_eq!(
            read(&[b"\x1b[20", b"0~", b"a", b"\x1b", b"[201~"]),
            [None, None, None, None, several]
        );
        assert_eq!(read(&[b"\x1b[200~x\x1b[201~\x1b[200~", b"a"]), [None, None]);
    }
}
