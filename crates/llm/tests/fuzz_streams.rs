//! The corpus of streams in `fuzz/`, replayed; and streams of any text, cut anywhere.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test may"
)]

#[path = "../fuzz/stream_case.rs"]
mod stream_case;

use std::{fs, path::Path};

use proptest::prelude::*;
use stream_case::{End, check};
use tower_spillway_llm::{Commit, Vendor};

#[test]
fn corpus_of_streams() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/streams");
    let mut replayed = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let input = fs::read(entry.unwrap().path()).unwrap();
        stream_case::run(&input);
        // And ended in every way, in frames of one byte.
        for knob in 0..6 {
            let text = input.get(2..).unwrap_or_default();
            stream_case::run(&[&[knob, 0], text].concat());
        }
        replayed += 1;
    }
    assert!(replayed >= 80, "{replayed} inputs");
}

/// Pieces that streams are made of.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
                .into()
        ),
        "[a-zé😀]{1,40}".prop_map(|text| format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        )),
        (0..3u8).prop_map(|n| format!(
            "data:{{\"choices\":[{{\"index\":{n},\"finish_reason\":\"stop\"}}]}}\r\n\r\n"
        )),
        Just("data: {\"type\":\"message_start\"}\n\n".into()),
        Just("data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"x\"}}\r\r".into()),
        Just("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"x\"}}\n\n".into()),
        Just("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".into()),
        Just("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\n\n".into()),
        Just("data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n".into()),
        Just("data: {\"type\":\"response.completed\"}\n\n".into()),
        Just("data: {\"type\":\"response.failed\",\"response\":{}}\n\n".into()),
        Just(
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}\n\n"
                .into()
        ),
        Just("data: {\"error\":{\"code\":429}}\n\n".into()),
        Just("{\"error\":{\"code\":503}}\n".into()),
        // A name, and data in two lines: both are lost where a line end is taken for two.
        Just("event: throttlingException\r\ndata: {\"message\":\r\ndata: 1}\r\n\r\n".into()),
        Just("data: {\"choices\":[{\r\ndata: \"delta\":{\"content\":\"x\"}}]}\r\n\r\n".into()),
        Just("data: [DONE]\n\n".into()),
        Just("data: {\n".into()),
        Just(": ping\n\n".into()),
        Just("\u{feff}".into()),
        Just("\r".into()),
        Just("\n".into()),
        (1..2000usize).prop_map(|n| "data: x".repeat(n)),
        ".{0,30}",
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Eof), Just(End::Reset), Just(End::Stall)]
}

fn commit() -> impl Strategy<Value = Commit> {
    prop_oneof![Just(Commit::FirstContent), Just(Commit::Complete)]
}

fn vendor() -> impl Strategy<Value = Vendor> {
    prop_oneof![
        Just(Vendor::OpenAi),
        Just(Vendor::Anthropic),
        Just(Vendor::Gemini),
        Just(Vendor::Gateway)
    ]
}

proptest! {
    // What fails belongs in the corpus, not in a file beside this one.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_cut_anywhere_gives_the_same(
        pieces in prop::collection::vec(piece(), 0..12),
        size in 1usize..60,
        end in end(),
        commit in commit(),
        vendor in vendor(),
    ) {
        check(pieces.concat().as_bytes(), size, end, commit, vendor);
    }

    #[test]
    fn any_bytes(input in prop::collection::vec(any::<u8>(), 0..1000)) {
        stream_case::run(&input);
    }
}
