//! Keys, from the environment and from files.

use std::{env, fs, io, path::Path};

use secrecy::{ExposeSecret, SecretString};

/// The key in a variable; `None` if it is unset, empty or no text.
pub fn from_env(variable: &str) -> Option<SecretString> {
    of(env::var(variable).ok()?)
}

/// The key in a file; `None` if it is empty.
///
/// # Errors
///
/// The file cannot be read, or is no text.
pub fn from_file(path: impl AsRef<Path>) -> io::Result<Option<SecretString>> {
    fs::read_to_string(path).map(of)
}

fn of(value: String) -> Option<SecretString> {
    let value = SecretString::from(value);
    // A trailing newline comes from `export KEY="$(cat file)"` and the like.
    let key = value.expose_secret().trim();
    (!key.is_empty()).then(|| SecretString::from(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_no_key_and_ends_of_lines_are_none_of_it() {
        assert!(of(" \n".into()).is_none());
        assert_eq!(of("k\n".into()).unwrap().expose_secret(), "k");
    }
}
