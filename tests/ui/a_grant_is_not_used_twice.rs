use ringfence::approval::{Binding, Grant};

fn twice(grant: Grant, now: &Binding) {
    let _ = grant.consume(now);
    let _ = grant.consume(now);
}

fn main() {}
