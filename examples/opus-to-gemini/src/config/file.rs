//! From text to a configuration, with the line of what is wrong.

use std::ops::Range;

use serde::Deserialize;
use toml::{Table, de::DeTable, de::DeValue};

use super::{Config, ConfigError, Profile, merge};

impl Config {
    /// Reads a file's text: what it says over the figures of its profile.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] has the line and the reason: no TOML, an unknown key, a value out of its
    /// bounds, a chain with a target that is none.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Self::from_toml_over(Profile::Interactive, text)
    }

    /// The same, over a profile where the text names none.
    ///
    /// # Errors
    ///
    /// As [`from_toml`](Self::from_toml).
    pub fn from_toml_over(profile: Profile, text: &str) -> Result<Self, ConfigError> {
        // First alone: each key and value has its place in the text only here.
        let alone: Self = toml::from_str(text).map_err(|error| at(text, &error))?;
        let own: Table = toml::from_str(text).map_err(|error| at(text, &error))?;
        let profile = match own.contains_key("profile") {
            true => alone.profile,
            false => profile,
        };
        let base = Table::try_from(Self::of(profile))
            .map_err(|error| ConfigError::new(None, error.to_string()))?;
        let config = Self::deserialize(merge::over(base, own)).map_err(|error| at(text, &error))?;
        match config.check() {
            Ok(()) => Ok(config),
            Err(wrong) => Err(ConfigError::new(
                line_of_key(text, &wrong.path),
                wrong.to_string(),
            )),
        }
    }
}

fn at(text: &str, error: &toml::de::Error) -> ConfigError {
    let line = error.span().map(|span| line_at(text, &span));
    // The message of several lines is for terminals of their own.
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    ConfigError::new(line, message)
}

fn line_at(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    before.filter(|b| **b == b'\n').count() + 1
}

/// The line of a key, or of the innermost table around it that the text has.
fn line_of_key(text: &str, path: &[String]) -> Option<usize> {
    let parsed = DeTable::parse(text).ok()?;
    let mut table = parsed.get_ref();
    let mut found = None;
    for key in path {
        let Some((name, value)) = table
            .iter()
            .find(|(name, _)| name.get_ref() == key.as_str())
        else {
            break;
        };
        found = Some(name.span());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    found.map(|span| line_at(text, &span))
}
