//! Asking for one looser run, and answering: at a terminal, from another one, by a program.

mod asker;
mod hook;
mod queue;
mod tty;
