//! What the rules made of an answer.

use tower_spillway_core::{Class, Reading, hint::Hint};

use super::{Remedy, Subclass};

/// What the rules made of an answer: the [`Reading`] for the layers outside, and what a person
/// must do.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    pub(super) reading: Reading,
    pub(super) subclass: Option<Subclass>,
    pub(super) remedy: Option<Remedy>,
}

impl Ruling {
    /// The class.
    pub fn class(&self) -> Class {
        self.reading.class()
    }

    /// What the vendor said about when to come back.
    pub fn hint(&self) -> Option<Hint> {
        self.reading.hint()
    }

    /// The name of the row that decided.
    pub fn reason(&self) -> Option<&str> {
        self.reading.reason()
    }

    /// Which switch moves it.
    pub fn subclass(&self) -> Option<Subclass> {
        self.subclass
    }

    /// What a person must do before this target can serve again.
    pub fn remedy(&self) -> Option<Remedy> {
        self.remedy
    }

    /// The reading.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The reading, to put on a response.
    pub fn into_reading(self) -> Reading {
        self.reading
    }
}
