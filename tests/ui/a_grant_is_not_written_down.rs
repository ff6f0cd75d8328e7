use ringfence::approval::Grant;

fn written(grant: &Grant) -> String {
    serde_json::to_string(grant).unwrap()
}

fn main() {}
