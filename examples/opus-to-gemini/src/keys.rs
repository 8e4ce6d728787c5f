//! The vendors' keys, from the environment.

use std::{env, fmt};

use secrecy::{ExposeSecret, SecretString};

/// Where Anthropic's key is looked for.
pub const ANTHROPIC_API_KEY: &str = "ANTHROPIC_API_KEY";

/// Where Gemini's key is looked for.
pub const GEMINI_API_KEY: &str = "GEMINI_API_KEY";

/// Both keys. Shown by no `Debug`.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Anthropic's.
    pub anthropic: SecretString,
    /// Gemini's.
    pub gemini: SecretString,
}

impl Keys {
    /// Reads [`ANTHROPIC_API_KEY`] and [`GEMINI_API_KEY`].
    ///
    /// # Errors
    ///
    /// [`MissingKeys`] names every variable that is unset, empty or no text.
    pub fn from_env() -> Result<Self, MissingKeys> {
        Self::read(|name| env::var(name).ok())
    }

    /// The key in a variable; `None` if it is unset, empty or no text.
    pub fn var(name: &str) -> Option<SecretString> {
        of(env::var(name).ok()?)
    }

    fn read(var: impl Fn(&str) -> Option<String>) -> Result<Self, MissingKeys> {
        let read = |name| of(var(name)?);
        match (read(ANTHROPIC_API_KEY), read(GEMINI_API_KEY)) {
            (Some(anthropic), Some(gemini)) => Ok(Self { anthropic, gemini }),
            (anthropic, gemini) => Err(MissingKeys {
                anthropic: anthropic.is_none(),
                gemini: gemini.is_none(),
            }),
        }
    }
}

fn of(value: String) -> Option<SecretString> {
    let value = SecretString::from(value);
    // A trailing newline comes from `export KEY="$(cat file)"` and the like.
    let key = value.expose_secret().trim();
    (!key.is_empty()).then(|| SecretString::from(key))
}

/// Which keys are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct MissingKeys {
    anthropic: bool,
    gemini: bool,
}

impl fmt::Display for MissingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (names, are) = match (self.anthropic, self.gemini) {
            (true, true) => ("ANTHROPIC_API_KEY and GEMINI_API_KEY", "are"),
            (true, false) => (ANTHROPIC_API_KEY, "is"),
            _ => (GEMINI_API_KEY, "is"),
        };
        write!(f, "{names} {are} not set")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_variable_is_named() {
        let of = |set: &'static [(&str, &str)]| {
            Keys::read(|name| {
                let found = set.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let missing = |set| of(set).unwrap_err().to_string();
        assert_eq!(
            missing(&[]),
            "ANTHROPIC_API_KEY and GEMINI_API_KEY are not set"
        );
        assert_eq!(
            missing(&[(ANTHROPIC_API_KEY, "a"), (GEMINI_API_KEY, " ")]),
            "GEMINI_API_KEY is not set"
        );
        let keys = of(&[(ANTHROPIC_API_KEY, "a\n"), (GEMINI_API_KEY, "g")]).unwrap();
        assert_eq!(keys.anthropic.expose_secret(), "a");
    }
}
