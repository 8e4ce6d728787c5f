//! The errors that cross layers.

use std::{error::Error, fmt, io, ops::Deref, time::Duration};

use crate::Reading;

/// The error type of every layer: the original error stays inside and can be downcast.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// What a [`TimedOut`] was measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeLimit {
    /// From the sending of one attempt to its response head.
    Head,
    /// From the sending of one attempt to the last byte of its response body.
    LastByte,
    /// The deadline of the whole call, over all attempts and waits.
    Call,
}

/// A time limit ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut {
    limit: TimeLimit,
    after: Duration,
}

impl TimedOut {
    /// A limit of `after` ran out.
    pub fn new(limit: TimeLimit, after: Duration) -> Self {
        Self { limit, after }
    }

    /// Which limit ran out.
    pub fn limit(&self) -> TimeLimit {
        self.limit
    }

    /// How long the limit was.
    pub fn after(&self) -> Duration {
        self.after
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.limit {
            TimeLimit::Head => "no response head",
            TimeLimit::LastByte => "response body not complete",
            TimeLimit::Call => "call not answered",
        };
        write!(f, "{what} within {:?}", self.after)
    }
}

impl Error for TimedOut {}

/// An error with a [`Reading`] that overrides what the error alone would say.
///
/// [`ClassifyLayer`](crate::classify::ClassifyLayer) makes it; the original error is its
/// [`source`](Error::source).
#[derive(Debug)]
pub struct Classified {
    reading: Reading,
    source: BoxError,
}

impl Classified {
    /// Puts a reading on an error.
    pub fn new(reading: Reading, source: impl Into<BoxError>) -> Self {
        Self {
            reading,
            source: source.into(),
        }
    }

    /// The reading that overrides.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The original error.
    pub fn into_inner(self) -> BoxError {
        self.source
    }
}

impl fmt::Display for Classified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.source, self.reading.class())
    }
}

impl Error for Classified {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// A configuration value out of its bounds. Given at construction, never later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConfig {
    what: &'static str,
    bound: &'static str,
}

impl InvalidConfig {
    /// `what` broke `bound`, for instance `("max_attempts", "at least 1")`.
    pub fn new(what: &'static str, bound: &'static str) -> Self {
        Self { what, bound }
    }

    /// The name of the setting.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The bound that it broke.
    pub fn bound(&self) -> &'static str {
        self.bound
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}", self.what, self.bound)
    }
}

impl Error for InvalidConfig {}

/// Why a request cannot be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotReplayable {
    why: &'static str,
}

impl NotReplayable {
    /// `why` is a short phrase, for instance `"the body was only half sent"`.
    pub const fn new(why: &'static str) -> Self {
        Self { why }
    }

    /// The short phrase.
    pub fn why(&self) -> &'static str {
        self.why
    }
}

impl fmt::Display for NotReplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request cannot be sent again: {}", self.why)
    }
}

impl Error for NotReplayable {}

/// An error as closures that classify see it. It derefs to the error.
///
/// A type of its own, since the compiler forgets `'static` inside an async block: over closures that
/// take `&(dyn Error + 'static)` the future of a call could not be spawned ("implementation of `Fn` is
/// not general enough").
#[derive(Clone, Copy)]
pub struct Failure<'e>(&'e (dyn Error + 'static));

impl<'e> Failure<'e> {
    /// A view of an error.
    pub fn new(error: &'e (dyn Error + 'static)) -> Self {
        Self(error)
    }

    /// The error itself.
    pub fn get(self) -> &'e (dyn Error + 'static) {
        self.0
    }

    /// The first error in the chain of sources that is a `T`.
    pub fn find<T: Error + 'static>(self) -> Option<&'e T> {
        find(self.0)
    }
}

impl Deref for Failure<'_> {
    type Target = dyn Error + 'static;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl fmt::Debug for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, f)
    }
}

/// The first error in the chain of `source()` that is a `T`.
pub fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    chain(error).find_map(|e| e.downcast_ref())
}

/// An error and its sources, from the outside in.
pub(crate) fn chain<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |e: &&'e (dyn Error + 'static)| {
        // An io error that wraps another gives that one's source as its own, not that one.
        match e.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => (**e).source(),
        }
    })
}
