//! The machine made concurrent: the hot answers are atomics only, the rest one mutex.
//!
//! - Closed, admitted: one load of the word.
//! - Closed, a success that is fast for every rule: a few loads, and a count of its own for each
//!   span of the rules, spread over lanes. The clock is asked only where a rule looks back on a time.
//! - Open, refused: three loads.

mod lanes;
#[cfg(spillway_loom)]
#[cfg(test)]
mod models;
mod outbox;
#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests;
mod word;

use std::sync::{Arc, PoisonError};

use tower_spillway_core::Chance;

use self::{
    lanes::Lanes,
    outbox::Outbox,
    word::{CHANGING, Word, closed, closed_in, decode, encode},
};
use crate::{
    machine::{Denied, Heard, Machine, Nanos, Order, Rules, Ticket, Transition, View, age, place},
    state::State,
    sync::{AtomicBool, AtomicI64, AtomicU64, Mutex, MutexGuard, Ordering},
};

pub(crate) struct Cell {
    rules: Arc<Rules>,
    /// Generation and tag. Written under the lock only, as are the figures that belong to it.
    word: AtomicU64,
    /// The end of the open time or of the ramp.
    until: AtomicI64,
    /// When the closed period began, and its first epoch.
    since: AtomicI64,
    base: AtomicU64,
    /// A success within this is fast for every rule.
    fast_within: AtomicU64,
    /// A prober finds out, and no user's call is a probe.
    probed: AtomicBool,
    /// The generation in which a success ended the run of failures; 0 if none did since the last
    /// failure.
    run_ended: AtomicU64,
    /// Something may wait to be said.
    unsaid: AtomicBool,
    lanes: Lanes,
    locked: Mutex<Locked>,
}

struct Locked {
    machine: Machine,
    outbox: Outbox,
}

