//! Files that no person would write: they are refused, in so much time and memory.

#![allow(clippy::unwrap_used, reason = "a test may")]

use opus_to_gemini::config::{Config, ConfigError};

const MANY: usize = 50_000;

fn told_in_short(error: &ConfigError) {
    assert!((1..=200).contains(&error.findings().len()));
    for finding in error.findings() {
        let said = finding.to_string().len();
        assert!(said < 2_000, "{said} bytes are said");
    }
}

#[test]
fn what_is_nested_deeply_is_an_error() {
    let path = vec!["a"; MANY].join(".");
    for text in [
        format!("a = {}{}", "[".repeat(MANY), "]".repeat(MANY)),
        format!("a = {}1{}", "{a = ".repeat(MANY), "}".repeat(MANY)),
        format!("a = {}", "[".repeat(MANY)),
        format!("{path} = 1"),
        format!("[{path}]\nb = 1"),
        format!("[[{path}]]\nb = 1"),
        format!("[targets.{path}]\nb = 1"),
        format!("[targets.opus.headers]\n{path} = 1"),
    ] {
        told_in_short(&Config::from_toml(&text).unwrap_err());
    }
}

#[test]
fn long_lines_and_many_of_them_are_read_and_told_in_short() {
    let long = "a".repeat(300_000);
    assert!(Config::from_toml(&format!("# {long}\n")).is_ok());
    for text in [
        format!("{long} = 1"),
        format!("profile = \"{long}\""),
        format!("[{long}]\na = 1"),
        format!("[chains]\ndefault = [\"{long}\"]"),
        format!("[targets.opus]\nurl = \"{long}\""),
        format!("[call]\nplain_deadline = \"{long}\""),
        (0..1_500).map(|n| format!("unknown{n} = 1\n")).collect(),
        (0..1_500).map(|n| format!("[unknown{n}]\n")).collect(),
        (0..1_500).map(|n| format!("[targets.t{n}]\n")).collect(),
    ] {
        told_in_short(&Config::from_toml(&text).unwrap_err());
    }
}
