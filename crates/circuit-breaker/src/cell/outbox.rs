//! What happened and was not said yet.

use std::collections::VecDeque;

use crate::machine::Transition;

/// Filled under the lock of the machine, so that it is in order; emptied by one at a time, so that
/// it stays so.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Transition>,
    delivering: bool,
}

impl Outbox {
    pub(super) fn put(&mut self, transition: Transition) {
        self.waiting.push_back(transition);
    }

    /// The first to say, unless somebody is at it.
    pub(super) fn begin(&mut self) -> Option<Transition> {
        if self.delivering {
            return None;
        }
        let first = self.waiting.pop_front();
        self.delivering = first.is_some();
        first
    }

    /// The one after; after the last nobody is at it.
    pub(super) fn next(&mut self) -> Option<Transition> {
        let next = self.waiting.pop_front();
        self.delivering = next.is_some();
        next
    }

    pub(super) fn end(&mut self) {
        self.delivering = false;
    }
}
