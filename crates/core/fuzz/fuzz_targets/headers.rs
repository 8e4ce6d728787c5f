#![no_main]

#[path = "../src/headers.rs"]
mod headers;

libfuzzer_sys::fuzz_target!(|input: &[u8]| headers::check(input));