impl Cell {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        let machine = Machine::new(Arc::clone(&rules));
        let figures = machine.figures();
        Self {
            word: AtomicU64::new(encode(machine.generation(), &figures)),
            until: AtomicI64::new(figures.until.unwrap_or(0)),
            since: AtomicI64::new(figures.since),
            base: AtomicU64::new(figures.base),
            fast_within: AtomicU64::new(figures.fast_within),
            probed: AtomicBool::new(false),
            run_ended: AtomicU64::new(0),
            unsaid: AtomicBool::new(false),
            lanes: Lanes::new(&rules),
            locked: Mutex::new(Locked {
                machine,
                outbox: Outbox::default(),
            }),
            rules,
        }
    }

    /// The generation if it is plainly closed; else [`acquire`](Self::acquire) says.
    #[inline]
    pub(crate) fn closed(&self) -> Option<u64> {
        closed(self.word.load(Ordering::Acquire))
    }

    /// Admits a call or not. `now` is asked for only where the answer depends on it.
    pub(crate) fn acquire(
        &self,
        now: impl FnOnce() -> Nanos,
        chance: &Chance,
    ) -> Result<Ticket, Denied> {
        let seen = self.word.load(Ordering::Acquire);
        let (word, generation) = decode(seen);
        let plain = Ticket {
            generation,
            probe: None,
        };
        let now = match word {
            Word::Closed | Word::MetricsOnly | Word::Disabled => return Ok(plain),
            Word::ForcedOpen => return Err(Denied::FORCED),
            Word::HalfOpen | Word::Changing => now(),
            Word::Open(_) => {
                let now = now();
                if let Some(denied) = self.still_open(now) {
                    return Err(denied);
                }
                now
            }
            Word::Ramping => {
                let now = now();
                let end = self.until.load(Ordering::Acquire);
                if self.is_still(seen) && now < end {
                    return if self.rules.ramp_admits(end, now, chance) {
                        Ok(plain)
                    } else {
                        Err(Denied::ramping(end))
                    };
                }
                now
            }
        };
        self.locked(now, |machine| machine.acquire(now, chance))
    }

    /// Whether a call would be refused whoever asks. Changes nothing.
    pub(crate) fn refuses(&self, now: impl FnOnce() -> Nanos) -> Option<Denied> {
        let (word, _) = decode(self.word.load(Ordering::Acquire));
        let denied = match word {
            Word::ForcedOpen => Some(Denied::FORCED),
            Word::Open(_) => self.still_open(now()),
            _ => None,
        };
        let may_probe = matches!(word, Word::Open(_) | Word::HalfOpen);
        denied.or_else(|| {
            (may_probe && self.probed.load(Ordering::Relaxed))
                .then(|| self.lock().machine.denied_to_users())
                .flatten()
        })
    }

    /// Hears of a success where no rule asks how long it took, if the breaker is plainly closed as
    /// it was when it admitted the call; else it is for [`settle`](Self::settle).
    #[inline]
    pub(crate) fn succeed(&self, generation: u64, now: impl FnOnce() -> Nanos) -> bool {
        let seen = self.word.load(Ordering::Acquire);
        // What was admitted in a closed period is no probe.
        seen == closed_in(generation) && self.count_apart(seen, generation, now)
    }

    /// Hears how a call ended that took `elapsed` nanoseconds.
    pub(crate) fn settle(
        &self,
        ticket: Ticket,
        heard: Heard,
        elapsed: u64,
        mut now: impl FnMut() -> Nanos,
        chance: &Chance,
    ) {
        let seen = self.word.load(Ordering::Acquire);
        let (word, generation) = decode(seen);
        if word == Word::Disabled || (heard == Heard::Ignored && ticket.probe.is_none()) {
            return;
        }
        if heard == Heard::Success && ticket.probe.is_none() && word != Word::Changing {
            if generation != ticket.generation {
                return;
            }
            let fast = elapsed <= self.fast_within.load(Ordering::Relaxed);
            if fast && self.count_apart(seen, generation, &mut now) {
                if self.rules.brownout.is_some() {
                    self.lanes.add_time(place(elapsed));
                }
                return;
            }
        }
        let now = now();
        self.locked(now, |machine| {
            let change = machine.settle(ticket, heard, elapsed, now, chance);
            ((), change)
        });
    }

    /// A success that is fast for every rule, without the lock. Nothing if the word has changed.
    #[inline]
    fn count_apart(&self, seen: u64, generation: u64, now: impl FnOnce() -> Nanos) -> bool {
        self.end_run(generation);
        let now = if self.lanes.are_timed() { now() } else { 0 };
        let since = self.since.load(Ordering::Acquire);
        let base = self.base.load(Ordering::Acquire);
        if !self.is_still(seen) {
            return false;
        }
        let age = age(since, now);
        for counts in self.lanes.counts() {
            counts.add(base.saturating_add(counts.epochs(age)));
        }
        true
    }

    /// A success while closed ends the run of failures, without the lock: it leaves the number of
    /// its generation, and the next failure finds it under the lock before it counts.
    ///
    /// `fetch_max`, not `store`: a success of an earlier generation that comes late must neither
    /// end a run of this one nor wipe out the mark of a success that did. While calls succeed the
    /// mark stays and is only read.
    #[inline]
    fn end_run(&self, generation: u64) {
        if self.run_ended.load(Ordering::Relaxed) < generation {
            self.mark_end_of_run(generation);
        }
    }

    #[cold]
    fn mark_end_of_run(&self, generation: u64) {
        self.run_ended.fetch_max(generation, Ordering::Relaxed);
    }

    /// Changes the machine, and shows what it is in. The time is 0 where no rule needs it.
    pub(crate) fn change(
        &self,
        now: Nanos,
        change: impl FnOnce(&mut Machine) -> Option<Transition>,
    ) {
        self.locked(now, |machine| ((), change(machine)));
    }

    /// What a prober is to do.
    pub(crate) fn order(&self, now: Nanos) -> Order {
        self.locked(now, |machine| machine.order(now))
    }

    fn locked<T>(
        &self,
        now: Nanos,
        change: impl FnOnce(&mut Machine) -> (T, Option<Transition>),
    ) -> T {
        let mut locked = self.lock();
        self.catch_up(&mut locked.machine, now);
        let (out, transition) = change(&mut locked.machine);
        self.publish(&locked.machine);
        if let Some(transition) = transition {
            locked.outbox.put(transition);
            self.unsaid.store(true, Ordering::Relaxed);
        }
        out
    }

    pub(crate) fn view(&self, now: Nanos) -> View {
        let mut locked = self.lock();
        self.catch_up(&mut locked.machine, now);
        locked.machine.view(now)
    }

    /// The state, lock-free but for the moment of a change.
    pub(crate) fn state(&self, now: impl FnOnce() -> Nanos) -> State {
        let word = || decode(self.word.load(Ordering::Acquire)).0;
        match word() {
            Word::Closed | Word::Ramping => State::Closed,
            Word::HalfOpen => State::HalfOpen,
            Word::ForcedOpen => State::ForcedOpen,
            Word::Disabled => State::Disabled,
            Word::MetricsOnly => State::MetricsOnly,
            Word::Open(_) => {
                let now = now();
                if self.still_open(now).is_some() {
                    return State::Open;
                }
                // The open time is over, or the state has just moved on.
                self.lock().machine.view(now).state
            }
            Word::Changing => self.lock().machine.view(now()).state,
        }
    }

    /// Hands what happened to `hear`, in order, with no lock held. If another thread is at it, that
    /// one hands over this too; so what `hear` itself does to the breaker is heard after it.
    #[inline]
    pub(crate) fn deliver(&self, hear: impl FnMut(&Transition)) {
        // A thread sees what it stored itself, so what it caused is said before it returns, or by
        // the thread that is at it.
        if self.unsaid.load(Ordering::Relaxed) {
            self.hand_over(hear);
        }
    }

    #[cold]
    fn hand_over(&self, mut hear: impl FnMut(&Transition)) {
        let Some(mut next) = self.lock().outbox.begin() else {
            return;
        };
        let delivering = Delivering(self);
        loop {
            hear(&next);
            let mut locked = self.lock();
            match locked.outbox.next() {
                Some(after) => next = after,
                None => {
                    self.unsaid.store(false, Ordering::Relaxed);
                    break;
                }
            }
        }
        std::mem::forget(delivering);
    }

    /// Tells the machine of successes since it last heard.
    fn catch_up(&self, machine: &mut Machine, now: Nanos) {
        let generation = machine.generation();
        // A success that comes between the load and the swap is part of what is told: it was
        // under way together with this failure, and may well have come before it.
        if self.run_ended.load(Ordering::Relaxed) == generation
            && self.run_ended.swap(0, Ordering::Relaxed) == generation
        {
            machine.end_run();
        }
        self.lanes.tell(machine, self.rules.spans.len(), now);
    }

    /// The refusal of an open breaker, lock-free; `None` if the open time is over or the state
    /// has moved on.
    fn still_open(&self, now: Nanos) -> Option<Denied> {
        let seen = self.word.load(Ordering::Acquire);
        let (Word::Open(reason), _) = decode(seen) else {
            return None;
        };
        let until = self.until.load(Ordering::Acquire);
        (self.is_still(seen) && now < until).then(|| Denied::open(until, reason))
    }

    /// Whether figures that were loaded belong to this word: others are written only after the
    /// word has changed.
    fn is_still(&self, word: u64) -> bool {
        self.word.load(Ordering::Relaxed) == word
    }

    /// Shows what the machine is in.
    fn publish(&self, machine: &Machine) {
        let figures = machine.figures();
        // A success of the time before the limit moved may still be counted as fast.
        self.fast_within
            .store(figures.fast_within, Ordering::Relaxed);
        self.probed.store(machine.is_probed(), Ordering::Relaxed);
        let word = encode(machine.generation(), &figures);
        if self.word.load(Ordering::Relaxed) == word {
            return;
        }
        // From closed to closed, or open to open: a reader must not take new figures for those of
        // the old word.
        let changing = (word & !word::TAG_MASK) | CHANGING;
        self.word.store(changing, Ordering::Relaxed);
        self.until
            .store(figures.until.unwrap_or(0), Ordering::Release);
        self.since.store(figures.since, Ordering::Release);
        self.base.store(figures.base, Ordering::Release);
        self.word.store(word, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Locked> {
        // Nothing that can panic runs under the lock.
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody is handing over what happened; if that panics, the next one goes on.
struct Delivering<'a>(&'a Cell);

impl Drop for Delivering<'_> {
    fn drop(&mut self) {
        self.0.lock().outbox.end();
    }
}
