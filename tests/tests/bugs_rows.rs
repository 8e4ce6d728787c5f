//! Every row of `bugs.jsonl` is a test named after it, or is in a list with its reason. A row that
//! is added to the file without a test fails here.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

/// Rows without a test in this folder, and why.
const WITHOUT: [(&str, &str); 1] = [(
    "sibling-replicas-late",
    "state is per process: breakers and holds are atomics and a mutex, nothing is sent to other \
     replicas, so none is late; each learns from its own first failures, and `Breaker` and \
     `SharedHold` are handles through which a user can bring in what others know",
)];

/// Rows whose tests have another name.
const ELSEWHERE: [(&str, &str, &str); 2] = [
    (
        "hint-over-cap-discarded",
        "crates/retry-after/tests/retry_after/hold.rs",
        "bugs_hint_over_cap_discarded",
    ),
    (
        "recool-keeps-short-deadline",
        "crates/retry-after/tests/retry_after/hold.rs",
        "bugs_recool_keeps_short_deadline",
    ),
];

/// The names of the tests in a file.
fn tests_in(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let mut marked = false;
    let mut names = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        let name = line
            .strip_prefix("async fn ")
            .or_else(|| line.strip_prefix("fn "));
        match name.and_then(|rest| rest.split('(').next()) {
            Some(name) if marked => {
                names.insert(name.to_owned());
                marked = false;
            }
            Some(_) => marked = false,
            None => marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test"),
        }
    }
    names
}

fn rust_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => rust_files(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect()
}

/// The name that a test of a row has.
fn name_of(id: &str) -> String {
    let name = id.replace('-', "_");
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("row_{name}"),
        false => name,
    }
}

#[test]
fn every_row_has_its_test() {
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = fs::read_to_string(member.join("vectors/bugs.jsonl")).unwrap();
    let ids: BTreeSet<String> = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap())
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    let here: BTreeSet<String> = rust_files(&member.join("tests"))
        .iter()
        .flat_map(|file| tests_in(file))
        .collect();

    let mut without: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    without.retain(|id| !here.contains(&name_of(id)));
    let mut listed = BTreeSet::new();
    for (id, file, test) in ELSEWHERE {
        let tests = tests_in(&member.join("..").join(file));
        assert!(tests.contains(test), "{id}: no {test} in {file}");
        listed.insert(id);
    }
    for (id, why) in WITHOUT {
        assert!(!why.is_empty());
        listed.insert(id);
    }
    assert_eq!(without, listed, "rows without a test, and those listed");
}
