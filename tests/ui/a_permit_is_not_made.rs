use ringfence::approval::Permit;

fn main() {
    let _ = Permit {
        request: String::new(),
        run: String::new(),
        digest: String::new(),
    };
}
