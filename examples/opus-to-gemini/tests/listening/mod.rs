//! Where a started `serve` listens.

use std::{
    io::{BufRead, BufReader},
    process::ChildStdout,
};

/// The address that it says, once it says it.
pub(crate) fn address(stdout: ChildStdout) -> String {
    let mut lines = BufReader::new(stdout).lines();
    loop {
        let line = lines.next().unwrap().unwrap();
        if let Some(rest) = line.strip_prefix("Listening on http://") {
            return rest.split(": ").next().unwrap().to_owned();
        }
    }
}
