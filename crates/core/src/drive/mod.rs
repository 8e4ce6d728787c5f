//! The engine of every retrying layer: one future that sends, judges, waits and sends again.
//!
//! In each leg the outermost retrying layer *drives*: it alone copies the request, sleeps and
//! re-sends. A retrying layer that finds a driver above it calls once, judges the outcome, leaves
//! its advice in the leg's slot of the [`Ledger`](crate::Ledger) and returns the outcome. So two
//! retrying layers of 3 and 5 attempts make 3 sends, not 15, in either order.
//!
//! After each attempt the driver asks, in this order: does the class alone forbid another send
//! here? What do the policies say, merged? May the request be sent again at all? Is the hint within
//! the longest wait? Does another target come first? Are there sends left? Does the wait fit the
//! deadline and the total wait? Do all gates grant? Any "no" returns the outcome in hand,
//! unchanged, with its [`Cause`](crate::Cause) in the ledger.

mod decide;
mod future;
#[cfg(feature = "tower")]
mod tower;
mod wait;

use std::{fmt, sync::Arc};

use smallvec::SmallVec;

pub use self::future::Drive;
#[cfg(feature = "tower")]
pub use self::tower::TowerPolicy;
use crate::{Limits, gate::Gate};

/// A policy with its adapter, limits and gates: what a retrying layer shares between calls.
#[derive(Clone)]
pub struct Engine<P, A> {
    policy: P,
    adapter: A,
    limits: Limits,
    gates: SmallVec<[Arc<dyn Gate>; 1]>,
}

impl<P, A> Engine<P, A> {
    /// A policy over an adapter.
    pub fn new(policy: P, adapter: A) -> Self {
        Self {
            policy,
            adapter,
            limits: Limits::default(),
            gates: SmallVec::new(),
        }
    }

    /// Adds limits; of two the stricter holds.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = self.limits.merge(limits);
        self
    }

    /// Adds a gate that each retry must pass.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gates.push(gate);
        self
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The same with another policy.
    #[must_use]
    pub fn with_policy<Q>(self, policy: Q) -> Engine<Q, A> {
        Engine {
            policy,
            adapter: self.adapter,
            limits: self.limits,
            gates: self.gates,
        }
    }

    /// The same over another adapter.
    #[must_use]
    pub fn with_adapter<B>(self, adapter: B) -> Engine<P, B> {
        Engine {
            policy: self.policy,
            adapter,
            limits: self.limits,
            gates: self.gates,
        }
    }
}

impl<P, A> fmt::Debug for Engine<P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("policy", &std::any::type_name::<P>())
            .field("limits", &self.limits)
            .field("gates", &self.gates.len())
            .finish_non_exhaustive()
    }
}
