//! The two clocks: tokio's for every delay, and wall time for dates that a server sends.

use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

thread_local! {
    /// The time of the synchronous chain of `call`s that runs on this thread. Of the thread, not of
    /// the call: behind a `Buffer` one call runs on two threads at once, and a time set on one and
    /// restored on the other would stay for good.
    static MOMENT: Cell<Option<Instant>> = const { Cell::new(None) };
    /// When a layer below found its call ended, in the poll that is under way.
    static ENDED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time of the running chain of `call`s, if there is one, else read from tokio's clock. The
/// one place that reads it, so that reads can be counted.
#[inline]
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
#[inline]
pub(crate) fn during<T>(now: Instant, call: impl FnOnce() -> T) -> T {
    struct Unset(Option<Instant>);
    impl Drop for Unset {
        #[inline]
        fn drop(&mut self) {
            MOMENT.set(self.0);
        }
    }
    let _unset = Unset(MOMENT.replace(Some(now)));
    call()
}

/// The time at which a call ended, for the layer that sees it end first. The layers around it hear
/// of the end in the same poll and need not read the clock again.
#[inline]
pub fn ended() -> Instant {
    let now = now();
    ENDED.set(Some(now));
    now
}

/// Polls what is below, and says when it ended if a layer there knows ([`ended`]).
#[inline]
pub fn ending<T>(poll: impl FnOnce() -> T) -> (T, Option<Instant>) {
    // An end that nobody asked for must not be taken for that of another call.
    ENDED.set(None);
    let out = poll();
    (out, ENDED.get())
}

/// So long after a time. Where that is too far away to be a time, some thirty years: far beyond any
/// process.
pub fn after(time: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    time.checked_add(wait).unwrap_or_else(|| time + FAR)
}

/// Whole milliseconds, for a log or a report.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Something that is due at most once in a while: a warning of what would else be warned of without
/// end.
#[derive(Debug)]
pub struct Every {
    each: Duration,
    last: Mutex<Option<Instant>>,
}

impl Every {
    /// Due at once, and then so long after it was.
    pub const fn new(each: Duration) -> Self {
        Self {
            each,
            last: Mutex::new(None),
        }
    }

    /// Whether it is due at a moment; if so it was.
    pub fn is_due(&self, now: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| now.saturating_duration_since(last) >= self.each);
        if due {
            *last = Some(now);
        }
        due
    }
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_chain_has_one_time_and_gives_the_one_around_it_back() {
        let (outer, inner) = (now(), now() + Duration::from_secs(9));
        during(outer, || {
            assert_eq!(now(), outer);
            during(inner, || assert_eq!(now(), inner));
            assert_eq!(now(), outer);
        });
        assert!(MOMENT.get().is_none());
    }

    #[test]
    fn a_chain_on_one_thread_is_not_seen_on_another() {
        let early = now();
        during(early, || {
            let elsewhere = thread::spawn(|| MOMENT.get().is_none());
            assert!(elsewhere.join().unwrap());
        });
    }

    #[test]
    fn an_end_is_heard_by_the_layers_around_and_by_no_other_call() {
        let (inner, seen) = ending(|| ending(ended));
        assert_eq!((Some(inner.0), inner.1), (seen, seen));
        ended();
        assert_eq!(ending(|| ()).1, None);
    }

    #[test]
    fn what_is_due_comes_once_in_a_while() {
        let (every, start) = (Every::new(Duration::from_secs(60)), now());
        let at = |secs| every.is_due(start + Duration::from_secs(secs));
        let due: Vec<_> = [0, 0, 59, 60, 61, 119, 120].into_iter().map(at).collect();
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn no_wait_is_too_long_to_be_added() {
        let now = now();
        let second = Duration::from_secs(1);
        assert_eq!(after(now, second), now + second);
        assert!(after(now, Duration::MAX) > now);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_panic_in_a_chain_leaves_no_time_behind() {
        let unwound = std::panic::catch_unwind(|| during(now(), || panic!("in a call")));
        assert!(unwound.is_err());
        assert!(MOMENT.get().is_none());
    }
}
