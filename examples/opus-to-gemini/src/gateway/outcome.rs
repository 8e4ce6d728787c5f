//! How a call ended.

use serde::Serialize;

/// How a call ended, for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// With a whole answer of a vendor's.
    Answered,
    /// With an error: the request was wrong, or nobody could serve.
    Failed,
    /// With a stream that broke after its caller had a part of it.
    Broken,
    /// The caller left before the end.
    Left,
    /// The gateway was stopped before the end.
    Cut,
}

impl Outcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Broken => "broken",
            Self::Left => "left",
            Self::Cut => "cut",
        }
    }
}
