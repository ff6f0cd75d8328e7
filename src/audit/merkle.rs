//! The Merkle tree of RFC 6962 over the lines of the trail, of which only as many hashes are kept as a
//! root needs.

use super::hash::Hash;

/// The hash of a leaf.
pub(super) fn leaf(line: &[u8]) -> Hash {
    Hash::of_all(&[&[0], line])
}

fn node(left: Hash, right: Hash) -> Hash {
    let mut bytes = [1; 65];
    bytes[1..33].copy_from_slice(&left.0);
    bytes[33..].copy_from_slice(&right.0);
    Hash::of(&bytes)
}

/// A complete subtree: the leaves from `index << level` on, `1 << level` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subtree {
    level: u32,
    index: u64,
    hash: Hash,
}

/// The largest complete subtrees that cover the leaves from `begin` to `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    begin: u64,
    end: u64,
    subtrees: Vec<Subtree>,
}

impl Range {
    /// No leaf yet; the next is number `begin`, counted from 0.
    pub(super) const fn starting_at(begin: u64) -> Self {
        Self {
            begin,
            end: begin,
            subtrees: Vec::new(),
        }
    }

    /// The leaves from the first on, from the hashes of their largest complete subtrees. Nothing when there
    /// are more or fewer hashes than that.
    pub(super) fn from_frontier(size: u64, hashes: &[Hash]) -> Option<Self> {
        if hashes.len() != size.count_ones() as usize {
            return None;
        }
        let levels = (0..u64::BITS).rev().filter(|level| size >> level & 1 == 1);
        let mut begin = 0;
        let subtrees = levels
            .zip(hashes)
            .map(|(level, hash)| {
                let index = begin >> level;
                begin += 1 << level;
                Subtree {
                    level,
                    index,
                    hash: *hash,
                }
            })
            .collect();
        Some(Self {
            begin: 0,
            end: size,
            subtrees,
        })
    }

    /// Adds the next leaf.
    pub(super) fn push(&mut self, leaf: Hash) {
        let index = self.end;
        self.add(Subtree {
            level: 0,
            index,
            hash: leaf,
        });
    }

    fn add(&mut self, mut subtree: Subtree) {
        self.end += 1 << subtree.level;
        while let Some(left) = self.subtrees.last().copied()
            && left.level == subtree.level
            && left.index + 1 == subtree.index
            && subtree.index % 2 == 1
        {
            self.subtrees.pop();
            subtree = Subtree {
                level: left.level + 1,
                index: left.index / 2,
                hash: node(left.hash, subtree.hash),
            };
        }
        self.subtrees.push(subtree);
    }

    /// This range and the one that begins where it ends.
    pub(super) fn joined(mut self, next: &Self) -> Option<Self> {
        if next.begin != self.end {
            return None;
        }
        for subtree in &next.subtrees {
            self.add(*subtree);
        }
        Some(self)
    }

    /// How many leaves there are up to its end.
    pub(super) const fn size(&self) -> u64 {
        self.end
    }

    /// The root, if the range begins with the first leaf.
    pub(super) fn root(&self) -> Option<Hash> {
        if self.begin != 0 {
            return None;
        }
        let mut hashes = self.subtrees.iter().rev().map(|it| it.hash);
        let Some(last) = hashes.next() else {
            return Some(Hash::of(b""));
        };
        Some(hashes.fold(last, |right, left| node(left, right)))
    }

    /// The hashes of its subtrees, largest first, if the range begins with the first leaf.
    pub(super) fn frontier(&self) -> Option<Vec<Hash>> {
        (self.begin == 0).then(|| self.subtrees.iter().map(|it| it.hash).collect())
    }

    /// The root that the tree had when it was of this size, where the subtrees that are kept still tell.
    pub(super) fn root_at(&self, size: u64) -> Option<Hash> {
        let mut earlier = Self::starting_at(0);
        for subtree in self.subtrees.iter().take_while(|it| (it.index + 1) << it.level <= size) {
            earlier.add(*subtree);
        }
        (self.begin == 0 && earlier.end == size).then(|| earlier.root())?
    }
}

#[cfg(test)]
mod tests;
