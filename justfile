# Every recipe is what .ci/run does, one step at a time.

# The recipes.
[private]
default:
    @just --list

# Type-check everything.
check:
    cargo check --workspace --all-targets --all-features

# Every test, as root and as nobody when run by root.
test *ARGS:
    cargo test --workspace --all-features {{ARGS}}

# Formatting and lints.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# The documentation, with every broken link an error.
doc:
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --all-features

# Start-up and file-heavy work against the bare command and what else this machine has.
bench ROUNDS="200":
    cargo bench --bench startup -- {{ROUNDS}}

# What it costs to read GIB of output; BENCH_DIR must lie outside the temp area.
bench-output GIB="4":
    cargo bench --bench output -- {{GIB}}

# Type-check what runs on macOS.
darwin:
    .ci/darwin

# Licences and sources of the dependencies (needs cargo-deny).
deny:
    cargo deny check

# All that must be green before a change goes in.
ci:
    .ci/run
