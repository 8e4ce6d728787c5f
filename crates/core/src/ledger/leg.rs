//! One leg: all attempts of one call on one target.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{record::Abandoned, shared::Guests};
use crate::{Cause, Class, Limits, Reading, Verdict, gate::Gate};

/// Limits and gates of one leg or of the whole call.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) limits: Limits,
    pub(super) gates: SmallVec<[Entered; 1]>,
}

/// A gate, and whether it was told of an attempt since it was entered.
pub(super) struct Entered {
    pub(super) gate: Arc<dyn Gate>,
    pub(super) told: bool,
}

impl Scope {
    pub(super) fn has(&self, gate: &Arc<dyn Gate>) -> bool {
        self.gates.iter().any(|g| Arc::ptr_eq(&g.gate, gate))
    }

    pub(super) fn add(&mut self, gate: &Arc<dyn Gate>) {
        self.gates.push(Entered {
            gate: Arc::clone(gate),
            told: false,
        });
    }
}

/// All that was sent on a leg and on the legs below it, and the limits over that.
#[derive(Clone, Copy, Default)]
pub(crate) struct Total {
    pub(crate) limits: Limits,
    pub(crate) sends: u32,
    pub(crate) waited: Duration,
}

impl Total {
    pub(crate) fn is_spent(&self) -> bool {
        let most = self.limits.max_attempts;
        most.is_some_and(|most| self.sends >= most)
    }
}

/// How the outcomes on a leg ran so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) sends: u32,
    throttled: u32,
    others: u32,
    pub(super) last_wait: Option<Duration>,
}

impl Counts {
    /// The counts once this outcome is in, and the streak of its class.
    pub(super) fn after(mut self, reading: &Reading) -> (Self, u32) {
        if reading.class() != Class::Refused {
            self.sends = self.sends.saturating_add(1);
        }
        if asks_for_wait(reading) {
            // After a hinted wait the schedule starts again.
            return (
                Self {
                    sends: self.sends,
                    ..Self::default()
                },
                0,
            );
        }
        let streak = match reading.class() {
            Class::Throttled => &mut self.throttled,
            _ => &mut self.others,
        };
        *streak = streak.saturating_add(1);
        let streak = *streak;
        (self, streak)
    }
}

/// Whether the server named a wait of more than nothing.
pub(crate) fn asks_for_wait(reading: &Reading) -> bool {
    reading
        .hint()
        .and_then(|hint| hint.after())
        .is_some_and(|wait| !wait.is_zero())
}

/// The slot of one leg.
pub(super) struct Leg {
    /// It was opened on a target: [`Plans`](super::plan::Plans) has its plan.
    pub(super) named: bool,
    /// The leg whose driver is above the failover that opened this one.
    pub(super) parent: Option<u32>,
    pub(super) opened: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) scope: Scope,
    /// Gates that layers below the driver entered: the driver leaves them.
    pub(super) guests: Guests,
    /// The driver has left: nobody would leave a gate that is entered now.
    pub(super) over: bool,
    pub(super) counts: Counts,
    pub(super) total: Total,
    /// What was sent here or on the legs below may have been processed.
    pub(super) in_doubt: bool,
    pub(super) waited: Duration,
    pub(super) unsent: u32,
    pub(super) advice: Option<Verdict>,
    pub(super) abandoned: Option<Abandoned>,
    pub(super) cause: Option<Cause>,
    pub(super) last_class: Option<Class>,
    /// A failover below opened legs of its own: what the driver above sends is no attempt.
    pub(super) outer: bool,
}

impl Leg {
    pub(super) fn new(named: bool, parent: Option<u32>, opened: Instant) -> Self {
        Self {
            named,
            parent,
            opened,
            deadline: None,
            scope: Scope::default(),
            guests: SmallVec::new(),
            over: false,
            counts: Counts::default(),
            total: Total::default(),
            in_doubt: false,
            waited: Duration::ZERO,
            unsent: 0,
            advice: None,
            abandoned: None,
            cause: None,
            last_class: None,
            outer: false,
        }
    }

    /// Its driver leaves, and must leave these gates.
    pub(super) fn end(&mut self) -> Guests {
        self.over = true;
        std::mem::take(&mut self.guests)
    }
}

/// An attempt that came to an end.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'r> {
    pub(crate) reading: &'r Reading,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}
