//! `serve` in a process that has no descriptor left.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod listening;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use opus_to_gemini::fake::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower_spillway_core::Chance;

const PLENTY: Duration = Duration::from_secs(60);

/// More connections than the gateway has descriptors.
const MOST: usize = 64;

struct Gateway {
    _fakes: (Fakes, Runtime),
    process: Child,
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    /// Over fakes that are reached by this name.
    fn start(host: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let fakes = runtime.block_on(Fakes::start(&Chance::seeded(5)));
        let fakes = fakes.unwrap();
        let [opus, gemini] =
            [&fakes.anthropic, &fakes.gemini].map(|fake| fake.url().replace("127.0.0.1", host));
        let mut settings = tempfile::NamedTempFile::new().unwrap();
        // Whoever has a connection keeps it, but those to targets.
        writeln!(
            settings,
            "[gateway]\nread_header_within = \"1h\"\n[pool]\nidle = 0\n\
             [targets.opus]\nurl = \"{opus}\"\n[targets.gemini]\nurl = \"{gemini}\""
        )
        .unwrap();
        let mut process = Command::new("sh")
            .args(["-c", &format!("ulimit -n {MOST} && exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_opus-to-gemini"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(settings.path())
            .env("ANTHROPIC_API_KEY", FAKE_ANTHROPIC_KEY)
            .env("GEMINI_API_KEY", FAKE_GEMINI_KEY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let address = listening::address(process.stdout.take().unwrap());
        let log = Arc::<Mutex<Vec<_>>>::default();
        let (lines, seen) = (process.stderr.take().unwrap(), Arc::clone(&log));
        thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                seen.lock().unwrap().push(line);
            }
        });
        Self {
            _fakes: (fakes, runtime),
            process,
            address,
            log,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PLENTY)).unwrap();
        stream
    }

    /// Lines of the log with this in them.
    fn told(&self, what: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.iter().filter(|line| line.contains(what)).count()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Asks on a connection that stays; gives status and body.
fn ask(stream: &mut TcpStream, method: &str, path: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut read = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        read.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_lowercase()),
        }
    }
    let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let length = lines
        .iter()
        .find_map(|l| l.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    read.read_exact(&mut body).unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime here")]
fn rest() {
    thread::sleep(Duration::from_millis(5));
}

fn chat(stream: &mut TcpStream) -> (u16, Value) {
    let body = r#"{"model":"claude-opus","messages":[{"role":"user","content":"Hi"}]}"#;
    ask(stream, "POST", "/v1/chat/completions", body)
}

#[test]
fn a_lack_of_descriptors_is_told_and_survived_and_is_no_targets_fault() {
    // To look a name up takes descriptors, too.
    for host in ["127.0.0.1", "localhost"] {
        is_told_and_survived(host);
    }
}

fn is_told_and_survived(host: &str) {
    let gateway = Gateway::start(host);
    let mut first = gateway.connect();
    assert_eq!(ask(&mut first, "GET", "/healthz", "").0, 200);

    let others: Vec<_> = (0..2 * MOST).map(|_| gateway.connect()).collect();
    while gateway.told("no connection can be taken") == 0 {
        rest();
    }
    let (status, said) = chat(&mut first);
    assert_eq!(status, 503, "{said}");
    assert_eq!(said["error"]["code"], "all_targets_refused");
    let tried = said["error"]["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 2, "both targets");
    for attempt in tried {
        assert_eq!(attempt["class"], "refused");
        assert_eq!(attempt["reason"], "no_descriptor");
    }
    // More of them than a breaker takes failures.
    for _ in 0..10 {
        assert_eq!(chat(&mut first).0, 503);
    }
    let (_, status) = ask(&mut first, "GET", "/status", "");
    for target in status["targets"].as_array().unwrap() {
        assert_eq!(target["breaker"]["state"], "closed", "{target}");
        assert_eq!(target["breaker"]["failures_in_a_row"], 0);
    }
    // Once of the calls, once of the connections: neither in a loop without a rest.
    while gateway.told("ulimit -n") < 2 {
        rest();
    }
    assert_eq!(gateway.told("ulimit -n"), 2);

    drop(others);
    while chat(&mut first).0 != 200 {
        rest();
    }
    assert_eq!(ask(&mut gateway.connect(), "GET", "/healthz", "").0, 200);
}
