//! What the handle and the connections of a fake vendor share.

use std::{
    collections::VecDeque,
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, header};
use tokio::time::Instant;
use tower_spillway_core::{Chance, clock};

use super::{
    behaviour::Behaviour,
    chat::Chat,
    log::{Did, Entry, KeyLabel},
    vendor::Vendor,
};

/// A key, whose it is, and whether it is accepted.
pub(super) struct Key {
    pub(super) label: Arc<str>,
    pub(super) key: String,
    pub(super) accepted: bool,
}

pub(super) struct State {
    pub(super) vendor: Vendor,
    pub(super) keys: Vec<Key>,
    pub(super) chance: Chance,
    pub(super) started: Instant,
    pub(super) connections: AtomicUsize,
    script: Mutex<Script>,
    log: Mutex<Vec<Entry>>,
}

pub(super) struct Script {
    pub(super) always: Behaviour,
    pub(super) next: VecDeque<Behaviour>,
    pub(super) faults: Faults,
    pub(super) latency: RangeInclusive<Duration>,
    pub(super) stream: Duration,
    pub(super) words: Option<usize>,
}

/// What is done instead, now and then.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) percent: u64,
    pub(super) of: Vec<Behaviour>,
}

impl Faults {
    fn draw(&self, chance: &Chance) -> Option<Behaviour> {
        if chance.up_to(99) >= self.percent {
            return None;
        }
        let last = u64::try_from(self.of.len().checked_sub(1)?).ok()?;
        let drawn = usize::try_from(chance.up_to(last)).ok()?;
        self.of.get(drawn).copied()
    }
}

impl State {
    pub(super) fn new(
        vendor: Vendor,
        keys: Vec<Key>,
        chance: Chance,
        latency: RangeInclusive<Duration>,
    ) -> Self {
        Self {
            vendor,
            keys,
            chance,
            started: clock::now(),
            connections: AtomicUsize::new(0),
            script: Mutex::new(Script {
                always: Behaviour::Answer,
                next: VecDeque::new(),
                faults: Faults::default(),
                latency,
                stream: Duration::ZERO,
                words: None,
            }),
            log: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to do with the next request, and after how long.
    pub(super) fn turn(&self) -> (Behaviour, Duration) {
        let mut script = self.script();
        let asked_for = script.next.pop_front();
        let behaviour = asked_for.or_else(|| script.faults.draw(&self.chance));
        let behaviour = behaviour.unwrap_or(script.always);
        let (least, most) = (*script.latency.start(), *script.latency.end());
        drop(script);
        let latency = least + self.chance.duration_up_to(most.saturating_sub(least));
        match behaviour {
            Behaviour::Slow { factor } => (behaviour, latency.saturating_mul(factor)),
            _ => (behaviour, latency),
        }
    }

    /// Whose key is in the headers.
    pub(super) fn whose(&self, headers: &HeaderMap) -> KeyLabel {
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return KeyLabel::None;
        };
        let key = value
            .to_str()
            .ok()
            .and_then(|value| value.strip_prefix("Bearer "));
        let known = key.and_then(|key| self.keys.iter().find(|k| k.key == key));
        match known {
            Some(k) if k.accepted => KeyLabel::Own(Arc::clone(&k.label)),
            Some(k) => KeyLabel::Foreign(Arc::clone(&k.label)),
            None => KeyLabel::Unknown,
        }
    }
}

/// An open connection, counted while it is alive.
pub(super) struct Connected(Arc<State>);

impl Connected {
    pub(super) fn new(state: &Arc<State>) -> Self {
        state.connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(state))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request on its way through the log. Dropped without a word, the caller left.
pub(super) struct Writing {
    state: Arc<State>,
    index: usize,
    arrived: Instant,
    did: Did,
}

impl Writing {
    pub(super) fn arrived(state: &Arc<State>, key: KeyLabel, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
        let arrived = clock::now();
        let mut log = state.log();
        log.push(Entry {
            at: arrived.saturating_duration_since(state.started),
            took: None,
            key,
            model: None,
            id: text("x-attempt-id"),
            idempotency_key: text("idempotency-key"),
            input_tokens: 0,
            output_tokens: 0,
            did: Did::Waiting,
        });
        Self {
            index: log.len() - 1,
            state: Arc::clone(state),
            arrived,
            did: Did::Left,
        }
    }

    pub(super) fn asks(&self, chat: &Chat) {
        if let Some(entry) = self.state.log().get_mut(self.index) {
            entry.model = Some(chat.model.clone());
            entry.input_tokens = chat.asked();
        }
    }

    pub(super) fn told(&self, chat: &Chat) {
        if let Some(entry) = self.state.log().get_mut(self.index) {
            entry.output_tokens = chat.told();
        }
    }

    /// What it will have done once it is dropped.
    pub(super) fn will(&mut self, did: Did) {
        self.did = did;
    }

    pub(super) fn did(mut self, did: Did) {
        self.did = did;
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let took = clock::now().saturating_duration_since(self.arrived);
        if let Some(entry) = self.state.log().get_mut(self.index) {
            entry.took = Some(took);
            entry.did = self.did;
        }
    }
}
