//! Why a stream broke.

use std::{error::Error, fmt, time::Duration};

use tower_spillway_core::{BoxError, Class, Classified, ErrorReader, Reading};

/// Why a stream was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Break {
    /// The connection failed; the error is the source.
    Failed,
    /// It ended without a finish reason and without its last event.
    EndedEarly,
    /// An event could not be read.
    Unreadable,
    /// The vendor sent an error in an event.
    ErrorEvent,
    /// No content within this time of sending the request.
    NoContent(Duration),
    /// Nothing at all for this time.
    Idle(Duration),
    /// Not complete within this time of sending the request.
    Total(Duration),
    /// More than so many bytes without content.
    Preamble(usize),
    /// A whole answer was to be held, and it is longer than so many bytes.
    TooLong(usize),
}

impl Break {
    /// A stable name in snake case, for logs, metrics, and the code of an error event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "stream_failed",
            Self::EndedEarly => "stream_ended_early",
            Self::Unreadable => "stream_unreadable",
            Self::ErrorEvent => "stream_error",
            Self::NoContent(_) => "stream_no_content",
            Self::Idle(_) => "stream_idle",
            Self::Total(_) => "stream_total",
            Self::Preamble(_) => "stream_preamble",
            Self::TooLong(_) => "stream_too_long",
        }
    }

    /// The time limit that ran out.
    pub fn limit(self) -> Option<Duration> {
        match self {
            Self::NoContent(limit) | Self::Idle(limit) | Self::Total(limit) => Some(limit),
            _ => None,
        }
    }

    /// What a caller is told.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Failed => "the connection broke before the answer was complete",
            Self::EndedEarly => "the stream ended before the answer was complete",
            Self::Unreadable => "an event of the stream could not be read",
            Self::ErrorEvent => "the stream ended in an error of the upstream",
            Self::NoContent(_) => "no content came in time",
            Self::Idle(_) => "the stream stalled before the answer was complete",
            Self::Total(_) => "the answer was not complete in time",
            Self::Preamble(_) => "the stream was long without content",
            Self::TooLong(_) => "the answer is longer than what is held",
        }
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        match self {
            Self::NoContent(limit) | Self::Idle(limit) | Self::Total(limit) => {
                write!(f, " ({limit:?})")
            }
            Self::Preamble(most) | Self::TooLong(most) => write!(f, " ({most} bytes)"),
            _ => Ok(()),
        }
    }
}

/// A stream broke before anything of it was given to the caller.
///
/// It comes inside a [`Classified`]: [`find`](tower_spillway_core::error::find) finds it.
#[derive(Debug)]
pub struct StreamBroken {
    why: Break,
    source: Option<BoxError>,
}

impl StreamBroken {
    pub(super) fn new(why: Break) -> Self {
        Self { why, source: None }
    }

    pub(super) fn failed(source: BoxError) -> Self {
        Self {
            why: Break::Failed,
            source: Some(source),
        }
    }

    /// Why.
    pub fn why(&self) -> Break {
        self.why
    }

    /// What it means for a retry, a failover and a breaker.
    ///
    /// Transient, and maybe processed: the answer had begun. Only an answer too long to be held is
    /// no failure of the target; another one may be briefer.
    pub(super) fn reading(&self) -> Reading {
        let late = match &self.source {
            Some(source) => ErrorReader::default().read(&**source).is_timed_out(),
            None => self.why.limit().is_some(),
        };
        let class = match self.why {
            Break::TooLong(_) => Class::NotHere,
            _ => Class::Transient,
        };
        Reading::new(class)
            .with_reason(self.why.as_str())
            .timed_out(late)
            .unprocessed(false)
    }

    pub(super) fn into_error(self) -> BoxError {
        Classified::new(self.reading(), self).into()
    }
}

impl fmt::Display for StreamBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.why, f)
    }
}

impl Error for StreamBroken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn Error + 'static))
    }
}
