//! What happens to a breaker, for whoever wants to know.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tower_spillway_core::TargetName;

use crate::state::{State, TripReason};

/// A change of state, with the counts that caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The target's name; `None` for the breaker of calls that name none.
    pub target: Option<TargetName>,
    /// The state before.
    pub from: State,
    /// The state from now on.
    pub to: State,
    /// The generation that begins.
    pub generation: u64,
    /// What opened it; `None` where it is neither open nor half-open.
    pub reason: Option<TripReason>,
    /// How long it will be open; `None` if it is not open, or for as long as somebody wants.
    pub open_for: Option<Duration>,
    /// The calls that the rule looked back on; for what was half-open the probes that ended.
    pub calls: u64,
    /// Those among them that were counted: failed, or slow.
    pub bad: u64,
}

/// Called with each event. See [`BreakerConfig::on_event`](crate::BreakerConfig::on_event).
pub(crate) type Callback = Arc<dyn Fn(&Event) + Send + Sync>;

/// The events of one breaker, from the moment it was made. See
/// [`Breaker::events`](crate::Breaker::events).
///
/// It holds so many events; when more come the oldest is dropped and counted
/// ([`missed`](Self::missed)). It ends when the breaker is gone.
pub struct Events(Arc<Queue>);

#[derive(Default)]
pub(crate) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    most: usize,
    events: VecDeque<Event>,
    missed: u64,
    ended: bool,
    waker: Option<Waker>,
}

impl Events {
    /// The next event; `None` when the breaker is gone.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.lock().events.pop_front()
    }

    /// Polls for the next event; `None` when the breaker is gone.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut waiting = self.0.lock();
        match waiting.events.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if waiting.ended => Poll::Ready(None),
            None => {
                waiting.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// How many events were dropped because nobody took them in time.
    pub fn missed(&self) -> u64 {
        self.0.lock().missed
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.0.lock();
        f.debug_struct("Events")
            .field("waiting", &waiting.events.len())
            .field("missed", &waiting.missed)
            .finish()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, event: Event) {
        let mut waiting = self.lock();
        if waiting.events.len() >= waiting.most {
            waiting.events.pop_front();
            waiting.missed = waiting.missed.saturating_add(1);
        }
        waiting.events.push_back(event);
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn end(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Who listens to a breaker.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Weak<Queue>>>);

impl Listeners {
    pub(crate) fn listen(&self, most: usize) -> Events {
        let queue = Queue::default();
        queue.lock().most = most.max(1);
        let queue = Arc::new(queue);
        let mut listeners = self.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&queue));
        Events(queue)
    }

    pub(crate) fn tell(&self, event: &Event) {
        for queue in self.alive() {
            queue.put(event.clone());
        }
    }

    /// Out of the lock: a waker may do anything.
    fn alive(&self) -> Vec<Arc<Queue>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        for queue in self.alive() {
            queue.end();
        }
    }
}
