//! Another file, without an end.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::Duration,
};

use http::Method;
use http_body_util::BodyExt;
use opus_to_gemini::config::Route;

use crate::{
    logs,
    support::{Served, hello, key, streamed},
};

#[tokio::test]
async fn calls_under_way_end_as_they_began_and_new_ones_go_the_new_way() {
    let served = Served::start(|_| {}).await;
    served.fakes.anthropic.set_words(20);
    served
        .fakes
        .anthropic
        .set_stream(Duration::from_millis(500));
    let mut open = served.open(served.chat(&streamed())).await;
    open.frame().await.unwrap().unwrap();

    let mut config = served.config.clone();
    config
        .routes
        .insert("claude-opus".into(), Route::To("gemini".into()));
    config.targets.get_mut("opus").unwrap().enabled = false;
    served.gateway.reload(&config, key).unwrap();
    assert_eq!(
        served.ask().await.header("x-spillway-target"),
        Some("gemini")
    );

    let rest = open.into_body().collect().await.unwrap().to_bytes();
    assert!(rest.ends_with(b"data: [DONE]\n\n"));
    let calls = served.calls(2).await;
    assert_eq!(
        (&calls[0]["target"], &calls[0]["outcome"]),
        (&"opus".into(), &"answered".into())
    );
}

#[tokio::test]
async fn a_model_whose_targets_all_drain_is_there_and_not_served() {
    let served = Served::start(|config| {
        config
            .routes
            .insert("only-opus".into(), Route::To("opus".into()));
    })
    .await;
    let mut config = served.config.clone();
    config.targets.get_mut("opus").unwrap().enabled = false;
    served.gateway.reload(&config, key).unwrap();
    let mut chat = hello();
    chat["model"] = "only-opus".into();
    let reply = served.send(served.chat(&chat)).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.error()["code"], "all_targets_drain");
    chat["model"] = "nobody".into();
    assert_eq!(served.send(served.chat(&chat)).await.status, 404);
}

#[tokio::test]
async fn a_breaker_of_a_target_that_stays_is_kept() {
    let served = Served::start(|_| {}).await;
    let opened = |served: &Served| {
        let fleet = served.gateway.fleet();
        fleet.member("opus").unwrap().breaker().unwrap().clone()
    };
    opened(&served).force_open_for(Duration::from_secs(60));
    let mut config = served.config.clone();
    config
        .routes
        .insert("another".into(), Route::To("gemini".into()));
    served.gateway.reload(&config, key).unwrap();
    assert!(opened(&served).state().is_refusing());
    let status = served.status().await;
    assert_eq!(status["targets"][0]["breaker"]["state"], "open");
    assert!(
        status["models"]
            .as_array()
            .unwrap()
            .contains(&"another".into())
    );
}

#[tokio::test]
async fn a_bad_configuration_leaves_everything_as_it_was() {
    let served = Served::start(|_| {}).await;
    let mut config = served.config.clone();
    config.targets.get_mut("gemini").unwrap().key_env = "NO_SUCH_KEY".into();
    let error = served.gateway.reload(&config, key).unwrap_err();
    assert!(error.to_string().contains("NO_SUCH_KEY"));
    let mut config = served.config.clone();
    config.gateway.inbound_keys_env = "NO_SUCH_KEY".into();
    assert!(served.gateway.reload(&config, key).is_err());
    assert_eq!(served.send(served.chat(&hello())).await.status, 200);
}

#[tokio::test]
async fn what_takes_a_restart_is_said() {
    let log = logs::start();
    let served = Served::start(|_| {}).await;
    let mut config = served.config.clone();
    config.gateway.in_flight = 7;
    config.gateway.last_calls = 7;
    config.gateway.max_body = 700;
    served.gateway.reload(&config, key).unwrap();
    assert_eq!(log.lines("in_flight, last_calls").len(), 1);
    // Limits of a request hold from the next one on.
    let long = served.request(Method::POST, "/v1/chat/completions", vec![b' '; 701]);
    assert_eq!(served.send(long).await.status, 413);
}

#[cfg(unix)]
#[test]
fn the_binary_takes_its_file_in_at_hangup_and_ends_at_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    fs::write(&file, "[routes]\nfirst = \"default\"\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"))
        .args([
            "serve",
            "--fake",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "json",
            "--config",
        ])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let base = line.trim_end().rsplit(' ').next().unwrap().to_owned();
    let address = base
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .to_owned();
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    };
    let mut says = |wanted: &str| loop {
        let mut line = String::new();
        assert!(
            stderr.read_line(&mut line).unwrap() > 0,
            "it ended without {wanted}"
        );
        if line.contains(wanted) {
            return line;
        }
    };
    assert!(get(&address, "/v1/models").contains("\"first\""));

    fs::write(&file, "[routes]\nsecond = \"default\"\n").unwrap();
    signal("-HUP");
    says("the settings were taken in again");
    let models = get(&address, "/v1/models");
    assert!(
        models.contains("\"second\"") && !models.contains("\"first\""),
        "{models}"
    );

    fs::write(&file, "[routes]\nthird = \"nowhere\"\n").unwrap();
    signal("-HUP");
    let why = says("the settings stay as they were");
    assert!(
        why.contains("gateway.toml:2") && why.contains("nowhere"),
        "{why}"
    );
    assert!(get(&address, "/v1/models").contains("\"second\""));

    signal("-TERM");
    says("stopping");
    assert!(child.wait().unwrap().success());
}

#[cfg(unix)]
fn get(address: &str, path: &str) -> String {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[cfg(unix)]
#[test]
fn callers_of_fakes_bring_keys_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    fs::write(&file, "[gateway]\ninbound_keys_env = \"CALLERS_OF_MINE\"\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"));
    command
        .args(["serve", "--fake", "--listen", "127.0.0.1:0", "--config"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let without = command.output().unwrap();
    assert!(!without.status.success());
    let said = String::from_utf8(without.stderr).unwrap();
    assert!(said.contains("CALLERS_OF_MINE"), "{said}");

    let mut child = command.env("CALLERS_OF_MINE", "a-key").spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let base = line.trim_end().rsplit(' ').next().unwrap();
    let address = base.trim_start_matches("http://").trim_end_matches("/v1");
    let asked = get(address, "/v1/models");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(asked.starts_with("HTTP/1.1 401 "), "{asked}");
}
