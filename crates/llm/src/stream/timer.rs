//! One timer for three limits.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_spillway_core::clock;

use super::{Break, StreamLimits};

pin_project! {
    /// Runs while a stream is waited for.
    pub(super) struct Timer {
        limits: StreamLimits,
        sent: Instant,
        // Since when nothing has come, seen when it was first waited for.
        silent: Option<Instant>,
        // Made when there is a first wait.
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Timer {
    pub(super) fn new(limits: StreamLimits, sent: Instant) -> Self {
        Self {
            limits,
            sent,
            silent: None,
            sleep: None,
        }
    }

    /// Something came.
    pub(super) fn heard(self: Pin<&mut Self>) {
        *self.project().silent = None;
    }

    /// Whether the limit of the whole stream has passed, for what is not waited for.
    pub(super) fn is_past_total(&self) -> Option<Break> {
        let limit = self.limits.total?;
        let due = self.sent.checked_add(limit)?;
        (clock::now() > due).then_some(Break::Total(limit))
    }

    /// Nothing is there: ready when a limit runs out. `wanted` says that there was no content yet.
    pub(super) fn poll(self: Pin<&mut Self>, wanted: bool, cx: &mut Context<'_>) -> Poll<Break> {
        let mut this = self.project();
        // Not from the last read: between that and now the caller may have been slow.
        let silent = *this.silent.get_or_insert_with(clock::now);
        let limits = *this.limits;
        let first = limits.first_content.filter(|_| wanted);
        let due = [
            (*this.sent, first, Break::NoContent as fn(_) -> _),
            (*this.sent, limits.total, Break::Total as fn(_) -> _),
            (silent, limits.idle, Break::Idle as fn(_) -> _),
        ];
        // A limit too far away to be a time is none.
        let due = due.into_iter().filter_map(|(from, limit, why)| {
            let limit = limit?;
            Some((from.checked_add(limit)?, why(limit)))
        });
        let Some((due, why)) = due.min_by_key(|(due, _)| *due) else {
            return Poll::Pending;
        };
        loop {
            match this.sleep.as_mut().as_pin_mut() {
                None => this.sleep.set(Some(sleep_until(due))),
                // A timer that is early is let run, and set anew only when it fires: most reads come
                // in time, and each would have moved it.
                Some(sleep) if sleep.deadline() > due || sleep.is_elapsed() => {
                    if sleep.is_elapsed() && sleep.deadline() >= due {
                        return Poll::Ready(why);
                    }
                    sleep.reset(due);
                }
                Some(_) => {}
            }
            let Some(sleep) = this.sleep.as_mut().as_pin_mut() else {
                return Poll::Pending;
            };
            ready!(sleep.poll(cx));
        }
    }
}
