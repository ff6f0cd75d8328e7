use ringfence::approval::{Grant, Permit};

fn copied(grant: &Grant) -> Grant {
    grant.clone()
}

fn copied_permit(permit: &Permit) -> Permit {
    permit.clone()
}

fn main() {}
