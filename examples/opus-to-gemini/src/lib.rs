//! The reference stack: chat calls to Claude Opus that go on to Gemini when they must.

pub mod fake;
