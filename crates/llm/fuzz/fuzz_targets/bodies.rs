#![no_main]

#[path = "../body_case.rs"]
mod body_case;

libfuzzer_sys::fuzz_target!(|input: &[u8]| body_case::run(input));
