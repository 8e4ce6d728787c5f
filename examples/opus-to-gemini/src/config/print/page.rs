//! A page of settings, as TOML writes them.

use std::{
    fmt::{self, Display, Write},
    time::Duration,
};

use serde::Serialize;

use crate::config::duration::text;

/// Writes `key = value`, and a comment at the side.
pub(super) struct Page<'f, 'g>(&'f mut fmt::Formatter<'g>);

impl<'f, 'g> Page<'f, 'g> {
    pub(super) fn new(f: &'f mut fmt::Formatter<'g>) -> Self {
        Self(f)
    }

    pub(super) fn line(&mut self, text: &str) -> fmt::Result {
        writeln!(self.0, "{text}")
    }

    pub(super) fn table(&mut self, name: &str, about: &str) -> fmt::Result {
        writeln!(self.0, "\n[{name}]{}", comment(about))
    }

    pub(super) fn set(&mut self, key: &str, value: impl Display, about: &str) -> fmt::Result {
        let mut line = format!("{key} = {value}");
        if !about.is_empty() {
            let width = line.chars().count();
            for _ in width..38 {
                line.push(' ');
            }
            write!(line, "{}", comment(about))?;
        }
        writeln!(self.0, "{}", line.trim_end())
    }

    pub(super) fn head(&mut self, enabled: bool, kind: &str, kinds: &str) -> fmt::Result {
        self.set("enabled", enabled, "")?;
        self.set("kind", quoted(kind), kinds)
    }
}

fn comment(about: &str) -> String {
    match about {
        "" => String::new(),
        about => format!("  # {about}"),
    }
}

/// A string, or anything else, as TOML writes it.
pub(super) fn quoted<T: Serialize>(value: T) -> String {
    toml::Value::try_from(value).map_or_else(|_| String::new(), |value| value.to_string())
}

pub(super) fn time(d: Duration) -> String {
    quoted(text(d))
}

pub(super) fn or_none(d: Option<Duration>) -> String {
    d.map_or_else(|| quoted("none"), time)
}

/// A name as TOML wants it on the left.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}
