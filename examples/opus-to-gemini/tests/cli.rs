//! The binary, as a new user meets it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::process::{Command, Output};

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
        assert!(said.contains("chat --fake"), "{said}");
        assert!(!said.contains("sk-ant-secret"));
        assert!(out.stdout.is_empty());
    }
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
