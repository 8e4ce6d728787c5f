//! The corpus of `fuzz/`, replayed; and random bytes.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test may"
)]

#[path = "../fuzz/body_case.rs"]
mod body_case;

use std::{fs, path::Path};

use proptest::prelude::*;

#[test]
fn corpus_of_bodies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/bodies");
    let mut replayed = 0;
    for entry in fs::read_dir(folder).unwrap() {
        body_case::run(&fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 20, "{replayed} inputs");
}

proptest! {
    #[test]
    fn any_bytes(input in prop::collection::vec(any::<u8>(), 0..2000)) {
        body_case::run(&input);
    }
}
