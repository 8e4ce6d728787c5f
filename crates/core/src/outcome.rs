//! What a policy sees of an attempt.

use std::error::Error;

use crate::{Class, Reading, hint::Hint};

/// What one attempt gave: a response or an error, and its [`Reading`]. Made once per attempt.
#[derive(Debug)]
pub struct Outcome<'a, Res> {
    reading: &'a Reading,
    result: Result<&'a Res, &'a (dyn Error + 'static)>,
}

impl<Res> Clone for Outcome<'_, Res> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Res> Copy for Outcome<'_, Res> {}

impl<'a, Res> Outcome<'a, Res> {
    /// Joins a result with its reading.
    pub fn new(reading: &'a Reading, result: Result<&'a Res, &'a (dyn Error + 'static)>) -> Self {
        Self { reading, result }
    }

    /// The class.
    pub fn class(&self) -> Class {
        self.reading.class()
    }

    /// What the server said about when to come back, unclamped.
    pub fn hint(&self) -> Option<Hint> {
        self.reading.hint()
    }

    /// A short reason.
    pub fn reason(&self) -> Option<&'a str> {
        self.reading.reason()
    }

    /// The whole reading.
    pub fn reading(&self) -> &'a Reading {
        self.reading
    }

    /// The response, unless it was an error.
    pub fn response(&self) -> Option<&'a Res> {
        self.result.ok()
    }

    /// The error, unless it was a response.
    pub fn error(&self) -> Option<&'a (dyn Error + 'static)> {
        self.result.err()
    }
}
