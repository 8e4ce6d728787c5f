//! What a call left behind on its way from target to target.

use std::time::Duration;

use tokio::time::Instant;
use tower_spillway_core::{BoxError, Ledger, Reading, clock};

use crate::error::NotPrepared;

/// An outcome kept while later targets are asked.
pub(crate) struct Kept<Res> {
    pub(crate) out: Result<Res, BoxError>,
    pub(crate) reading: Reading,
    pub(crate) leg: Ledger,
}

impl<Res> Kept<Res> {
    /// The target may have done the work.
    pub(crate) fn in_doubt(&self) -> bool {
        !self.reading.is_unprocessed() || self.leg.is_in_doubt()
    }
}

/// What the targets gave that were asked before.
pub(crate) struct Behind<Res> {
    pub(crate) primary: Option<Kept<Res>>,
    pub(crate) later: Option<Kept<Res>>,
    pub(crate) not_prepared: Option<NotPrepared>,
    /// When the first of those that refused may be back. Not how long that takes: each said so at
    /// another moment.
    back_at: Option<Instant>,
}

impl<Res> Default for Behind<Res> {
    fn default() -> Self {
        Self {
            primary: None,
            later: None,
            not_prepared: None,
            back_at: None,
        }
    }
}

impl<Res> Behind<Res> {
    /// A target that refused may be back so long from now.
    pub(crate) fn back_in(&mut self, wait: Duration, now: Instant) {
        let back = clock::after(now, wait);
        self.back_at = Some(self.back_at.map_or(back, |first| first.min(back)));
    }

    /// How long it is until the first of them may be back; at least a millisecond.
    pub(crate) fn retry_in(&self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        let left = self.back_at?.saturating_duration_since(now());
        Some(left.max(Duration::from_millis(1)))
    }
}
