//! A program that does nothing but what stands between a runner and its command.

fn main() -> std::process::ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ringfence_backend::darwin::enter(&words).map_or(std::process::ExitCode::FAILURE, std::process::ExitCode::from)
}
