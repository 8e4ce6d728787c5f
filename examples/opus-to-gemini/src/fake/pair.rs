//! Both fake vendors, as the pipeline wants them.

use std::io;

use tower_spillway_core::Chance;

use super::{FakeVendor, Vendor};

/// The key that the fake Anthropic of [`Fakes`] accepts. It opens nothing else.
pub const FAKE_ANTHROPIC_KEY: &str = "fake-anthropic-key";

/// The key that the fake Gemini of [`Fakes`] accepts. It opens nothing else.
pub const FAKE_GEMINI_KEY: &str = "fake-gemini-key";

/// Both fake vendors. Each accepts its own key and knows the other's, so that a key in the wrong
/// place shows in the log.
#[derive(Debug)]
pub struct Fakes {
    /// Plays Anthropic, with the label `anthropic` for its key.
    pub anthropic: FakeVendor,
    /// Plays Gemini, with the label `gemini` for its key.
    pub gemini: FakeVendor,
}

impl Fakes {
    /// Starts both; latencies are drawn from `chance`.
    ///
    /// # Errors
    ///
    /// Those of the sockets.
    pub async fn start(chance: &Chance) -> io::Result<Self> {
        let anthropic = FakeVendor::builder(Vendor::Anthropic)
            .accepts("anthropic", FAKE_ANTHROPIC_KEY)
            .knows("gemini", FAKE_GEMINI_KEY)
            .chance(chance.clone());
        let gemini = FakeVendor::builder(Vendor::Gemini)
            .accepts("gemini", FAKE_GEMINI_KEY)
            .knows("anthropic", FAKE_ANTHROPIC_KEY)
            .chance(chance.clone());
        Ok(Self {
            anthropic: anthropic.start().await?,
            gemini: gemini.start().await?,
        })
    }

    /// Stops both.
    pub async fn stop(self) {
        tokio::join!(self.anthropic.stop(), self.gemini.stop());
    }
}
