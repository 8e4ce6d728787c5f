//! The two clocks: tokio's for every delay, and wall time for dates that a server sends.

use std::{cell::Cell, fmt, sync::Arc, time::SystemTime};

use tokio::time::Instant;

thread_local! {
    /// The time of the synchronous chain of `call`s that runs on this thread. Of the thread, not of
    /// the call: behind a `Buffer` one call runs on two threads at once, and a time set on one and
    /// restored on the other would stay for good.
    static MOMENT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time of the running chain of `call`s, if there is one, else read from tokio's clock. The
/// one place that reads it, so that reads can be counted.
pub fn now() -> Instant {
    if let Some(moment) = MOMENT.get() {
        return moment;
    }
    #[cfg(feature = "testing")]
    crate::testing::clock::count_read();
    Instant::now()
}

/// Runs `call` with `now` as the time of the chain that it starts, so that the layers of a stack
/// read the clock once between them.
pub(crate) fn during<T>(now: Instant, call: impl FnOnce() -> T) -> T {
    struct Unset(Option<Instant>);
    impl Drop for Unset {
        fn drop(&mut self) {
            MOMENT.set(self.0);
        }
    }
    let _unset = Unset(MOMENT.replace(Some(now)));
    call()
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
