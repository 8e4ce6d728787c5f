//! Headers of requests to a target.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};

/// Where the value of a header is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderFrom {
    /// In the file of settings; no secret.
    Text(String),
    /// In a variable, as a key is: `{ env = "NAME" }`.
    Env(String),
    /// In a file, as a key is: `{ file = "PATH" }`.
    File(String),
}

impl Serialize for HeaderFrom {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (key, place) = match self {
            Self::Text(text) => return text.serialize(to),
            Self::Env(name) => ("env", name),
            Self::File(path) => ("file", path),
        };
        let mut map = to.serialize_map(Some(1))?;
        map.serialize_entry(key, place)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for HeaderFrom {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = HeaderFrom;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, { env = \"NAME\" } or { file = \"PATH\" }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<HeaderFrom, E> {
                Ok(HeaderFrom::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderFrom, A::Error> {
                let known = &["env", "file"];
                let entry = map.next_entry::<String, String>()?;
                let (key, place) = entry.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                if map.next_key::<String>()?.is_some() {
                    return Err(A::Error::invalid_length(2, &self));
                }
                match key.as_str() {
                    "env" => Ok(HeaderFrom::Env(place)),
                    "file" => Ok(HeaderFrom::File(place)),
                    other => Err(A::Error::unknown_field(other, known)),
                }
            }
        }
        from.deserialize_any(Read)
    }
}
