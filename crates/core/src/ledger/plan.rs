//! What a leg is opened with, and the plans of a call's legs.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use crate::ResendTerms;

/// The name of a target. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetName(Arc<str>);

impl TargetName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl<T: Into<Arc<str>>> From<T> for TargetName {
    fn from(name: T) -> Self {
        Self(name.into())
    }
}

impl fmt::Debug for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The targets of a call, as a leg sees them: whether one that was not tried could serve now.
pub trait Onward: Send + Sync + 'static {
    /// Whether a target after number `tried` is usable.
    fn usable_after(&self, tried: usize) -> bool;
}

/// What a leg is opened with.
#[derive(Clone)]
#[non_exhaustive]
pub struct LegPlan {
    /// The target's name.
    pub target: TargetName,
    /// The model that the target serves, for the record.
    pub model: Option<Arc<str>>,
    /// The targets of the call, and which of them this leg is on.
    pub onward: Option<(Arc<dyn Onward>, usize)>,
    /// The longest wait here while another target is usable; equal passes.
    pub patience: Duration,
    /// Sends here while another target is usable, the first included.
    pub sends_while_others: u32,
    /// What the target allows to be sent again.
    pub terms: ResendTerms,
}

impl LegPlan {
    /// The longest wait while another target is usable, where nothing else is set.
    pub const PATIENCE: Duration = Duration::from_secs(2);
    /// Sends while another target is usable, where nothing else is set.
    pub const SENDS_WHILE_OTHERS: u32 = 2;

    /// A leg on the only target.
    pub fn new(target: TargetName) -> Self {
        Self {
            target,
            model: None,
            onward: None,
            patience: Self::PATIENCE,
            sends_while_others: Self::SENDS_WHILE_OTHERS,
            terms: ResendTerms::default(),
        }
    }
}

impl fmt::Debug for LegPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegPlan")
            .field("target", &self.target)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// The plans of the legs that were opened with one, in that order.
///
/// Beside the record, not in it: a plan never changes, and a handle names its target without the
/// lock and without a reference of its own.
#[derive(Default)]
pub(super) struct Plans(OnceLock<Planned>);

struct Planned {
    leg: u32,
    plan: Arc<LegPlan>,
    /// Boxed: most calls go to one target.
    next: OnceLock<Box<Planned>>,
}

impl Plans {
    #[inline]
    pub(super) fn of(&self, leg: u32) -> Option<&Arc<LegPlan>> {
        let mut next = self.0.get();
        while let Some(planned) = next {
            if planned.leg == leg {
                return Some(&planned.plan);
            }
            next = planned.next.get().map(|planned| &**planned);
        }
        None
    }

    /// The plan of one more leg. Callers hold the lock of the record, so that nobody else adds.
    pub(super) fn add(&self, leg: u32, plan: Arc<LegPlan>) {
        let planned = Planned {
            leg,
            plan,
            next: OnceLock::new(),
        };
        let Some(mut last) = self.0.get() else {
            let _ = self.0.set(planned);
            return;
        };
        while let Some(next) = last.next.get() {
            last = next;
        }
        let _ = last.next.set(Box::new(planned));
    }
}
