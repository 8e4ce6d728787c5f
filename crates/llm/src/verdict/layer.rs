use std::{sync::Arc, time::Duration};

use tower_layer::Layer;
use tower_spillway_core::{InvalidConfig, clock::Wall, hint};

use super::VendorVerdict;
use crate::{Rules, Vendor, alarm::Alarms};

/// What the services of one layer share.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) rules: Rules,
    pub(super) hints: hint::Reader,
    pub(super) read_within: Duration,
    pub(super) alarms: Alarms,
}

const READ_WITHIN: Duration = Duration::from_secs(5);

/// Reads what a vendor answered. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct VendorVerdictLayer {
    rules: Rules,
    hints: hint::Reader,
    read_within: Duration,
}

impl VendorVerdictLayer {
    /// With a vendor's table.
    pub fn new(vendor: Vendor) -> Self {
        Self::with_rules(Rules::of(vendor))
    }

    /// With these rules.
    pub fn with_rules(rules: Rules) -> Self {
        Self {
            rules,
            hints: hint::Reader::new(),
            read_within: READ_WITHIN,
        }
    }

    /// Whether a target with a larger context is configured: see
    /// [`Rules::larger_context_elsewhere`].
    #[must_use]
    pub fn larger_context_elsewhere(mut self, yes: bool) -> Self {
        self.rules = self.rules.larger_context_elsewhere(yes);
        self
    }

    /// Where wall time comes from, for dates in headers and bodies.
    #[must_use]
    pub fn wall_clock(mut self, wall: Wall) -> Self {
        self.hints = self.hints.wall_clock(wall);
        self
    }

    /// Reads when to come back with the user's own signals first.
    #[must_use]
    pub fn read_hints(mut self, reader: hint::Reader) -> Self {
        self.hints = reader;
        self
    }

    /// The longest time that is spent on reading a body; 5 s by default.
    ///
    /// # Errors
    ///
    /// It must be above zero.
    pub fn read_within(mut self, limit: Duration) -> Result<Self, InvalidConfig> {
        if limit.is_zero() {
            return Err(InvalidConfig::new("read_within", "above zero"));
        }
        self.read_within = limit;
        Ok(self)
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
}

impl<S> Layer<S> for VendorVerdictLayer {
    type Service = VendorVerdict<S>;

    /// A service whose warnings are its own: one `layer()` per target, or one for several.
    fn layer(&self, inner: S) -> Self::Service {
        VendorVerdict::new(
            inner,
            Arc::new(Judge {
                rules: self.rules.clone(),
                hints: self.hints.clone(),
                read_within: self.read_within,
                alarms: Alarms::default(),
            }),
        )
    }
}
