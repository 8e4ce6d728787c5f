//! Fake vendors: real HTTP/1.1 servers on loopback that behave as Anthropic's and Gemini's
//! OpenAI-compatible endpoints do, and as any other one does, and misbehave as told.
//!
//! They check what the real ones check (path, key, model id, fields) and answer in the shapes of
//! the real ones, errors included. What they do with a request that passes is a [`Behaviour`],
//! switched at run time. Each request is in the [log](FakeVendor::log); keys appear there by their
//! label only.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use opus_to_gemini::fake::{Behaviour, Did, FakeVendor, Vendor};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let anthropic = FakeVendor::builder(Vendor::Anthropic)
//!     .accepts("anthropic", "fake-key")
//!     .start()
//!     .await
//!     .unwrap();
//! anthropic.set(Behaviour::Throttle { retry_after: Duration::from_secs(30) });
//! assert!(anthropic.url().starts_with("http://127.0.0.1:"));
//! assert!(anthropic.log().is_empty());
//! anthropic.stop().await;
//! # }
//! ```

mod anthropic;
mod behaviour;
mod chat;
mod gemini;
mod handle;
mod log;
mod openai;
mod pair;
mod played;
mod reply;
mod script;
mod server;
mod state;
mod vendor;

pub use self::{
    behaviour::Behaviour,
    handle::{Builder, FakeVendor},
    log::{Did, Entry, KeyLabel},
    pair::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, FAKE_OPENAI_KEY, Fakes},
    vendor::Vendor,
};
