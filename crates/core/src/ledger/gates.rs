//! The gates that a call entered: its own, and those of its legs.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    leg::Leg,
    record::{Record, numbers},
};
use crate::gate::Gate;

/// A gate that was entered.
pub(super) struct Entered {
    gate: Arc<dyn Gate>,
    /// For this leg; for the whole call without one.
    leg: Option<u32>,
    /// It was told of an attempt since it was entered.
    told: bool,
    /// A layer below the driver of the leg entered it: the driver leaves it.
    guest: bool,
}

/// A gate to whom something is to be said, once the lock is gone.
pub(super) struct Due {
    pub(super) gate: Arc<dyn Gate>,
    pub(super) tell: Tell,
    /// The driver is to leave it.
    pub(super) leave: bool,
}

/// Of an attempt that ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tell {
    Nothing,
    /// Of the first that it is told of.
    First,
    Further,
}

pub(super) type Dues = SmallVec<[Due; 1]>;

impl Record {
    /// Registers a gate for a leg or for the call; `false` if it is there already.
    pub(super) fn add_gate(&mut self, leg: Option<u32>, gate: &Arc<dyn Gate>) -> bool {
        let there = |e: &Entered| Arc::ptr_eq(&e.gate, gate) && e.concerns(leg, &self.legs);
        if self.gates.iter().any(there) {
            return false;
        }
        self.gates.push(Entered {
            gate: Arc::clone(gate),
            leg,
            told: false,
            guest: false,
        });
        true
    }

    /// Leaves it to the driver of a leg to leave a gate.
    pub(super) fn hand_over_gate(&mut self, leg: u32, gate: &Arc<dyn Gate>) {
        let mut gates = self.gates.iter_mut();
        if let Some(entered) = gates.find(|e| e.leg == Some(leg) && Arc::ptr_eq(&e.gate, gate)) {
            entered.guest = true;
        }
    }

    /// The gates of a leg, of the legs around it and of the call, each once.
    pub(super) fn gates_of(&self, leg: u32) -> SmallVec<[Arc<dyn Gate>; 2]> {
        let mut gates = SmallVec::<[Arc<dyn Gate>; 2]>::new();
        for entered in &self.gates {
            let twice = gates.iter().any(|g| Arc::ptr_eq(g, &entered.gate));
            if entered.concerns(Some(leg), &self.legs) && !twice {
                gates.push(Arc::clone(&entered.gate));
            }
        }
        gates
    }

    /// Who is to be told of an attempt on this leg, if it is to `tell`, and what its driver is to
    /// leave, if it `ends`.
    pub(super) fn gates_due(&mut self, leg: u32, tell: bool, ends: bool) -> Dues {
        let mut dues = Dues::new();
        for entered in &mut self.gates {
            let twice = dues.iter().any(|due| Arc::ptr_eq(&due.gate, &entered.gate));
            let tell = match tell && !twice && entered.concerns(Some(leg), &self.legs) {
                false => Tell::Nothing,
                true if std::mem::replace(&mut entered.told, true) => Tell::Further,
                true => Tell::First,
            };
            let leave = ends && entered.leg == Some(leg) && std::mem::take(&mut entered.guest);
            if leave || tell != Tell::Nothing {
                let gate = Arc::clone(&entered.gate);
                dues.push(Due { gate, tell, leave });
            }
        }
        dues
    }
}

impl Entered {
    /// Whether it is one of a leg, of a leg around it or of the call.
    fn concerns(&self, leg: Option<u32>, legs: &[Leg]) -> bool {
        self.leg.is_none() || numbers(leg, legs).any(|leg| self.leg == Some(leg))
    }
}
