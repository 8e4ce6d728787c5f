#![no_main]

#[path = "../stream_case.rs"]
mod stream_case;

libfuzzer_sys::fuzz_target!(|input: &[u8]| stream_case::run(input));
