//! Probes that no user waits for.

use super::{Denied, HalfOpen, Machine, Mode, Nanos, Ticket, Transition, Why};
use crate::state::TripReason;

/// The probers of a breaker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    probers: u32,
    /// When the next probe is due.
    next: Option<Nanos>,
}

impl Probing {
    pub(super) fn any(self) -> bool {
        self.probers > 0
    }

    /// The refusal of a user's call where a prober finds out.
    pub(super) fn denies(self, reason: TripReason) -> Option<Denied> {
        self.any().then_some(Denied {
            why: Why::ProbesBusy,
            until: self.next,
            reason: Some(reason),
        })
    }
}

/// What a prober is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send this probe.
    Probe(Ticket),
    /// Come back then.
    Wait(Nanos),
    /// Nothing is to be found out.
    Rest,
}

impl Machine {
    pub(crate) fn is_probed(&self) -> bool {
        self.probing.any()
    }

    pub(crate) fn attach_prober(&mut self) {
        self.probing.probers = self.probing.probers.saturating_add(1);
        self.begin_half_open_again();
    }

    /// The last one that leaves gives half-open back to the probes of users.
    pub(crate) fn detach_prober(&mut self) {
        self.probing.probers = self.probing.probers.saturating_sub(1);
        if !self.probing.any() {
            self.probing.next = None;
            self.begin_half_open_again();
        }
    }

    /// When the next probe is due, for users who are refused until then.
    pub(crate) fn next_probe(&mut self, at: Nanos) {
        self.probing.next = Some(at);
    }

    /// Another kind of probe begins: nothing that is out counts for it.
    fn begin_half_open_again(&mut self) {
        let Mode::HalfOpen(half_open) = &self.mode else {
            return;
        };
        if half_open.is_watched() == self.probing.any() {
            return;
        }
        let fresh = if self.probing.any() {
            HalfOpen::watched(half_open.reason, self.recent_trips)
        } else {
            let lease = self.rules.lease(self.scheduled);
            HalfOpen::new(half_open.reason, Some(lease))
        };
        self.mode = Mode::HalfOpen(fresh);
        self.generation += 1;
    }

    /// What a prober is to do now. At the end of the open time it begins the half-open period.
    pub(crate) fn order(&mut self, now: Nanos) -> (Order, Option<Transition>) {
        let mut change = None;
        if let Mode::Open { until, reason } = self.mode {
            if now < until {
                return (Order::Wait(until), None);
            }
            let half_open = HalfOpen::watched(reason, self.recent_trips);
            change = Some(self.change(Mode::HalfOpen(half_open), now));
        }
        let Mode::HalfOpen(half_open) = &mut self.mode else {
            return (Order::Rest, change);
        };
        let ticket = Ticket {
            generation: self.generation,
            probe: Some(half_open.admit_prober()),
        };
        (Order::Probe(ticket), change)
    }

    /// The refusal of every user's call while a prober finds out, or would.
    pub(crate) fn denied_to_users(&self) -> Option<Denied> {
        match &self.mode {
            Mode::HalfOpen(half_open) => self.probing.denies(half_open.reason),
            Mode::Open { reason, .. } => self.probing.denies(*reason),
            _ => None,
        }
    }
}
