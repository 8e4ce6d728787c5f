//! Nothing was sent: every target refused.

use std::{error::Error, fmt, time::Duration};

use tower_spillway_core::{Refusal, Refused};

/// Every target turned the call away, and nothing was sent anywhere.
///
/// It is read as [`Class::Refused`](tower_spillway_core::Class::Refused) by layers outside. A
/// server may answer 503 with [`retry_in`](Self::retry_in) as `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllRefused(Refused);

impl AllRefused {
    pub(crate) fn new(retry_in: Option<Duration>) -> Self {
        Self(Refused::new(Refusal::AllTargets).retry_in(retry_in))
    }

    /// When the first of the targets may be back, from the moment of the refusal; `None` if no
    /// target knows.
    pub fn retry_in(&self) -> Option<Duration> {
        self.0.wait()
    }
}

impl fmt::Display for AllRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("every target refused")?;
        match self.retry_in() {
            Some(wait) => write!(f, ", retry in {wait:?}"),
            None => Ok(()),
        }
    }
}

impl Error for AllRefused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// A target's `prepare` could not make a request for it; the next target is asked.
#[derive(Debug)]
pub struct NotPrepared {
    source: tower_spillway_core::BoxError,
}

impl NotPrepared {
    pub(crate) fn new(source: tower_spillway_core::BoxError) -> Self {
        Self { source }
    }
}

impl fmt::Display for NotPrepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request could not be prepared for the target")
    }
}

impl Error for NotPrepared {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
