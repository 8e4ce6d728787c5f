//! What is asked of the record when an attempt has failed.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{
    leg::Total,
    plan::{LegPlan, Plans},
    record::Record,
};
use crate::{History, Limits, Reading, Verdict};

/// Where else the call could go: from this leg, and from those around it where a failover is a
/// target of another.
#[derive(Clone, Default)]
pub(crate) struct Outlook {
    plans: SmallVec<[Arc<LegPlan>; 1]>,
    pub(crate) patience: Duration,
    pub(crate) sends: u32,
}

impl Outlook {
    /// Asks the targets; never under the lock, since they run a user's function.
    pub(crate) fn more_targets(&self) -> bool {
        let mut onward = self.plans.iter().filter_map(|plan| plan.onward.as_ref());
        onward.any(|(targets, tried)| targets.usable_after(*tried))
    }
}

/// A leg at the end of an attempt.
#[derive(Clone, Default)]
pub(crate) struct Situation {
    pub(crate) history: History,
    pub(crate) outlook: Outlook,
    pub(crate) advice: Option<Verdict>,
    pub(crate) leg: Limits,
    /// Of the targets that this leg is a part of.
    pub(crate) around: SmallVec<[Total; 1]>,
    pub(crate) call: Limits,
    pub(crate) call_sends: u32,
    pub(crate) call_waited: Duration,
    pub(crate) unsent: u32,
}

impl Record {
    /// What the driver must know to decide, and what an adviser may see.
    pub(super) fn situation(
        &self,
        plans: &Plans,
        leg: u32,
        reading: &Reading,
        now: Instant,
    ) -> Situation {
        let Some(slot) = self.leg(leg) else {
            return Situation::default();
        };
        let (counts, streak) = slot.counts.after(reading);
        let trouble = slot.trouble();
        let plans = self.numbers(Some(leg)).filter_map(|leg| plans.of(leg));
        let outlook = Outlook {
            patience: plans.clone().map(|p| p.patience).min().unwrap_or_default(),
            sends: plans
                .clone()
                .map(|p| p.sends_while_others)
                .min()
                .unwrap_or_default(),
            plans: plans.cloned().collect(),
        };
        Situation {
            history: History {
                sends: counts.sends,
                streak,
                last_wait: counts.last_wait,
                waited: trouble.waited,
                elapsed: now.saturating_duration_since(self.opened),
                remaining: self
                    .deadline(Some(leg))
                    .map(|d| d.saturating_duration_since(now)),
                resend_safe: false,
                more_targets: false,
            },
            outlook,
            advice: trouble.advice,
            leg: slot.limits,
            around: SmallVec::new(),
            call: self.limits,
            call_sends: self.sends,
            call_waited: self.waited,
            unsent: trouble.unsent,
        }
    }
}
