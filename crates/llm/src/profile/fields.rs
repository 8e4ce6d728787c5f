//! The fields at the top of a request.

use std::{
    borrow::{Borrow, Cow},
    fmt,
    ops::RangeInclusive,
};

use bytes::Bytes;
use indexmap::IndexMap;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{
    Number, Value,
    value::{RawValue, to_raw_value},
};

/// The fields at the top of a request: names in their order, values as they were written.
///
/// Only what is asked for is read, and what is not set goes on byte by byte: numbers too large for
/// this program, digits and spaces of all kinds.
///
/// # Example
///
/// ```
/// use tower_spillway_llm::Fields;
///
/// let mut chat = Fields::read(br#"{"model": "a", "seed": 123456789012345678901, "x": [1.0 ]}"#)?;
/// assert_eq!(chat.get("model"), Some(r#""a""#));
/// chat.remove("x");
/// chat.set("model", "b");
/// assert_eq!(chat.to_bytes(), r#"{"model":"b","seed":123456789012345678901}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fields<'c>(IndexMap<Name<'c>, Cow<'c, RawValue>>);

impl<'c> Fields<'c> {
    /// Reads an object. Of two fields of one name the later counts.
    ///
    /// # Errors
    ///
    /// These are no bytes of a JSON object.
    pub fn read(object: &'c [u8]) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_slice(object);
        let fields = json.deserialize_map(Top)?;
        json.end()?;
        Ok(Self(fields))
    }

    /// A value, as it is written.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.get())
    }

    /// Whether a field is a list with something in it.
    pub fn has_some(&self, name: &str) -> bool {
        let inside = self.get(name).and_then(|value| value.strip_prefix('['));
        inside.is_some_and(|inside| !inside.trim_start().starts_with(']'))
    }

    /// Sets a field, in its place or at the end.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        // A value always can be written.
        if let Ok(value) = to_raw_value(&value.into()) {
            self.put(Cow::Borrowed(name), value);
        }
    }

    /// Takes a field out; the others keep their order.
    pub fn remove(&mut self, name: &str) {
        self.0.shift_remove(name);
    }

    /// The object, on one line where its values are.
    pub fn to_bytes(&self) -> Bytes {
        let mut text = Vec::with_capacity(self.len());
        for (name, value) in &self.0 {
            text.push(if text.is_empty() { b'{' } else { b',' });
            match &name.0 {
                // Names that need no escapes are the rule.
                name if is_plain(name) => {
                    text.push(b'"');
                    text.extend_from_slice(name.as_bytes());
                    text.push(b'"');
                }
                name => text.extend_from_slice(Value::from(&**name).to_string().as_bytes()),
            }
            text.push(b':');
            text.extend_from_slice(value.get().as_bytes());
        }
        if text.is_empty() {
            text.push(b'{');
        }
        text.push(b'}');
        text.into()
    }

    /// Of the bytes, about.
    fn len(&self) -> usize {
        let fields = self.0.iter();
        fields.fold(2, |sum, (name, value)| {
            sum + name.0.len() + value.get().len() + 4
        })
    }

    fn put(&mut self, name: Cow<'c, str>, value: Box<RawValue>) {
        self.0.insert(Name(name), Cow::Owned(value));
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "null")
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| keep(&name.0));
    }

    /// Gives a field another name, at the end; the other wins where both are there.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(value) = self.0.shift_remove(from) {
            let to = Name(Cow::Owned(to.to_owned()));
            self.0.entry(to).or_insert(value);
        }
    }

    /// Brings a number into a range. A whole number stays one.
    pub(super) fn clamp(&mut self, name: &str, range: &RangeInclusive<f64>) {
        let Some(value) = self.0.get_mut(name) else {
            return;
        };
        let Some(number) = clamped(value.get(), range) else {
            return;
        };
        if let Ok(number) = to_raw_value(&number) {
            *value = Cow::Owned(number);
        }
    }

    /// Brings a count down to the most that it may be, in whatever way it is written.
    pub(super) fn cap(&mut self, name: &'static str, most: u64) {
        let asked = self.get(name).and_then(whole);
        if asked.is_some_and(|asked| asked > most) {
            self.set(name, most);
        }
    }

    /// Replaces a value by what is made of it, if anything is.
    pub(super) fn replace<E>(
        &mut self,
        name: &str,
        make: impl FnOnce(&RawValue) -> Result<Option<Box<RawValue>>, E>,
    ) -> Result<(), E> {
        if let Some(value) = self.0.get_mut(name) {
            if let Some(made) = make(value)? {
                *value = Cow::Owned(made);
            }
        }
        Ok(())
    }
}

/// A number as it is written; one too large for this program is infinite. What JSON has besides
/// numbers is none to Rust either.
fn number(written: &str) -> Option<f64> {
    written.parse().ok()
}

/// The whole part of a number; the largest there is in the place of a larger one.
fn whole(written: &str) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it saturates"
    )]
    let inexact = || number(written).map(|number| number as u64);
    written.parse().ok().or_else(inexact)
}

/// The nearest number in a range; `None` for one that is in it.
fn clamped(written: &str, range: &RangeInclusive<f64>) -> Option<Number> {
    let asked = number(written).filter(|asked| !range.contains(asked))?;
    let bound = match asked < *range.start() {
        true => *range.start(),
        false => *range.end(),
    };
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    let whole = (bound.fract() == 0.0 && bound.abs() < 1e15).then_some(bound as i64);
    match whole {
        Some(whole) if !written.contains(['.', 'e', 'E']) => Some(Number::from(whole)),
        _ => Number::from_f64(bound),
    }
}

/// Whether a name is written as it is.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(plain)
}

struct Top;

impl<'c> Visitor<'c> for Top {
    type Value = IndexMap<Name<'c>, Cow<'c, RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'c>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = IndexMap::new();
        while let Some((name, value)) = object.next_entry::<_, &RawValue>()? {
            fields.insert(name, Cow::Borrowed(value));
        }
        Ok(fields)
    }
}

/// A name, or another text; copied only if there are escapes in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(transparent)]
pub(crate) struct Name<'c>(#[serde(borrow)] pub(crate) Cow<'c, str>);

impl Borrow<str> for Name<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}
