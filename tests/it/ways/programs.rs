//! The programs in C that some attempts need, because Python cannot make such calls.

use super::way::Tool;

/// Makes one request to io_uring.
pub(super) const RING: Tool = ("ring", include_str!("../programs/ring.c"), "");

/// Makes calls by the table of another architecture.
pub(super) const FOREIGN: Tool = ("foreign", include_str!("../programs/foreign.c"), "");

/// A whole program of another architecture, which needs no C library.
pub(super) const SMALL: Tool = (
    "small",
    include_str!("../programs/small.c"),
    "-m32 -nostdlib -static -ffreestanding -fno-stack-protector -fno-pie -no-pie",
);

/// Makes a name mean one thing and then another, while it is used.
pub(super) const RACE: Tool = ("race", include_str!("../programs/race.c"), "");
