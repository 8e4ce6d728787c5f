use std::sync::Arc;

use tower_layer::Layer;
use tower_spillway_core::{InvalidConfig, clock::Wall, hint};

use super::{Commit, Dialect, StreamGuard, StreamLimits};
use crate::{Rules, Vendor, alarm::Alarms};

/// What the services of one layer share.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) rules: Rules,
    pub(super) hints: hint::Reader,
    pub(super) dialect: Dialect,
    pub(super) limits: StreamLimits,
    pub(super) commit: Commit,
    pub(super) most_held: usize,
    pub(super) most_answer: usize,
    pub(super) alarms: Arc<Alarms>,
}

const MOST_HELD: usize = 1024 * 1024;
const MOST_ANSWER: usize = 8 * 1024 * 1024;

/// Holds a stream until its first content and checks it to its end. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct StreamGuardLayer {
    guard: Guard,
}

impl StreamGuardLayer {
    /// Reads errors inside a stream with a vendor's table.
    pub fn new(vendor: Vendor) -> Self {
        Self::with_rules(Rules::of(vendor)).dialect(Dialect::of(vendor))
    }

    /// Reads errors inside a stream with these rules.
    pub fn with_rules(rules: Rules) -> Self {
        Self {
            guard: Guard {
                rules,
                hints: hint::Reader::new(),
                dialect: Dialect::Chat,
                limits: StreamLimits::default(),
                commit: Commit::default(),
                most_held: MOST_HELD,
                most_answer: MOST_ANSWER,
                alarms: Arc::default(),
            },
        }
    }

    /// The limits of streams whose request brings none of its own.
    ///
    /// # Errors
    ///
    /// Each must be above zero.
    pub fn limits(mut self, limits: StreamLimits) -> Result<Self, InvalidConfig> {
        self.guard.limits = limits.check()?;
        Ok(self)
    }

    /// When a stream is given to the caller; with its first content by default.
    #[must_use]
    pub fn commit(mut self, commit: Commit) -> Self {
        self.guard.commit = commit;
        self
    }

    /// How a caller is told of a break where the events of the stream do not show their dialect.
    /// That of the vendor by default.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.guard.dialect = dialect;
        self
    }

    /// The most bytes that are held without content, and the longest event that is read; 1 MiB by
    /// default. A longer event with data is taken for content and given on unread.
    ///
    /// # Errors
    ///
    /// At least 1,024.
    pub fn most_held(mut self, bytes: usize) -> Result<Self, InvalidConfig> {
        if bytes < 1024 {
            return Err(InvalidConfig::new("most_held", "at least 1024"));
        }
        self.guard.most_held = bytes;
        Ok(self)
    }

    /// The longest answer that is held with [`Commit::Complete`], in bytes; 8 MiB by default. A
    /// longer one goes to the next target, which may be briefer.
    ///
    /// # Errors
    ///
    /// At least 1,024.
    pub fn most_answer(mut self, bytes: usize) -> Result<Self, InvalidConfig> {
        if bytes < 1024 {
            return Err(InvalidConfig::new("most_answer", "at least 1024"));
        }
        self.guard.most_answer = bytes;
        Ok(self)
    }

    /// Whether a target with a larger context is configured: see
    /// [`Rules::larger_context_elsewhere`].
    #[must_use]
    pub fn larger_context_elsewhere(mut self, yes: bool) -> Self {
        self.guard.rules = self.guard.rules.larger_context_elsewhere(yes);
        self
    }

    /// Where wall time comes from, for dates in headers.
    #[must_use]
    pub fn wall_clock(mut self, wall: Wall) -> Self {
        self.guard.hints = self.guard.hints.wall_clock(wall);
        self
    }

    /// Reads when to come back with the user's own signals first.
    #[must_use]
    pub fn read_hints(mut self, reader: hint::Reader) -> Self {
        self.guard.hints = reader;
        self
    }
}

impl<S> Layer<S> for StreamGuardLayer {
    type Service = StreamGuard<S>;

    /// A service whose warnings are its own: one `layer()` per target, or one for several.
    fn layer(&self, inner: S) -> Self::Service {
        let guard = Guard {
            alarms: Arc::default(),
            ..self.guard.clone()
        };
        StreamGuard::new(inner, Arc::new(guard))
    }
}
