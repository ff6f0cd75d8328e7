//! Notes and checkpoints against another implementation.

use signed_note::{StandardSigner, StandardVerifier, VerifierList};

use super::super::{Checkpoint, Hash};
use super::*;

fn checkpoint() -> Checkpoint {
    Checkpoint {
        origin: "ringfence/host/0011".to_owned(),
        size: 42,
        root: Hash::of(b"x"),
    }
}

#[test]
fn another_implementation_reads_and_verifies_what_is_signed_here() {
    let signer = Signer::generate("ringfence/host/0011").unwrap();
    let note = signer.sign(&checkpoint().text());
    let theirs = signed_note::Note::from_bytes(note.as_bytes()).unwrap();
    let verifier = StandardVerifier::new(&signer.verifier()).unwrap();
    let (good, unknown) = theirs.verify(&VerifierList::new(vec![Box::new(verifier)])).unwrap();
    assert_eq!((good.len(), unknown.len()), (1, 0));
    let read = tlog_tiles::Checkpoint::from_bytes(theirs.text()).unwrap();
    assert_eq!(
        (read.origin(), read.size(), read.hash().0),
        ("ringfence/host/0011", 42, Hash::of(b"x").0)
    );
}

#[test]
fn what_another_implementation_signs_is_verified_here() {
    let ours = Signer::generate("name").unwrap();
    let theirs = StandardSigner::new(ours.text().trim_end()).unwrap();
    let mut note = signed_note::Note::new(checkpoint().text().as_bytes(), &[]).unwrap();
    note.add_sigs(&[&theirs]).unwrap();
    let note = Note::parse(std::str::from_utf8(&note.to_bytes()).unwrap()).unwrap();
    assert!(Verifier::parse(&ours.verifier()).unwrap().verifies(&note));
    assert_eq!(Checkpoint::parse(&note.text), Some(checkpoint()));
}

#[test]
fn a_changed_text_another_key_or_no_signature_does_not_verify() {
    let signer = Signer::generate("name").unwrap();
    let verifier = Verifier::parse(&signer.verifier()).unwrap();
    let note = signer.sign(&checkpoint().text());
    assert!(verifier.verifies(&Note::parse(&note).unwrap()));
    assert!(!verifier.verifies(&Note::parse(&note.replace("42", "43")).unwrap()));
    assert!(!verifier.verifies(&Note::parse(&checkpoint().text()).unwrap()));
    let other = Signer::generate("name").unwrap();
    assert!(!verifier.verifies(&Note::parse(&other.sign(&checkpoint().text())).unwrap()));
}

#[test]
fn keys_are_read_as_they_are_written_and_others_are_refused() {
    let signer = Signer::generate("name").unwrap();
    assert_eq!(Signer::parse(&signer.text()).unwrap().text(), signer.text());
    for wrong in [
        "",
        "name",
        "name+00000000+AAAA",
        &signer.verifier().replace("name", "nome"),
    ] {
        assert!(Verifier::parse(wrong).is_none(), "{wrong}");
        assert!(Signer::parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn a_checkpoint_that_is_none_is_refused() {
    for wrong in ["", "o\n1\n", "o\n01\nAAAA\n", "\n1\n", "o\n-1\nx\n", "o\n1\nAAAA\n"] {
        assert_eq!(Checkpoint::parse(wrong), None, "{wrong}");
    }
}
