//! So many calls at one time, and so many that wait.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::error::ApiError;
use crate::config;

/// A bound of the calls under way, and of those that wait to be.
#[derive(Debug)]
pub(super) struct Queue {
    /// Under way or waiting.
    places: Arc<Semaphore>,
    /// Under way.
    slots: Arc<Semaphore>,
    in_flight: usize,
    queue: usize,
}

/// A call in the queue, or under way.
#[derive(Debug)]
pub(super) struct Place {
    slots: Arc<Semaphore>,
    place: OwnedSemaphorePermit,
}

/// A call under way; to be kept to the end of its answer.
#[derive(Debug)]
pub(super) struct Slot {
    _place: OwnedSemaphorePermit,
    _slot: OwnedSemaphorePermit,
}

impl Queue {
    pub(super) fn new(table: &config::Gateway) -> Self {
        let size = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let in_flight = size(table.in_flight).clamp(1, Semaphore::MAX_PERMITS / 2);
        let queue = size(table.queue).min(Semaphore::MAX_PERMITS / 2);
        Self {
            places: Arc::new(Semaphore::new(in_flight + queue)),
            slots: Arc::new(Semaphore::new(in_flight)),
            in_flight,
            queue,
        }
    }

    /// A place, at once or not at all.
    pub(super) fn admit(&self) -> Result<Place, ApiError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| {
            full(format!(
                "{} calls are under way and {} wait for their turn, as many as this gateway takes.",
                self.in_flight, self.queue
            ))
        })?;
        Ok(Place {
            slots: Arc::clone(&self.slots),
            place,
        })
    }

    /// The most calls under way.
    pub(super) fn most_in_flight(&self) -> usize {
        self.in_flight
    }

    /// The most calls that wait.
    pub(super) fn most_waiting(&self) -> usize {
        self.queue
    }

    /// Calls under way.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
            .saturating_sub(self.slots.available_permits())
    }

    /// Calls that wait, or whose request is still being read.
    pub(super) fn waiting(&self) -> usize {
        let all = (self.in_flight + self.queue).saturating_sub(self.places.available_permits());
        all.saturating_sub(self.in_flight())
    }
}

impl Place {
    /// Waits for its turn, in the order of coming.
    pub(super) async fn turn(self, within: Duration) -> Result<Slot, ApiError> {
        match timeout(within, self.slots.acquire_owned()).await {
            Ok(Ok(slot)) => Ok(Slot {
                _place: self.place,
                _slot: slot,
            }),
            _ => Err(full(
                "No call under way ended in time to make room for this one.",
            )),
        }
    }
}

/// Nothing was sent, so an SDK may come back by itself.
fn full(message: impl Into<std::borrow::Cow<'static, str>>) -> ApiError {
    ApiError::busy(message)
        .retry_after(Duration::from_secs(1))
        .again()
}
