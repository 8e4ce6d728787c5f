//! The two clocks: tokio's for every delay, and wall time for dates that a server sends.

use std::{fmt, sync::Arc, time::SystemTime};

use tokio::time::Instant;

/// Reads tokio's clock. The one place that does, so that reads can be counted.
pub fn now() -> Instant {
    #[cfg(feature = "testing")]
    crate::testing::clock::count_read();
    Instant::now()
}

/// Where wall time comes from. Only dates that a server sends need it, and only where the response
/// has no `Date` of its own.
pub trait WallClock: Send + Sync + 'static {
    /// The wall time now.
    fn now(&self) -> SystemTime;
}

/// The wall clock of a layer: the system's unless another was given.
#[derive(Clone, Default)]
pub struct Wall(Option<Arc<dyn WallClock>>);

impl Wall {
    /// Reads wall time from `clock`.
    pub fn new(clock: impl WallClock) -> Self {
        Self(Some(Arc::new(clock)))
    }

    /// The wall time now.
    pub fn now(&self) -> SystemTime {
        match &self.0 {
            Some(clock) => clock.now(),
            #[expect(clippy::disallowed_methods, reason = "the one reader of system time")]
            None => SystemTime::now(),
        }
    }
}

impl fmt::Debug for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Wall(injected)"
        } else {
            "Wall(system)"
        })
    }
}
