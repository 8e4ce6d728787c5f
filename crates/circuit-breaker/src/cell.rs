//! The machine made concurrent: the two hot answers are atomics only, the rest one mutex.
//!
//! - Closed, admitted: one load of the word.
//! - Closed, success: one load of the generation in which a success was last seen.
//! - Open, refused: three loads.

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests;

use std::sync::PoisonError;

use tower_spillway_core::Chance;

use crate::{
    machine::{Denied, Heard, Machine, Nanos, Rules, Ticket, Transition, View},
    state::{State, TripReason},
    sync::{AtomicI64, AtomicU64, Mutex, MutexGuard, Ordering},
};

/// The low bits of the word hold what it is in, the others the generation.
const TAG_BITS: u32 = 8;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

const CLOSED: u64 = 0;
const HALF_OPEN: u64 = 1;
const FORCED_OPEN: u64 = 2;
/// Open tags say why, so that a refusal can too.
const OPEN: [(u64, TripReason); 3] = [
    (3, TripReason::Consecutive),
    (4, TripReason::Held),
    (5, TripReason::ProbeFailed),
];

pub(crate) struct Cell {
    /// Generation and tag. Written under the lock only.
    word: AtomicU64,
    /// The end of the open time. Written under the lock only, before the word that opens.
    until: AtomicI64,
    /// The generation in which a success ended the run of failures; 0 if none did since the last
    /// failure.
    run_ended: AtomicU64,
    machine: Mutex<Machine>,
}

/// What the word says.
enum Word {
    Closed { generation: u64 },
    HalfOpen,
    ForcedOpen,
    Open(TripReason),
}

impl Cell {
    pub(crate) fn new(rules: Rules) -> Self {
        let machine = Machine::new(rules);
        Self {
            word: AtomicU64::new(encode(&machine)),
            until: AtomicI64::new(0),
            run_ended: AtomicU64::new(0),
            machine: Mutex::new(machine),
        }
    }

    /// Admits a call or not. `now` is asked for only where the answer depends on it.
    pub(crate) fn acquire(
        &self,
        now: impl FnOnce() -> Nanos,
    ) -> (Result<Ticket, Denied>, Option<Transition>) {
        let now = match self.read() {
            Word::Closed { generation } => {
                return (
                    Ok(Ticket {
                        generation,
                        probe: None,
                    }),
                    None,
                );
            }
            Word::ForcedOpen => return (Err(Denied::FORCED), None),
            Word::HalfOpen => now(),
            Word::Open(_) => {
                let now = now();
                if let Some(denied) = self.still_open(now) {
                    return (Err(denied), None);
                }
                now
            }
        };
        let mut machine = self.lock();
        let answer = machine.acquire(now);
        self.publish(&machine);
        answer
    }

    /// Whether a call would be refused whoever asks: open or forced open. Changes nothing.
    pub(crate) fn refuses(&self, now: impl FnOnce() -> Nanos) -> Option<Denied> {
        match self.read() {
            Word::Closed { .. } | Word::HalfOpen => None,
            Word::ForcedOpen => Some(Denied::FORCED),
            Word::Open(_) => self.still_open(now()),
        }
    }

