//! Reading with the user's own signals first.

use std::{fmt, sync::Arc};

use http::{HeaderMap, StatusCode};

use super::{Hint, Signals, signals};
use crate::clock::Wall;

type Own = dyn Fn(StatusCode, &HeaderMap) -> Option<Hint> + Send + Sync;

/// Reads the head of a response: the user's own readers first, then all that this module knows.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, StatusCode};
/// use tower_spillway_core::hint::{Hint, Reader, Source};
///
/// // "x-busy-for: 3" means three minutes at this server.
/// let reader = Reader::new().with(|_status, headers| {
///     let minutes: u32 = headers.get("x-busy-for")?.to_str().ok()?.parse().ok()?;
///     Some(Hint::After {
///         wait: Duration::from_secs(60) * minutes,
///         source: Source::Custom("x_busy_for"),
///     })
/// });
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "5".parse().unwrap());
/// headers.insert("x-busy-for", "3".parse().unwrap());
///
/// let hint = reader.read(StatusCode::SERVICE_UNAVAILABLE, &headers).hint().unwrap();
/// assert_eq!(hint.after(), Some(Duration::from_secs(180)));
/// assert_eq!(hint.source(), Some(Source::Custom("x_busy_for")));
/// ```
#[derive(Clone, Default)]
pub struct Reader {
    own: Option<Arc<Own>>,
    wall: Wall,
}

impl Reader {
    /// Reads what this module knows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks `read` before all that is known here; of several, the one added first. What it gives
    /// counts more than any other wait; it should name itself as [`Source::Custom`](super::Source). A wait is
    /// taken as it is. [`Hint::Never`] forbids; that the server forbids is not unsaid by a wait.
    #[must_use]
    pub fn with(
        mut self,
        read: impl Fn(StatusCode, &HeaderMap) -> Option<Hint> + Send + Sync + 'static,
    ) -> Self {
        self.own = Some(match self.own.take() {
            None => Arc::new(read),
            Some(first) => Arc::new(move |status, headers| {
                first(status, headers).or_else(|| read(status, headers))
            }),
        });
        self
    }

    /// Where wall time comes from, for dates in responses without a `Date`.
    #[must_use]
    pub fn wall_clock(mut self, wall: Wall) -> Self {
        self.wall = wall;
        self
    }

    /// Reads the head of a response that is no success.
    pub fn read(&self, status: StatusCode, headers: &HeaderMap) -> Signals {
        let known = signals::read(status, headers, || self.wall.now());
        match self.own.as_deref().and_then(|own| own(status, headers)) {
            None => known,
            Some(hint) => known.overruled_by(hint),
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("own", &self.own.is_some())
            .field("wall", &self.wall)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::Source;
    use std::time::Duration;

    fn after(secs: u64, source: Source) -> Option<Hint> {
        Some(Hint::After {
            wait: Duration::from_secs(secs),
            source,
        })
    }

    #[test]
    fn own_readers_come_first_in_their_order() {
        let reader = Reader::new()
            .with(|status, _| (status == 503).then(|| after(1, Source::Custom("first")))?)
            .with(|_, _| after(2, Source::Body("second")));
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "9".parse().unwrap());
        let read = |status| {
            let status = StatusCode::from_u16(status).unwrap();
            reader.read(status, &headers).hint()
        };
        assert_eq!(read(503), after(1, Source::Custom("first")));
        assert_eq!(
            read(429),
            after(2, Source::Body("second")),
            "whatever its rank"
        );
        headers.insert("x-should-retry", "false".parse().unwrap());
        let forbidden = reader.read(StatusCode::TOO_MANY_REQUESTS, &headers);
        assert_eq!(forbidden.hint(), Some(Hint::Never));
        assert_eq!(forbidden.asked(), after(2, Source::Body("second")));
    }

    #[test]
    fn own_never_forbids() {
        let reader = Reader::new().with(|_, _| Some(Hint::Never));
        let signals = reader.read(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new());
        assert!(signals.forbids());
    }
}
