//! What was seen in a stream, for the layers outside.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::usage::Counts;
use crate::Usage;

/// The tokens that a stream counted, in the extensions of its response. They come with its last
/// events, so that they are there when the body has ended.
///
/// # Clone
///
/// Clones share it.
#[derive(Clone, Default)]
pub struct StreamUsage(Arc<Mutex<Option<Counts>>>);

impl StreamUsage {
    /// What was counted so far; `None` if nothing was.
    pub fn get(&self) -> Option<Usage> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.map(Counts::total)
    }

    pub(super) fn set(&self, counts: Counts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
    }
}

impl fmt::Debug for StreamUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamUsage").field(&self.get()).finish()
    }
}
