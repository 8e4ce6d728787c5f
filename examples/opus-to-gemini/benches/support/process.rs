//! Servers in processes of their own, and what they hold.

use std::{
    fs, io,
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
};

use tower_spillway_core::BoxError;

/// A server that said its address on the first line of its stdout. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    // A closed pipe would be an error to whoever prints more.
    _stdout: BufReader<ChildStdout>,
    url: String,
}

impl Server {
    /// This program again, with these arguments.
    pub fn this(arguments: &[&str]) -> Result<Self, BoxError> {
        Self::start(Command::new(std::env::current_exe()?).args(arguments))
    }

    pub fn start(command: &mut Command) -> Result<Self, BoxError> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let (mut stdout, mut line) = (BufReader::new(stdout), String::new());
        stdout.read_line(&mut line)?;
        let address = line.split_once("http://").map(|(_, rest)| rest);
        let in_address = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
        let address = address.and_then(|a| a.split(|c| !in_address(c)).next());
        let address = address.ok_or_else(|| format!("no address in {line:?}"))?;
        Ok(Self {
            child,
            _stdout: stdout,
            url: format!(
                "http://{}/v1/chat/completions",
                address.trim_end_matches(':')
            ),
        })
    }

    /// Of its chat endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Resident memory, in KiB.
    pub fn resident(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let figure = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        figure.ok_or_else(|| io::Error::other("no VmRSS"))
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> io::Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Lets this process, and those it starts, have so many descriptors.
pub fn allow_descriptors(enough: u64) -> Result<(), BoxError> {
    let allowed = rlimit::increase_nofile_limit(enough)?;
    if allowed < enough {
        return Err(format!("needs {enough} descriptors, may have {allowed}: ulimit -n").into());
    }
    Ok(())
}
