//! Replays the corpus of the fuzz target for headers.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{fs, path::Path};

use proptest::prelude::*;

#[path = "../../crates/core/fuzz/src/headers.rs"]
#[allow(unreachable_pub, reason = "it is a module of the fuzz target too")]
mod headers;

#[test]
fn the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/fuzz/corpus/headers");
    let mut inputs = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        headers::check(&fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 20, "the corpus is here: {inputs} inputs");
}

proptest! {
    // What fails belongs in the corpus, not in a file beside this one.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_hold(input in prop::collection::vec(any::<u8>(), 0..400)) {
        headers::check(&input);
    }
}
