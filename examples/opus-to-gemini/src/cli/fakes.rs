//! The fake vendors of `--fake`.

use std::time::Duration;

use anyhow::Context;
use opus_to_gemini::{
    config::{Config, HeaderFrom, Takes, Target},
    fake::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, FAKE_OPENAI_KEY, Fakes},
};
use secrecy::SecretString;
use tower_spillway_core::Chance;

/// The variables that targets name once they are pointed at the fakes, and what is in them.
const KEYS: [(&str, &str); 3] = [
    ("FAKE_ANTHROPIC_KEY", FAKE_ANTHROPIC_KEY),
    ("FAKE_GEMINI_KEY", FAKE_GEMINI_KEY),
    ("FAKE_OPENAI_KEY", FAKE_OPENAI_KEY),
];

/// All fakes; each answer takes so long.
pub(super) async fn start(latency: Option<Duration>) -> anyhow::Result<Fakes> {
    let fakes = Fakes::start(&Chance::default()).await;
    let fakes = fakes.context("the fake vendors could not be started")?;
    if let Some(latency) = latency {
        for fake in [&fakes.anthropic, &fakes.gemini, &fakes.openai] {
            fake.set_latency(latency..=latency);
        }
    }
    Ok(fakes)
}

/// Puts the fakes in the place of all targets' real ones. Nothing secret goes to them: keys are
/// theirs, and of headers those stay that a file says itself.
pub(super) fn point_at(fakes: &Fakes, config: &mut Config) {
    let [anthropic, gemini, openai] = KEYS.map(|(variable, _)| variable);
    for target in config.targets.values_mut() {
        let (fake, variable) = match target.takes {
            Takes::Anthropic => (&fakes.anthropic, anthropic),
            Takes::Gemini => (&fakes.gemini, gemini),
            _ => (&fakes.openai, openai),
        };
        target.url = fake.url();
        target.key_env = variable.to_owned();
        target.key_file.clear();
        target
            .headers
            .retain(|_, from| matches!(from, HeaderFrom::Text(_)));
        let plain = Target::default();
        target.auth_header = plain.auth_header;
        target.auth_scheme = plain.auth_scheme;
    }
}

/// The fakes' key in a variable that a target names.
pub(super) fn key(variable: &str) -> Option<SecretString> {
    let (_, key) = KEYS.iter().find(|(name, _)| *name == variable)?;
    Some((*key).into())
}
