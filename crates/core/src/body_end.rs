//! How a response body ended, told to the layers outside.

use std::sync::{Arc, OnceLock};

use crate::Reading;

/// How a response body ended: set by the layer that reads the body, and read by layers outside at
/// the end of theirs. It rides in the response's extensions.
///
/// A stream that breaks after its caller was given a part of it may end for the caller in an error
/// event and a clean end, so that the body's own end says nothing. What it was stands here, from
/// before the last frame is given out.
///
/// # Clone
///
/// Clones share it.
///
/// # Example
///
/// ```
/// use tower_spillway_core::{BodyEnd, Class, Reading};
///
/// let end = BodyEnd::new();
/// let outside = end.clone();
/// assert_eq!(outside.get(), None, "still open");
///
/// end.set(Reading::new(Class::Transient).with_reason("stream_broke"));
/// end.set(Reading::new(Class::Success));
/// assert_eq!(outside.get().map(Reading::class), Some(Class::Transient), "the first one stays");
/// ```
#[derive(Clone, Debug, Default)]
pub struct BodyEnd(Arc<OnceLock<Reading>>);

impl BodyEnd {
    /// Of a body that is open.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how it ended. What was said first stays.
    pub fn set(&self, reading: Reading) {
        let _ = self.0.set(reading);
    }

    /// How it ended; `None` while it is open, and where nobody saw its end.
    pub fn get(&self) -> Option<&Reading> {
        self.0.get()
    }
}
