//! What goes to stdout. `println!` panics once nobody reads it any more, as after `| head`.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// Whoever read stdout has left: there is nobody to tell.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads stdout any more")]
pub(crate) struct Closed;

/// Writes a text, at once.
pub(super) fn say(text: impl Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Closed.into(),
        _ => anyhow::Error::new(error).context("stdout cannot be written"),
    })
}
