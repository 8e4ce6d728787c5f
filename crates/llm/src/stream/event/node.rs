//! The JSON of an event, borrowed from its bytes: a stream has many events, and of each a word or
//! two is looked at, once.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use crate::profile::Name;

#[derive(Debug)]
pub(in crate::stream) enum Node<'e> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'e, str>),
    Array(Vec<Node<'e>>),
    Object(Object<'e>),
}

/// Fields in their order. Of two of one name the later counts.
#[derive(Debug)]
pub(in crate::stream) struct Object<'e>(Vec<(Name<'e>, Node<'e>)>);

impl<'e> Node<'e> {
    pub(in crate::stream) fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    pub(in crate::stream) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn as_object(&self) -> Option<&Object<'e>> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// A copy, to be kept.
    pub(in crate::stream) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(yes) => Value::Bool(*yes),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::from(&**text),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => Value::Object(fields.to_map()),
        }
    }
}

impl<'e> Object<'e> {
    pub(super) fn get(&self, name: &str) -> Option<&Node<'e>> {
        let mut fields = self.0.iter().rev();
        fields.find(|(n, _)| n.0 == name).map(|(_, value)| value)
    }

    pub(super) fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node<'e>)> {
        self.0.iter().map(|(name, value)| (&*name.0, value))
    }

    /// A copy, to be kept.
    pub(super) fn to_map(&self) -> Map<String, Value> {
        let fields = self.iter();
        fields
            .map(|(name, value)| (name.to_owned(), value.to_value()))
            .collect()
    }
}

impl<'e> Deserialize<'e> for Node<'e> {
    fn deserialize<D: Deserializer<'e>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'e> Visitor<'e> for AnyNode {
    type Value = Node<'e>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node<'e>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Node<'e>, E> {
        Ok(Node::Bool(yes))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node<'e>, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node<'e>, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node<'e>, E> {
        Ok(Number::from_f64(number).map_or(Node::Null, Node::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'e str) -> Result<Node<'e>, E> {
        Ok(Node::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'e>, E> {
        Ok(Node::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'e>>(self, mut list: A) -> Result<Node<'e>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::Array(items))
    }

    fn visit_map<A: MapAccess<'e>>(self, mut object: A) -> Result<Node<'e>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = object.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Object(Object(fields)))
    }
}
