//! The keys of callers.

use std::{fmt, fs, io};

use http::{HeaderMap, Request, header};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::{error::ApiError, setup::SetupError};
use crate::config;

type Digested = [u8; 32];

/// The keys that callers may bring; of each only a digest is kept.
#[derive(Clone, Default)]
pub(super) struct Keys(Vec<Digested>);

impl Keys {
    /// Those of the variable and of the file that the table names.
    ///
    /// # Errors
    ///
    /// A source that is named holds no key: open doors must not come from a typing error.
    pub(super) fn load(
        table: &config::Gateway,
        variable: impl Fn(&str) -> Option<SecretString>,
    ) -> Result<Self, SetupError> {
        let mut keys = Self::default();
        let name = table.inbound_keys_env.as_str();
        if !name.is_empty() {
            let none = || SetupError::NoKeys(format!("the variable {name}"));
            let text = variable(name).ok_or_else(none)?;
            keys.add(text.expose_secret()).ok_or_else(none)?;
        }
        let path = table.inbound_keys_file.as_str();
        if !path.is_empty() {
            let text = read(path).map_err(|source| SetupError::KeysFile {
                path: path.to_owned(),
                source,
            })?;
            let none = || SetupError::NoKeys(path.to_owned());
            keys.add(text.expose_secret()).ok_or_else(none)?;
        }
        Ok(keys)
    }

    /// Adds what is between commas and blanks; `None` if nothing is.
    fn add(&mut self, text: &str) -> Option<()> {
        let separate = |c: char| c == ',' || c.is_whitespace();
        let keys = text.split(separate).filter(|key| !key.is_empty());
        let before = self.0.len();
        self.0.extend(keys.map(|key| digest(key.as_bytes())));
        (self.0.len() > before).then_some(())
    }

    /// Whether nobody is asked for one.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a key is one of them, in a time that tells neither which nor how much of it.
    ///
    /// Digests are compared, so that the length of a key does not show either, and all of them, so
    /// that its place does not.
    fn knows(&self, key: &[u8]) -> bool {
        let key = digest(key);
        let found = self.0.iter().fold(Choice::from(0), |found, known| {
            found | known.as_slice().ct_eq(key.as_slice())
        });
        found.into()
    }

    /// Refuses a request without a key, if keys are asked for.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        if self.admits(request.headers()) {
            return Ok(());
        }
        tracing::warn!(path = request.uri().path(), "a request without a known key");
        Err(ApiError::unauthorized())
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        if self.is_empty() {
            return true;
        }
        let value = headers.get(header::AUTHORIZATION).map(|v| v.as_bytes());
        let key = value.and_then(|value| {
            let (scheme, key) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
        });
        // Compared even if there is none.
        self.knows(key.unwrap_or_default()) && key.is_some()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0.len()).finish()
    }
}

fn digest(key: &[u8]) -> Digested {
    Sha256::digest(key).into()
}

fn read(path: &str) -> io::Result<SecretString> {
    fs::read_to_string(path).map(SecretString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Keys {
        let table = config::Gateway {
            inbound_keys_env: "KEYS".to_owned(),
            ..config::Gateway::default()
        };
        Keys::load(&table, |_| Some(text.into())).unwrap()
    }

    fn admits(keys: &Keys, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        keys.admits(&headers)
    }

    #[test]
    fn any_of_the_keys_opens_and_nothing_else_does() {
        let keys = keys("one, two\nthree\n");
        for key in ["Bearer one", "bearer two", "BEARER three"] {
            assert!(admits(&keys, key), "{key}");
        }
        for key in [
            "Bearer",
            "Bearer ",
            "Bearer onetwo",
            "Bearer on",
            "one",
            "Basic one",
        ] {
            assert!(!admits(&keys, key), "{key}");
        }
        assert!(!keys.admits(&HeaderMap::new()));
        assert!(!format!("{keys:?}").contains("one"));
    }

    #[test]
    fn no_keys_ask_nobody() {
        let keys = Keys::load(&config::Gateway::default(), |_| None).unwrap();
        assert!(keys.admits(&HeaderMap::new()));
    }

    #[test]
    fn a_source_without_keys_is_an_error() {
        let table = config::Gateway {
            inbound_keys_env: "KEYS".to_owned(),
            ..config::Gateway::default()
        };
        assert!(Keys::load(&table, |_| None).is_err());
        assert!(Keys::load(&table, |_| Some(" ,\n".into())).is_err());
        let table = config::Gateway {
            inbound_keys_file: "/no/such/file".to_owned(),
            ..config::Gateway::default()
        };
        let error = Keys::load(&table, |_| None).unwrap_err();
        assert!(error.to_string().contains("/no/such/file"));
    }
}
