//! Signals to `serve`.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod listening;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

const PLENTY: Duration = Duration::from_secs(30);

/// A gateway over fakes, and its address.
fn serve(config: &Path) -> (Child, String) {
    let mut serving = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"))
        .args(["serve", "--fake", "--listen", "127.0.0.1:0", "--config"])
        .arg(config)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let address = listening::address(serving.stdout.take().unwrap());
    (serving, address)
}

fn run(command: &str, args: &[&str]) {
    assert!(Command::new(command).args(args).status().unwrap().success());
}

fn signal(serving: &Child, name: &str) {
    run("kill", &[name, &serving.id().to_string()]);
}

fn healthz(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PLENTY)).unwrap();
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn a_file_that_takes_its_time_keeps_no_caller_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("serve.toml");
    fs::write(&config, "[failover]\nsends = 1\n").unwrap();
    let (mut serving, address) = serve(&config);

    // In its place a pipe: whoever reads it waits for its end.
    fs::remove_file(&config).unwrap();
    run("mkfifo", &[config.to_str().unwrap()]);
    signal(&serving, "-HUP");
    // Opens once the gateway reads it.
    let mut pipe = fs::OpenOptions::new().write(true).open(&config).unwrap();
    let said = healthz(&address);
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");

    pipe.write_all(b"[failover]\nsends = 2\n").unwrap();
    drop(pipe);
    signal(&serving, "-TERM");
    assert!(serving.wait().unwrap().success());
}
