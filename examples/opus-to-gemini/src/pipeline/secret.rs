//! Keys: how one becomes a header, and how none gets into a message.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

/// The header that shows a key, after a scheme if there is one; `None` if it is no key. Marked
/// sensitive: no `Debug` shows it, and HTTP/2 does not keep it in its table.
pub(super) fn header(scheme: &str, key: &SecretString) -> Option<HeaderValue> {
    let key = key.expose_secret();
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let value = match scheme {
        "" => HeaderValue::from_str(key),
        scheme => HeaderValue::from_str(&format!("{scheme} {key}")),
    };
    let mut value = value.ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// All keys of a pipeline, to take them out of what a vendor says.
#[derive(Clone, Debug)]
pub(crate) struct Secrets(Arc<[SecretString]>);

impl Secrets {
    pub(super) fn new(keys: impl IntoIterator<Item = SecretString>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Whether there is a key in the text.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|key| text.contains(key.expose_secret()))
    }

    /// The text with every key blotted out: a vendor may quote the key that it rejects.
    pub(crate) fn blot(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, key| {
            text.replace(key.expose_secret(), "[key]")
        })
    }

    /// The same of bytes: those that came, where there is no key in them.
    pub(crate) fn blot_bytes(&self, bytes: Bytes) -> Bytes {
        let text = String::from_utf8_lossy(&bytes);
        let blotted = self.blot(&text);
        match blotted == text {
            true => bytes,
            false => blotted.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows() {
        let key = SecretString::from("sk-very-secret");
        let header = header("Bearer", &key).unwrap();
        let secrets = Secrets::new([key.clone()]);
        assert_eq!(secrets.blot("bad key sk-very-secret!"), "bad key [key]!");
        for shown in [
            format!("{key:?}"),
            format!("{header:?}"),
            format!("{secrets:?}"),
        ] {
            assert!(!shown.contains("very"), "{shown}");
        }
    }

    #[test]
    fn what_is_no_key_is_found_early() {
        for key in ["", "two words", "line\n", "schlüssel"] {
            assert!(
                header("Bearer", &SecretString::from(key)).is_none(),
                "{key:?}"
            );
        }
    }
}
