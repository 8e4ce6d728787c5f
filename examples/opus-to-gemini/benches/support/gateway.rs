//! The gateway, as people run it: the binary, in a process of its own, with a file of settings.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use opus_to_gemini::fake::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY};
use tempfile::NamedTempFile;
use tower_spillway_core::BoxError;

use super::process::Server;

#[derive(Debug)]
pub struct Gateway {
    server: Server,
    _settings: NamedTempFile,
}

impl Gateway {
    /// With these settings, and the keys of the fakes. Its log is written, to where nobody reads.
    pub fn start(settings: &str) -> Result<Self, BoxError> {
        let mut file = NamedTempFile::with_suffix(".toml")?;
        file.write_all(settings.as_bytes())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
        command.arg(file.path()).stderr(Stdio::null());
        command.env("ANTHROPIC_API_KEY", FAKE_ANTHROPIC_KEY);
        command.env("GEMINI_API_KEY", FAKE_GEMINI_KEY);
        Ok(Self {
            server: Server::start(&mut command)?,
            _settings: file,
        })
    }

    pub fn server(&self) -> &Server {
        &self.server
    }
}

/// The shipped settings, but for the addresses of Opus and Gemini and how much there may be at one
/// time.
pub fn settings([opus, gemini]: [&str; 2], at_once: u32) -> String {
    format!(
        r#"
        [gateway]
        in_flight = {at_once}
        [pool]
        connections = {at_once}
        [targets.opus]
        url = "{opus}"
        in_flight = {at_once}
        [targets.gemini]
        url = "{gemini}"
        in_flight = {at_once}
        "#
    )
}
