//! What the rules look at.

use http::{HeaderMap, StatusCode};
use tower_spillway_core::hint::{Reader, Signals};

use crate::{Said, said};

/// An answer of a vendor: status, headers, what its body says, and when to come back.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    status: u16,
    headers: Option<&'a HeaderMap>,
    said: Said,
    signals: Signals,
}

impl<'a> Answer<'a> {
    /// An answer without headers. `body` may be cut off.
    pub fn new(status: u16, body: &[u8]) -> Self {
        Self::read(status, None, body, &Reader::new())
    }

    /// An answer with headers. `hints` reads what they say about when to come back.
    pub fn with_headers(status: u16, headers: &'a HeaderMap, body: &[u8], hints: &Reader) -> Self {
        Self::read(status, Some(headers), body, hints)
    }

    fn read(status: u16, headers: Option<&'a HeaderMap>, body: &[u8], hints: &Reader) -> Self {
        let none = HeaderMap::new();
        let fields = headers.unwrap_or(&none);
        let said = Said::read(fields, body);
        let mut answer = Self {
            status,
            headers,
            said,
            signals: Signals::default(),
        };
        // The status that counts: some fields say something with a 429 alone.
        let code = StatusCode::from_u16(answer.failure_status());
        let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        answer.signals = said::add_hints(hints.read(code, fields), &answer.said, hints);
        answer
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The headers, if given.
    pub fn headers(&self) -> Option<&'a HeaderMap> {
        self.headers
    }

    /// What the body says.
    pub fn said(&self) -> &Said {
        &self.said
    }

    /// What head and body say about when to come back.
    pub fn signals(&self) -> Signals {
        self.signals
    }

    /// The status that counts for a failure: of the error inside a success where there is one,
    /// else the HTTP status.
    pub fn failure_status(&self) -> u16 {
        match self.status {
            200..=299 if self.said.is_error() => self.said.status(),
            status => status,
        }
    }

    /// A header's value, if it is a text.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers?.get(name)?.to_str().ok().map(str::trim)
    }
}
