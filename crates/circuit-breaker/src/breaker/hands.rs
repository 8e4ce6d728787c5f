//! What is done to a breaker by hand.

use std::time::Duration;

use tower_spillway_core::Refused;

use super::Breaker;
use crate::{config::nanos, machine::Machine, permit::Permit};

impl Breaker {
    /// Refuses every call until [`force_close`](Self::force_close) or [`reset`](Self::reset). No
    /// open time ends it, and what calls under way bring back is not heard.
    pub fn force_open(&self) {
        self.change(Machine::force_open);
    }

    /// Opens for so long, from now, whatever it was in; then probes find out as usual.
    pub fn force_open_for(&self, time: Duration) {
        let time = nanos(time);
        self.change(|machine, now| Some(machine.force_open_for(time, now)));
    }

    /// Opens as if a rule had tripped it, for the open time that is due. While half-open that is a
    /// failed reopening.
    pub fn trip(&self) {
        let chance = &self.0.config.chance;
        self.change(|machine, now| Some(machine.trip_by_hand(now, chance)));
    }

    /// Lets probes find out at once: the open time, if there is one, is over. A probe that hangs
    /// then keeps its slot until it ends or is dropped.
    pub fn half_open(&self) {
        self.change(Machine::half_open);
    }

    /// Closes, whatever it was in; it may open again as usual. Open times start again at the
    /// first. Nothing changes where it is closed already.
    pub fn force_close(&self) {
        self.change(Machine::force_close);
    }

    /// Makes it as new: closed, all counts at zero, what was learnt of latencies forgotten,
    /// results of calls under way not heard.
    pub fn reset(&self) {
        self.change(|machine, now| Some(machine.reset(now)));
    }

    /// Lets every call pass and hears nothing, until [`force_close`](Self::force_close) or
    /// [`reset`](Self::reset).
    pub fn disable(&self) {
        self.change(Machine::disable);
    }

    /// Lets every call pass and counts, from nothing on, but opens at no rule, until
    /// [`force_close`](Self::force_close) or [`reset`](Self::reset).
    pub fn metrics_only(&self) {
        self.change(Machine::metrics_only);
    }

    /// The right to one call of something that is no service. It says how the call ended;
    /// dropped without a word it says nothing about the target.
    ///
    /// # Errors
    ///
    /// [`Refused`] says who turned the call away and when it is worth coming back.
    pub fn permit(&self) -> Result<Permit, Refused> {
        self.acquire(None)
            .map(|admitted| Permit::new(self.clone(), admitted))
    }
}
