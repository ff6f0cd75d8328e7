//! Making a record that is too long shorter, and leaving a mark where something was left out.

use super::{Entry, Event};

impl Entry {
    /// Cuts each list and each text that has more than its part of `room` bytes.
    pub(in super::super) fn shorten(&mut self, room: usize) {
        for text in self.session.iter_mut().chain(&mut self.run) {
            cut(text, room / 4);
        }
        if let Some(words) = self.event.words() {
            cut_list(words, room);
        }
        if let Event::SandboxUnavailable { tried } = &mut self.event {
            tried.truncate(8);
        }
        for text in self.event.texts() {
            cut(text, room / 4);
        }
    }
}

impl Event {
    /// The command's words, where there are any.
    pub(in super::super) fn words(&mut self) -> Option<&mut Vec<String>> {
        match self {
            Self::RunStart { argv, .. } | Self::ApprovalAsked { argv, .. } => Some(argv),
            _ => None,
        }
    }

    /// What was said in words, and may have any length.
    pub(in super::super) fn prose(&mut self) -> Vec<&mut String> {
        match self {
            Self::SandboxUnavailable { tried } => tried.iter_mut().map(|it| &mut it.reason).collect(),
            Self::RunnerFailed { message, .. } => vec![message],
            Self::ApprovalAsked {
                difference,
                justification,
                ..
            } => vec![difference, justification],
            Self::ApprovalDecided { by, .. } => std::iter::once(&mut by.principal).chain(&mut by.reason).collect(),
            Self::Gap { what, .. } => vec![what],
            _ => Vec::new(),
        }
    }

    /// Every text that may be long.
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::RunStart {
                workdir,
                approval,
                retry_of,
                ..
            } => std::iter::once(workdir).chain(approval).chain(retry_of).collect(),
            Self::Denial {
                path,
                path_bytes,
                program,
                errno,
                ..
            } => [path, errno].into_iter().chain(path_bytes).chain(program).collect(),
            Self::SessionCreated { cwd, .. } => vec![cwd],
            Self::ApprovalAsked {
                request,
                workdir,
                difference,
                justification,
                digest,
                expires_at,
                ..
            } => vec![request, workdir, difference, justification, digest, expires_at],
            Self::ApprovalDecided {
                request,
                outcome,
                by,
                digest,
            } => [request, outcome, digest, &mut by.kind, &mut by.principal]
                .into_iter()
                .chain(&mut by.assurance)
                .chain(&mut by.reason)
                .collect(),
            Self::ApprovalConsumed { request, digest } => vec![request, digest],
            Self::PolicyLoaded { source, sha256 } => vec![source, sha256],
            other => other.prose(),
        }
    }
}

/// Cuts a text to about `most` bytes.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let kept = text.floor_char_boundary(most);
        let left = text.len() - kept;
        *text = format!("{} [{left} bytes left out]", &text[..kept]);
    }
}

/// Cuts a list of words to about `most` bytes, each with its quotes and comma.
fn cut_list(words: &mut Vec<String>, most: usize) {
    let mut total = 0;
    for at in 0..words.len() {
        let left = words.len() - at - 1;
        let room = most.saturating_sub(total);
        cut(&mut words[at], room);
        total += words[at].len() + 3;
        if total >= most && left > 0 {
            words.truncate(at + 1);
            words.push(format!("[{left} more words left out]"));
            return;
        }
    }
}
