//! The fake vendors, as the pipeline wants them.

use std::io;

use tower_spillway_core::Chance;

use super::{FakeVendor, Vendor};

/// The key that the fake Anthropic of [`Fakes`] accepts. It opens nothing else.
pub const FAKE_ANTHROPIC_KEY: &str = "fake-anthropic-key";

/// The key that the fake Gemini of [`Fakes`] accepts. It opens nothing else.
pub const FAKE_GEMINI_KEY: &str = "fake-gemini-key";

/// The key that the fake of any other endpoint of [`Fakes`] accepts. It opens nothing else.
pub const FAKE_OPENAI_KEY: &str = "fake-openai-key";

/// The fake vendors. Each accepts its own key and knows the others', so that a key in the wrong
/// place shows in the log.
#[derive(Debug)]
pub struct Fakes {
    /// Plays Anthropic, with the label `anthropic` for its key.
    pub anthropic: FakeVendor,
    /// Plays Gemini, with the label `gemini` for its key.
    pub gemini: FakeVendor,
    /// Plays any other OpenAI-compatible endpoint, with the label `openai` for its key.
    pub openai: FakeVendor,
}

impl Fakes {
    /// Starts all; latencies are drawn from `chance`.
    ///
    /// # Errors
    ///
    /// Those of the sockets.
    pub async fn start(chance: &Chance) -> io::Result<Self> {
        let keys = [
            (Vendor::Anthropic, FAKE_ANTHROPIC_KEY),
            (Vendor::Gemini, FAKE_GEMINI_KEY),
            (Vendor::OpenAi, FAKE_OPENAI_KEY),
        ];
        let fake = |vendor: Vendor| {
            let fake = FakeVendor::builder(vendor).chance(chance.clone());
            let fake = keys
                .iter()
                .fold(fake, |fake, (whose, key)| match *whose == vendor {
                    true => fake.accepts(whose.as_str(), key),
                    false => fake.knows(whose.as_str(), key),
                });
            fake.start()
        };
        Ok(Self {
            anthropic: fake(Vendor::Anthropic).await?,
            gemini: fake(Vendor::Gemini).await?,
            openai: fake(Vendor::OpenAi).await?,
        })
    }

    /// Stops all.
    pub async fn stop(self) {
        tokio::join!(
            self.anthropic.stop(),
            self.gemini.stop(),
            self.openai.stop()
        );
    }
}
