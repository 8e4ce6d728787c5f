//! What the rules look at.

use std::time::SystemTime;

use http::HeaderMap;
use tower_spillway_core::clock::Wall;

use crate::Said;

/// An answer of a vendor: status, headers, what its body says.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    status: u16,
    headers: Option<&'a HeaderMap>,
    said: Said,
    wall: Option<&'a Wall>,
}

impl<'a> Answer<'a> {
    /// An answer without headers. `body` may be cut off.
    pub fn new(status: u16, body: &[u8]) -> Self {
        Self {
            status,
            headers: None,
            said: Said::read(&HeaderMap::new(), body),
            wall: None,
        }
    }

    /// An answer with headers.
    pub fn with_headers(status: u16, headers: &'a HeaderMap, body: &[u8]) -> Self {
        Self {
            status,
            headers: Some(headers),
            said: Said::read(headers, body),
            wall: None,
        }
    }

    /// Where wall time comes from, for dates.
    #[must_use]
    pub fn wall_clock(mut self, wall: &'a Wall) -> Self {
        self.wall = Some(wall);
        self
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

    pub(super) fn now(&self) -> SystemTime {
        match self.wall {
            Some(wall) => wall.now(),
            None => Wall::default().now(),
        }
    }

    /// A header's value, if it is a text.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers?.get(name)?.to_str().ok().map(str::trim)
    }
}
