//! A time limit that costs nothing until somebody waits for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::clock;

pin_project! {
    /// Sleeps until a time. The sleep is made when it is first polled: a call that is answered at
    /// once makes none.
    #[derive(Debug)]
    pub(crate) struct Timer {
        at: Option<Instant>,
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Timer {
    /// Over at this time; never without one.
    pub(crate) fn new(at: Option<Instant>) -> Self {
        Self { at, sleep: None }
    }

    /// Its time; `None` without one, and once it is over.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Whether its time has passed, for what is not waited for.
    pub(crate) fn is_past(&self) -> bool {
        self.at.is_some_and(|at| clock::now() > at)
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(at) = *this.at else {
            return Poll::Pending;
        };
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(at)));
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(cx));
        }
        // Over, once and for all; what held a place in the runtime's wheel goes.
        this.sleep.set(None);
        *this.at = None;
        Poll::Ready(())
    }
}
