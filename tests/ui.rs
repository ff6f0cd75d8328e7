//! What must not compile: a grant is used once, and made by nobody but a desk.

#[test]
fn a_grant_is_used_once_copied_never_and_made_by_nobody() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