    /// Hears how a call ended.
    pub(crate) fn settle(
        &self,
        ticket: Ticket,
        heard: Heard,
        now: impl FnOnce() -> Nanos,
        chance: &Chance,
    ) -> Option<Transition> {
        if ticket.probe.is_none() {
            match heard {
                Heard::Success => {
                    self.end_run(ticket.generation);
                    return None;
                }
                Heard::Ignored | Heard::RateLimited { .. } => return None,
                Heard::Failure { .. } | Heard::Held { .. } => (),
            }
        }
        // Before the lock: the clock may be the user's.
        let now = now();
        let mut machine = self.lock();
        self.catch_up(&mut machine, now, chance);
        let change = machine.settle(ticket, heard, now, chance);
        self.publish(&machine);
        change
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Machine) -> T) -> T {
        let mut machine = self.lock();
        let out = change(&mut machine);
        self.publish(&machine);
        out
    }

    pub(crate) fn view(&self, now: Nanos) -> View {
        let mut view = self.lock().view(now);
        if self.run_ended.load(Ordering::Relaxed) == view.generation {
            view.run = 0;
        }
        view
    }

    /// The state, lock-free.
    pub(crate) fn state(&self, now: impl FnOnce() -> Nanos) -> State {
        match self.read() {
            Word::Closed { .. } => State::Closed,
            Word::HalfOpen => State::HalfOpen,
            Word::ForcedOpen => State::ForcedOpen,
            Word::Open(_) if self.still_open(now()).is_some() => State::Open,
            // The open time is over, or the state has just moved on.
            Word::Open(_) => match self.read() {
                Word::Closed { .. } => State::Closed,
                Word::ForcedOpen => State::ForcedOpen,
                Word::HalfOpen | Word::Open(_) => State::HalfOpen,
            },
        }
    }

    /// A success while closed ends the run of failures, without the lock: it leaves the number of
    /// its generation, and the next failure finds it under the lock before it counts.
    ///
    /// `fetch_max`, not `store`: a success of an earlier generation that comes late must neither
    /// end a run of this one nor wipe out the mark of a success that did. While calls succeed the
    /// mark stays and is only read.
    fn end_run(&self, generation: u64) {
        if self.run_ended.load(Ordering::Relaxed) < generation {
            self.run_ended.fetch_max(generation, Ordering::Relaxed);
        }
    }

    /// Tells the machine of successes since the last failure.
    fn catch_up(&self, machine: &mut Machine, now: Nanos, chance: &Chance) {
        let generation = machine.generation();
        // A success that comes between the load and the swap is part of what is told: it was
        // under way together with this failure, and may well have come before it.
        if self.run_ended.load(Ordering::Relaxed) == generation
            && self.run_ended.swap(0, Ordering::Relaxed) == generation
        {
            let ticket = Ticket {
                generation,
                probe: None,
            };
            machine.settle(ticket, Heard::Success, now, chance);
        }
    }

    /// The refusal of an open breaker, lock-free; `None` if the open time is over or the state
    /// has moved on.
    fn still_open(&self, now: Nanos) -> Option<Denied> {
        let word = self.word.load(Ordering::Acquire);
        let Word::Open(reason) = decode(word) else {
            return None;
        };
        let until = self.until.load(Ordering::Acquire);
        // `until` belongs to this word only if the word is still there: another `until` is
        // written only after the word has changed.
        let same = self.word.load(Ordering::Relaxed) == word;
        (same && now < until).then(|| Denied::open(until, reason))
    }

    fn read(&self) -> Word {
        decode(self.word.load(Ordering::Acquire))
    }

    /// Shows what the machine is in. Between two open periods there is another state, so a reader
    /// never sees the end of one with the word of the other.
    fn publish(&self, machine: &Machine) {
        let word = encode(machine);
        if self.word.load(Ordering::Relaxed) == word {
            return;
        }
        if let (_, Some((until, _))) = machine.settled_state() {
            self.until.store(until, Ordering::Release);
        }
        self.word.store(word, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        // Nothing that can panic runs under the lock.
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn encode(machine: &Machine) -> u64 {
    let tag = match machine.settled_state() {
        (State::HalfOpen, _) => HALF_OPEN,
        (State::ForcedOpen, _) => FORCED_OPEN,
        (_, Some((_, reason))) => OPEN
            .iter()
            .find(|(_, r)| *r == reason)
            .map_or(HALF_OPEN, |(tag, _)| *tag),
        (_, None) => CLOSED,
    };
    (machine.generation() << TAG_BITS) | tag
}

fn decode(word: u64) -> Word {
    let tag = word & TAG_MASK;
    match tag {
        CLOSED => Word::Closed {
            generation: word >> TAG_BITS,
        },
        FORCED_OPEN => Word::ForcedOpen,
        _ => OPEN
            .iter()
            .find(|(t, _)| *t == tag)
            .map_or(Word::HalfOpen, |(_, reason)| Word::Open(*reason)),
    }
}
