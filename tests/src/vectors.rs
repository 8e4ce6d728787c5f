//! Cases in files, one JSON object a line.
//!
//! The files are in `tests/vectors/`, or in the folder named by the environment variable
//! `SPILLWAY_VECTORS`, so that further rows of the same form can be run by the same tests.

use std::{env, fs, path::PathBuf};

use serde_json::Value;

/// What became of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the row says.
    Pass,
    /// Not as the row says, and why.
    Fail(String),
    /// Different on purpose, and why.
    ByDesign(String),
}

/// Runs every row of a file through `check`, prints the count, and panics if one failed.
///
/// A file that is absent and a row that is no JSON object with an `id` are failures, never skips.
#[expect(clippy::panic, reason = "it fails the test that calls it")]
pub fn run(file: &str, mut check: impl FnMut(&Value) -> Verdict) {
    let folder = env::var_os("SPILLWAY_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors"),
        PathBuf::from,
    );
    let path = folder.join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut passed, mut failed, mut by_design) = (0, Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let row = serde_json::from_str::<Value>(line);
        let id = row.as_ref().ok().and_then(|row| row["id"].as_str());
        match (&row, id) {
            (Ok(row), Some(id)) => match check(row) {
                Verdict::Pass => passed += 1,
                Verdict::Fail(why) => failed.push(format!("{id}: {why}")),
                Verdict::ByDesign(why) => by_design.push(format!("{id}: {why}")),
            },
            _ => failed.push(format!("line {}: not a row with an id", number + 1)),
        }
    }
    println!(
        "{file}: {passed} passed, {} failed, {} by design",
        failed.len(),
        by_design.len()
    );
    for line in &failed {
        println!("  failed     {line}");
    }
    for line in &by_design {
        println!("  by design  {line}");
    }
    assert!(failed.is_empty(), "{file}: {} rows failed", failed.len());
    assert!(passed > 0, "{file}: no row passed");
}
