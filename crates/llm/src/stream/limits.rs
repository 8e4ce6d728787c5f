//! How long a stream may take, and when it is given out.

use std::time::Duration;

use tower_spillway_core::InvalidConfig;

/// Limits of one stream. As a request extension they take the place of the layer's.
///
/// They hold for answers that are streams; what bounds the wait for a response head is the attempt's
/// own timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// From the sending to the first content; `None` for no limit. Nothing but content ends it.
    pub first_content: Option<Duration>,
    /// Between two reads of anything, comments and pings included; `None` for no limit. Counted
    /// while the stream is waited for: a caller that is slow to read is no stall.
    pub idle: Option<Duration>,
    /// From the sending to the end; `None` for no limit.
    pub total: Option<Duration>,
}

impl StreamLimits {
    /// No limits.
    pub const NONE: Self = Self {
        first_content: None,
        idle: None,
        total: None,
    };

    pub(super) fn check(self) -> Result<Self, InvalidConfig> {
        for (limit, what) in [
            (self.first_content, "first_content"),
            (self.idle, "idle"),
            (self.total, "total"),
        ] {
            if limit.is_some_and(|limit| limit.is_zero()) {
                return Err(InvalidConfig::new(what, "above zero"));
            }
        }
        Ok(self)
    }
}

impl Default for StreamLimits {
    /// 60 s to the first content, 60 s idle, no total.
    fn default() -> Self {
        Self {
            first_content: Some(Duration::from_secs(60)),
            idle: Some(Duration::from_secs(60)),
            total: None,
        }
    }
}

/// When a stream is given to the caller. From then on it can no longer be sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Commit {
    /// With its first content.
    #[default]
    FirstContent,
    /// When it is complete: no partial answer ever reaches the caller, and a later target can still
    /// serve. It costs the caller the streaming, and memory up to the cap.
    Complete,
}
