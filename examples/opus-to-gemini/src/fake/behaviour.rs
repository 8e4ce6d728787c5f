//! What a fake vendor does with a request that passes its checks.

use std::time::Duration;

/// What a fake vendor does with a request that passes its checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Behaviour {
    /// Answers after its latency.
    #[default]
    Answer,
    /// Answers after this many times its latency.
    Slow {
        /// By how much its latency is multiplied.
        factor: u32,
    },
    /// 429 at once.
    Throttle {
        /// When to come back: Anthropic says so in `Retry-After`, in whole seconds, rounded up;
        /// Gemini in a `google.rpc.RetryInfo` in the body.
        retry_after: Duration,
    },
    /// Nothing is left until a person acts: Anthropic says so with a 400 about the spend limit,
    /// Gemini with a 429 about the day's quota and a `RetryInfo` that is short and false.
    Exhausted,
    /// An error at once.
    Fail {
        /// Its status: 500, 503, 504 or 529, say.
        status: u16,
    },
    /// Takes the request and never answers.
    Hang,
    /// Takes the request and closes the connection.
    Reset,
    /// Answers after its latency, but stops halfway through the body and never goes on.
    Stall,
    /// Answers after its latency, but closes the connection halfway through the body.
    Cut,
    /// Streams so many words of the answer, then stalls. A plain answer stalls halfway.
    StallAfter {
        /// How many.
        words: usize,
    },
    /// Streams so many words of the answer, then closes the connection. A plain answer is cut
    /// halfway.
    CutAfter {
        /// How many.
        words: usize,
    },
    /// Streams the role and an error event; a plain answer is that error.
    RefuseInStream {
        /// The status that the event tells of.
        status: u16,
    },
    /// Streams the role, and then only comments; a plain answer never comes.
    Silent,
    /// Streams so many words of the answer, then an event that is no JSON, then the rest. A plain
    /// answer is no JSON.
    Garble {
        /// How many.
        words: usize,
    },
    /// Streams the whole answer without the marker of its end. A plain answer is whole.
    NoDone,
    /// Answers 200 with an error object and no stream.
    ErrorAs200,
}

impl Behaviour {
    /// Whether it answers, or begins to, and so takes its latency.
    pub(super) fn answers(self) -> bool {
        !matches!(
            self,
            Self::Throttle { .. }
                | Self::Exhausted
                | Self::Fail { .. }
                | Self::Hang
                | Self::Reset
                | Self::ErrorAs200
        )
    }
}
