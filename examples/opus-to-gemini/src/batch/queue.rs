//! Which item is next, and when.

use std::{cmp::Reverse, collections::BinaryHeap, collections::VecDeque, time::Duration};

use tokio::time::Instant;
use tower_spillway_core::Chance;

use super::Item;
use crate::config::Batch;

/// An item with its past.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) item: Item,
    pub(super) requeues: u32,
}

/// Items that wait: those that were never tried, and those that come back.
#[derive(Debug)]
pub(super) struct Queue {
    fresh: VecDeque<Entry>,
    /// By their time; the number keeps those of one time in order.
    back: BinaryHeap<Reverse<(Instant, usize)>>,
    waiting: std::collections::HashMap<usize, Entry>,
    paused: Option<Instant>,
    /// Nobody is known to serve: one item at a time finds out.
    scouting: bool,
}

/// What to do now.
#[derive(Debug)]
pub(super) enum Next {
    Start(Box<Entry>),
    /// Nothing before this.
    At(Instant),
    /// Nothing until something that is out ends.
    Wait,
    /// Nothing is left, and nothing is out.
    Done,
}

impl Queue {
    pub(super) fn new(items: impl IntoIterator<Item = Item>) -> Self {
        let entry = |item| Entry { item, requeues: 0 };
        Self {
            fresh: items.into_iter().map(entry).collect(),
            back: BinaryHeap::new(),
            waiting: std::collections::HashMap::new(),
            paused: None,
            scouting: false,
        }
    }

    /// What to do with so many out.
    pub(super) fn next(&mut self, now: Instant, out: usize, most: usize) -> Next {
        if self.fresh.is_empty() && self.back.is_empty() {
            return if out == 0 { Next::Done } else { Next::Wait };
        }
        let most = if self.scouting { 1 } else { most };
        if out >= most {
            return Next::Wait;
        }
        if let Some(until) = self.paused.filter(|until| now < *until) {
            return Next::At(until);
        }
        // Those that come back are older.
        let due = self.back.peek().map(|Reverse((at, _))| *at);
        let ripe = due.filter(|at| *at <= now).and_then(|_| self.back.pop());
        let ripe = ripe.and_then(|Reverse((_, line))| self.waiting.remove(&line));
        if let Some(entry) = ripe {
            return Next::Start(Box::new(entry));
        }
        match (self.fresh.pop_front(), due) {
            (Some(entry), _) => Next::Start(Box::new(entry)),
            (None, Some(at)) => Next::At(at),
            (None, None) => Next::Wait,
        }
    }

    /// Puts an item back, not before `at`.
    pub(super) fn put_back(&mut self, entry: Entry, at: Instant) {
        let line = entry.item.line;
        self.back.push(Reverse((at, line)));
        self.waiting.insert(line, entry);
    }

    /// Everybody refuses: starts nothing before `until`, then one at a time.
    pub(super) fn pause(&mut self, until: Instant) {
        self.paused = Some(self.paused.map_or(until, |before| before.max(until)));
        self.scouting = true;
    }

    /// Somebody serves.
    pub(super) fn served(&mut self) {
        self.scouting = false;
        self.paused = None;
    }
}

/// How long an item stays out that was put back so often: what it was told at least, and a share
/// of a ceiling that doubles.
pub(super) fn delay(
    config: &Batch,
    chance: &Chance,
    requeues: u32,
    told: Option<Duration>,
) -> Duration {
    let doubled = 1_u32
        .checked_shl(requeues.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let ceiling = config
        .requeue_base
        .saturating_mul(doubled)
        .min(config.requeue_cap);
    let least = Duration::from_millis(1);
    let own = chance.duration_up_to(ceiling).max(least);
    told.unwrap_or_default().saturating_add(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::items;

    fn start(queue: &mut Queue, now: Instant, out: usize) -> Entry {
        match queue.next(now, out, 8) {
            Next::Start(entry) => *entry,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_comes_back_waits_for_its_time_and_then_goes_first() {
        let mut queue = Queue::new(items("\"a\"\n\"b\"\n\"c\""));
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let first = start(&mut queue, now, 0);
        queue.put_back(first, now + second);
        assert_eq!(start(&mut queue, now, 0).item.line, 2);
        assert_eq!(start(&mut queue, now + second, 1).item.line, 1);
        assert_eq!(start(&mut queue, now + second, 2).item.line, 3);
        assert!(matches!(queue.next(now, 2, 8), Next::Wait));
        assert!(matches!(queue.next(now, 0, 8), Next::Done));
    }

    #[test]
    fn while_all_refuse_nothing_starts_and_then_one_at_a_time() {
        let mut queue = Queue::new(items("\"a\"\n\"b\"\n\"c\""));
        let now = Instant::now();
        let until = now + Duration::from_secs(30);
        queue.pause(until);
        queue.pause(now);
        assert!(matches!(queue.next(now, 0, 8), Next::At(at) if at == until));
        start(&mut queue, until, 0);
        assert!(matches!(queue.next(until, 1, 8), Next::Wait));
        queue.served();
        start(&mut queue, until, 1);
    }

    #[test]
    fn delays_double_up_to_their_cap_and_add_to_what_was_told() {
        let config = crate::config::Config::batch().batch;
        let most = Chance::fixed(u64::MAX);
        let secs = |n| Duration::from_secs(n);
        for (requeues, ceiling) in [(1, 1), (2, 2), (6, 32), (7, 60), (40, 60)] {
            assert_eq!(delay(&config, &most, requeues, None), secs(ceiling));
            let told = delay(&config, &Chance::fixed(0), requeues, Some(secs(9)));
            assert_eq!(told, secs(9) + Duration::from_millis(1));
        }
    }
}
