//! The binary, as a new user meets it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use opus_to_gemini::fake::{Behaviour, FakeVendor, Vendor};
use serde_json::Value;

/// Runs the binary with these keys in the environment and no others.
fn run(keys: &[(&str, &str)], args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"))
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("GEMINI_API_KEY")
        .envs(keys.iter().copied())
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn chat_with_fakes_prints_the_answer_and_the_record() {
    let out = run(&[], &["chat", "--fake", "Hello there"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("Hello there"));
    let record: Value = serde_json::from_slice(&out.stderr).unwrap();
    assert_eq!(record["model"], "claude-opus-5");
    assert_eq!(record["attempts"], 1);
    assert!(record["latency_ms"].is_u64());
    assert_eq!(record["fallback_reason"], Value::Null);
}

#[test]
fn whoever_stops_reading_is_left_in_peace() {
    for args in [
        &["config"][..],
        &["chat", "--fake", "Hello"],
        &["chat", "--fake", "--json", "Hello"],
        &["chat", "--fake", "--stream", "always", "Hello"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"))
            .args(args)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = out.wait_with_output().unwrap();
        assert!(out.status.success(), "{args:?}");
        let said = text(&out.stderr);
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        assert!(!said.contains("stdout"), "{args:?}: {said}");
    }
}

#[test]
fn chat_streams_where_it_is_told_to_and_reads_its_prompt_from_stdin() {
    let out = run(
        &[],
        &["chat", "--fake", "--stream", "always", "Hello there"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stdout).ends_with("You said: Hello there\n"));
    let record: Value = serde_json::from_slice(&out.stderr).unwrap();
    assert!(record["first_content_ms"].as_u64() <= record["latency_ms"].as_u64());
    assert!(record["tokens"]["output"].is_u64(), "{record}");

    let mut chat = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"))
        .args(["chat", "--fake", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    chat.stdin
        .take()
        .unwrap()
        .write_all(b"from a pipe")
        .unwrap();
    let out = chat.wait_with_output().unwrap();
    assert!(text(&out.stdout).contains("from a pipe"));
}

#[test]
fn a_missing_key_is_named_with_what_to_do() {
    let only = [("ANTHROPIC_API_KEY", "sk-ant-secret")];
    for (keys, named) in [
        (&[][..], "ANTHROPIC_API_KEY and GEMINI_API_KEY are not set"),
        (&only[..], "GEMINI_API_KEY is not set"),
    ] {
        let out = run(keys, &["chat", "hi"]);
        assert!(!out.status.success());
        let said = text(&out.stderr);
        assert!(said.contains(named), "{said}");
        assert!(said.contains("--fake"), "{said}");
        assert!(!said.contains("sk-ant-secret"));
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn the_advice_is_about_the_keys_that_are_missing() {
    let said = |keys: &[(&str, &str)], args: &[&str]| {
        let out = run(keys, args);
        assert!(!out.status.success());
        text(&out.stderr).to_owned()
    };
    let of =
        |said: &str| ["anthropic.com", "google.com", "--allow-missing"].map(|a| said.contains(a));
    let gemini = [("GEMINI_API_KEY", "g")];
    assert_eq!(of(&said(&gemini, &["chat", "hi"])), [true, false, true]);
    // No target would be left.
    for more in [&["chat", "hi"][..], &["chat", "--allow-missing", "hi"]] {
        assert_eq!(of(&said(&[], more)), [true, true, false]);
    }
    let gateway = [
        "chat",
        "--base-url",
        "http://127.0.0.1:1/v1",
        "--key-env",
        "GW_KEY",
        "hi",
    ];
    let said = said(&[], &gateway);
    assert!(said.contains("GW_KEY is not set.\nSet it "), "{said}");
    assert_eq!(of(&said), [false, false, false]);
}

#[test]
fn help_fits_80_columns() {
    for of in ["", "demo", "chat", "batch", "config", "config check"] {
        for help in ["-h", "--help"] {
            let args: Vec<_> = of.split_whitespace().chain([help]).collect();
            let out = run(&[], &args);
            assert!(out.status.success());
            for line in text(&out.stdout).lines() {
                assert!(line.chars().count() <= 80, "{args:?}: {line}");
            }
        }
    }
}

#[test]
fn where_nobody_listens_is_told() {
    let base = "http://127.0.0.1:1/v1";
    let out = run(
        &[("GW_KEY", "gw-key")],
        &["chat", "--base-url", base, "--key-env", "GW_KEY", "hi"],
    );
    assert!(!out.status.success());
    let said = text(&out.stderr);
    let told = format!("Tried {base}/chat/completions.\n");
    assert!(said.contains("refused") && said.contains(&told), "{said}");
}

#[test]
fn a_vendors_error_is_its_message_and_a_failure() {
    let out = run(
        &[],
        &[
            "chat",
            "--fake",
            "--opus-model",
            "claude-opus-0",
            "--gemini-model",
            "gemini-0",
            "hi",
        ],
    );
    assert!(!out.status.success());
    let said = text(&out.stderr);
    assert!(
        said.contains("gemini answered 404: models/gemini-0 is not found"),
        "{said}"
    );
    assert!(said.contains("--gemini-model"), "{said}");
    assert!(out.stdout.is_empty());
}

#[test]
fn a_key_that_is_none_is_not_shown() {
    let keys = [("ANTHROPIC_API_KEY", "two words"), ("GEMINI_API_KEY", "g")];
    let out = run(&keys, &["chat", "hi"]);
    assert!(!out.status.success());
    let said = text(&out.stderr);
    assert!(
        said.contains("opus") && !said.contains("two words"),
        "{said}"
    );
}

#[test]
fn json_is_one_object_with_the_answer_or_the_error() {
    let out = run(&[], &["chat", "--fake", "--json", "Hello there"]);
    assert!(out.status.success() && out.stderr.is_empty());
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(all["answer"].as_str().unwrap().contains("Hello there"));
    assert_eq!(all["model"], "claude-opus-5");
    assert!(all["tokens"]["input"].as_u64().unwrap() > 0);
    assert!(all["cost"].as_f64().unwrap() > 0.0);
    assert_eq!(all["first_content_ms"], all["latency_ms"]);

    let bad = [
        "chat",
        "--fake",
        "--json",
        "--opus-model",
        "a",
        "--gemini-model",
        "b",
        "hi",
    ];
    let out = run(&[], &bad);
    assert_eq!(out.status.code(), Some(1));
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(all["error"]["status"], 404);
    assert!(
        all["error"]["message"]
            .as_str()
            .unwrap()
            .contains("models/b is not found")
    );
    assert_eq!(all["fallback_reason"], "opus: target_down");
}

#[test]
fn a_missing_key_can_be_gone_on_without() {
    // Nobody listens there: what matters is who is asked.
    let config = "[targets.opus]\nurl = \"http://127.0.0.1:1/v1\"\n\
                  [targets.gemini]\nurl = \"http://127.0.0.1:1/v1\"\n[failover]\nsends = 1\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config).unwrap();
    let file = file.path().to_str().unwrap();
    let keys = [("GEMINI_API_KEY", "g")];
    let out = run(&keys, &["chat", "--allow-missing", "--config", file, "hi"]);
    assert!(!out.status.success());
    let said = text(&out.stderr);
    let warning = "warning: target opus is left out: ANTHROPIC_API_KEY is not set";
    assert!(said.contains(warning), "{said}");
    assert!(said.contains("gemini-2.5-pro"), "{said}");

    let out = run(&[], &["chat", "--allow-missing", "hi"]);
    assert!(text(&out.stderr).contains("no target is left"));
}

#[test]
fn config_prints_what_is_in_force_and_check_says_what_is_wrong() {
    let printed = run(&[("ANTHROPIC_API_KEY", "sk-ant-secret")], &["config"]);
    assert!(printed.status.success());
    let printed = text(&printed.stdout);
    assert!(printed.contains("key_env = \"ANTHROPIC_API_KEY\""));
    assert!(printed.contains("article: 5") && printed.contains("article: 0.25s"));
    assert!(!printed.contains("sk-ant-secret"));
    let batch = run(&[], &["config", "--profile", "batch"]);
    assert!(text(&batch.stdout).contains("profile = \"batch\""));

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pipeline.toml");
    std::fs::write(&file, printed).unwrap();
    let path = file.to_str().unwrap();
    let fine = run(&[], &["config", "check", path]);
    assert!(fine.status.success(), "{}", text(&fine.stderr));
    std::fs::write(&file, "[breaker]\nfailures = 0\n").unwrap();
    let wrong = run(&[], &["config", "check", path]);
    assert!(!wrong.status.success());
    let said = text(&wrong.stderr);
    let place = format!("{path}:2: breaker.failures must be at least 1");
    assert!(said.contains(&place), "{said}");
    // Before anything is sent.
    let wrong = run(&[], &["chat", "--fake", "--config", path, "hi"]);
    assert!(text(&wrong.stderr).contains(&place));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_gateway_for_both_models_and_v_shows_the_retry() {
    let gateway = FakeVendor::builder(Vendor::Anthropic)
        .accepts("gateway", "gw-key")
        .start()
        .await
        .unwrap();
    gateway.next(1, Behaviour::Fail { status: 529 });
    let base = gateway.url().replace("/chat/completions", "");
    let args = [
        "chat",
        "-v",
        "--base-url",
        &base,
        "--key-env",
        "GW_KEY",
        "hi",
    ];
    let out = run(&[("GW_KEY", "gw-key")], &args);
    let said = text(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert!(text(&out.stdout).contains("claude-opus-5"));
    let retry = said.lines().find(|l| l.contains("attempt 1/4")).unwrap();
    assert!(
        retry.starts_with("info: opus attempt 1/4 transient 529 "),
        "{retry}"
    );
    assert!(
        retry.contains("ms wait ") && retry.contains("overloaded"),
        "{retry}"
    );
    assert!(!said.contains("gw-key"));
    assert_eq!(gateway.log().len(), 2);

    let out = run(&[], &args);
    assert!(text(&out.stderr).contains("GW_KEY is not set"));
}

#[test]
fn fakes_play_every_target_of_a_file_and_need_none_of_its_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.toml");
    let settings = r#"
        [targets.local]
        url = "http://127.0.0.1:9/v1/chat/completions"
        model = "llama3.3"
        [targets.azure]
        vendor = "azure-openai"
        url = "https://me.openai.azure.com/openai/deployments/gpt/chat/completions"
        model = "gpt-5"
        key_file = "/no/such/file"
        auth_header = "api-key"
        auth_scheme = ""
        query = { api-version = "2024-10-21" }
        headers = { x-team = "search", x-pass = { env = "NO_SUCH_VARIABLE" } }
        # Two of different vendors behind one key.
        [targets.opus]
        key_env = "SHARED"
        [targets.gemini]
        key_env = "SHARED"
        [chains]
        one = ["local"]
        two = ["azure"]
        three = ["gemini"]
    "#;
    std::fs::write(&file, settings).unwrap();
    let path = file.to_str().unwrap();
    for (chain, model) in [
        ("default", "claude-opus-5"),
        ("three", "gemini-2.5-pro"),
        ("one", "llama3.3"),
        ("two", "gpt-5"),
    ] {
        let args = ["chat", "--fake", "--config", path, "--chain", chain, "hi"];
        let out = run(&[], &args);
        let said = text(&out.stderr);
        assert!(out.status.success(), "{said}");
        let told = format!("This is a fake {model}. You said: hi\n");
        assert_eq!(text(&out.stdout), told);
        assert!(said.contains("\"attempts\":1"), "{said}");
    }
}

#[test]
fn an_address_that_is_none_is_told_with_one_that_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.toml");
    std::fs::write(&file, "[gateway]\nlisten = \"localhost:8080\"\n").unwrap();
    let path = file.to_str().unwrap();
    for args in [
        &["config", "check", path][..],
        &["serve", "--fake", "--listen", "localhost:8080"],
    ] {
        let out = run(&[], args);
        assert!(!out.status.success());
        let said = text(&out.stderr);
        assert!(said.contains("localhost:8080"), "{said}");
        assert!(said.contains("127.0.0.1:8080"), "{said}");
    }
}

#[test]
fn an_empty_prompt_is_sent_to_nobody() {
    let out = run(&[], &["chat", "--fake", " "]);
    assert!(!out.status.success());
    assert!(text(&out.stderr).contains("the prompt is empty"));
    assert!(out.stdout.is_empty());
}
