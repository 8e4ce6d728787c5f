//! A body that comes as a script says: in pieces, late, broken off.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_spillway_core::BoxError;

use super::{log::Did, state::Writing};

/// One step of a body.
pub(super) enum Step {
    Data(Bytes),
    Wait(Duration),
    /// An error, at which the server closes the connection.
    Break,
    /// Nothing more ever comes.
    Hang,
}

pin_project! {
    /// A body that comes as a script says.
    pub(super) struct Scripted {
        steps: VecDeque<Step>,
        #[pin]
        pause: Option<Sleep>,
        // Written to the log when the body ends or is dropped.
        entry: Writing,
        // What it did, once its last step was reached; before that the caller left.
        does: Did,
    }
}

/// An error right behind the data would keep the server from writing the data.
pub(super) const TO_WRITE: Duration = Duration::from_millis(5);

impl Scripted {
    /// These steps, for the log to say that it did so once they are done.
    pub(super) fn new(steps: impl IntoIterator<Item = Step>, entry: Writing, does: Did) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            pause: None,
            entry,
            does,
        }
    }

    /// The pieces, spread evenly over a time; several at once where it is too short for each.
    pub(super) fn spread(pieces: &[Bytes], over: Duration, entry: Writing, does: Did) -> Self {
        let most = usize::try_from(over.as_millis() / LEAST.as_millis()).unwrap_or(usize::MAX);
        let at_once = pieces.len().div_ceil(most.max(1)).max(1);
        let pieces: Vec<Bytes> = pieces.chunks(at_once).map(|p| p.concat().into()).collect();
        let gaps = u32::try_from(pieces.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let gap = over / gaps.max(1);
        let steps = pieces.into_iter().enumerate().flat_map(|(n, piece)| {
            let wait = (n > 0).then_some(Step::Wait(gap));
            wait.into_iter().chain([Step::Data(piece)])
        });
        Self::new(steps, entry, does)
    }
}

/// Timers are no finer than a millisecond, and a demo on a faster clock has many of them.
const LEAST: Duration = Duration::from_millis(10);

impl Body for Scripted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        loop {
            if let Some(pause) = this.pause.as_mut().as_pin_mut() {
                ready!(pause.poll(cx));
                this.pause.set(None);
            }
            match this.steps.pop_front() {
                Some(Step::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Step::Wait(time)) => this.pause.set(Some(sleep(time))),
                Some(Step::Break) => {
                    this.entry.will(*this.does);
                    let error = io::Error::from(io::ErrorKind::BrokenPipe);
                    return Poll::Ready(Some(Err(error.into())));
                }
                Some(Step::Hang) => {
                    this.entry.will(*this.does);
                    this.steps.push_front(Step::Hang);
                    return Poll::Pending;
                }
                None => {
                    this.entry.will(*this.does);
                    return Poll::Ready(None);
                }
            }
        }
    }
}
