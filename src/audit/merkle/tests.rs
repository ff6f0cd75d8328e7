//! The tree against the definition of RFC 6962, and against another implementation.

use super::*;

/// The definition, word by word.
fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Hash::of(b""),
        [one] => *one,
        more => {
            let half = more.len().next_power_of_two() / 2;
            node(root(&more[..half]), root(&more[half..]))
        }
    }
}

fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(|n| leaf(n.to_string().as_bytes())).collect()
}

#[test]
fn the_root_is_that_of_the_definition_for_every_size() {
    let leaves = leaves(130);
    let mut range = Range::starting_at(0);
    for (size, leaf) in leaves.iter().enumerate() {
        assert_eq!(range.root(), Some(root(&leaves[..size])));
        let again = Range::from_frontier(range.size(), &range.frontier().unwrap()).unwrap();
        assert_eq!(again, range);
        range.push(*leaf);
    }
}

#[test]
fn the_root_is_that_of_another_implementation() {
    use tlog_tiles::tlog;
    let mut stored: Vec<tlog::Hash> = Vec::new();
    let mut range = Range::starting_at(0);
    for n in 0..300 {
        let line = n.to_string();
        let reader = Stored(stored.clone());
        stored.extend(tlog::stored_hashes(n, line.as_bytes(), &reader).unwrap());
        range.push(leaf(line.as_bytes()));
        let theirs = tlog::tree_hash(n + 1, &Stored(stored.clone())).unwrap();
        assert_eq!(theirs.0, range.root().unwrap().0, "{n}");
    }
}

#[test]
fn two_ranges_are_as_one() {
    let leaves = leaves(70);
    let range = |from: usize, to: usize| {
        let mut range = Range::starting_at(from as u64);
        for leaf in &leaves[from..to] {
            range.push(*leaf);
        }
        range
    };
    for middle in 0..=70 {
        assert_eq!(
            range(0, middle).joined(&range(middle, 70)),
            Some(range(0, 70)),
            "{middle}"
        );
    }
    assert_eq!(range(0, 5).joined(&range(6, 9)), None);
    assert_eq!(range(1, 9).root(), None);
}

#[test]
fn an_earlier_root_is_told_where_the_subtrees_tell_it_and_nowhere_else() {
    let leaves = leaves(13);
    let mut range = Range::starting_at(0);
    for leaf in &leaves {
        range.push(*leaf);
    }
    for size in 0..=13 {
        let expected = [0, 8, 12, 13].contains(&size).then(|| root(&leaves[..size]));
        assert_eq!(range.root_at(size as u64), expected, "{size}");
    }
}

struct Stored(Vec<tlog_tiles::tlog::Hash>);

impl tlog_tiles::tlog::HashReader for Stored {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::tlog::Hash>, tlog_tiles::tlog::Error> {
        Ok(indexes.iter().map(|at| self.0[usize::try_from(*at).unwrap()]).collect())
    }
}
