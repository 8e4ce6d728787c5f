//! Durations as people write them: `"8s"`, `"250ms"`, `"1m 30s"`.

use std::time::Duration;

use serde::{Deserializer, Serializer, de::Error};

const SHAPE: &str = "a duration such as \"8s\", \"250ms\" or \"1m 30s\"";

pub(super) fn serialize<S: Serializer>(d: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text(*d))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = text_of(from)?;
    humantime::parse_duration(&text).map_err(|_| wrong(&text, SHAPE))
}

/// As it stands in a file.
pub(super) fn text(d: Duration) -> String {
    humantime::format_duration(d).to_string()
}

fn text_of<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Text;
    impl serde::de::Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(SHAPE)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
    }
    from.deserialize_str(Text)
}

fn wrong<E: Error>(text: &str, shape: &str) -> E {
    E::custom(format_args!("{text:?} must be {shape}"))
}

/// The same, or `"none"`.
pub(super) mod or_none {
    use super::{Deserializer, Duration, Serializer, text, text_of, wrong};

    pub(in super::super) fn serialize<S: Serializer>(
        d: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match d {
            Some(d) => to.serialize_str(&text(*d)),
            None => to.serialize_str("none"),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = text_of(from)?;
        if text == "none" {
            return Ok(None);
        }
        let shape = "a duration such as \"8s\" or \"250ms\", or \"none\"";
        let parsed = humantime::parse_duration(&text);
        parsed.map(Some).map_err(|_| wrong(&text, shape))
    }
}
