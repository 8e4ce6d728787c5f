//! Until there is something to give out.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::Body;
use tower_spillway_core::{BoxError, clock};

use super::{Failed, Flow, Input, note_usage};
use crate::stream::{
    Break, Commit,
    error::StreamBroken,
    watch::{Fault, Place},
};

/// A body without data in its frames would be read for ever.
const MOST_EMPTY: usize = 1024;

impl<B> Flow<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    /// Reads until the stream may be given out.
    pub(in crate::stream) fn poll_hold(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failed>> {
        loop {
            while !self.rest.is_empty() {
                match self.as_mut().hold_event() {
                    Ok(true) => {
                        self.commit();
                        return Poll::Ready(Ok(()));
                    }
                    Ok(false) => {}
                    Err(fault) => return Poll::Ready(Err(self.give_up(fault.into()))),
                }
            }
            let failed = match ready!(self.as_mut().poll_input(cx)) {
                Input::Data(data) => {
                    let this = self.as_mut().project();
                    if data.is_empty() {
                        *this.empties = this.empties.saturating_add(1);
                        if *this.empties > MOST_EMPTY {
                            let most = this.guard.most_held;
                            let broken = StreamBroken::new(Break::Preamble(most));
                            return Poll::Ready(Err(self.give_up(Failed::Broken(broken))));
                        }
                    }
                    *this.rest = data;
                    continue;
                }
                // Whatever ends it: the answer is complete.
                _ if self.watch.is_complete() => None,
                Input::End => match self.as_mut().project().watch.end() {
                    Ok(()) => None,
                    Err(fault) => Some(fault.into()),
                },
                Input::Failed(error) => Some(Failed::Broken(StreamBroken::failed(error))),
                Input::Late(why) => Some(Failed::Broken(StreamBroken::new(why))),
            };
            return Poll::Ready(match failed {
                None => {
                    self.commit();
                    Ok(())
                }
                Some(failed) => Err(self.give_up(failed)),
            });
        }
    }

    /// Reads one event of what is there; `true` if the stream may be given out.
    fn hold_event(self: Pin<&mut Self>) -> Result<bool, Fault> {
        let this = self.project();
        let (taken, said) = this.watch.read(this.rest);
        this.held.extend_from_slice(&this.rest.split_to(taken));
        if said? == Place::Between {
            *this.whole = this.held.len();
        }
        note_usage(this.watch, this.usage);
        let watch = &*this.watch;
        let (ready, most, why) = match this.guard.commit {
            Commit::FirstContent => (
                watch.has_begun(),
                this.guard.most_held,
                Break::Preamble as fn(_) -> _,
            ),
            Commit::Complete if !watch.has_begun() => {
                (false, this.guard.most_held, Break::Preamble as fn(_) -> _)
            }
            Commit::Complete => (
                watch.is_done(),
                this.guard.most_answer,
                Break::TooLong as fn(_) -> _,
            ),
        };
        match ready {
            true => Ok(true),
            false if *this.whole > most => Err(Fault::Broke(why(most))),
            false => Ok(false),
        }
    }

    fn commit(self: Pin<&mut Self>) {
        if let Some(ledger) = &self.ledger {
            if self.watch.has_content() {
                ledger.saw_first_content(clock::now());
            }
        }
        if self.watch.is_done() {
            self.is_whole();
        }
    }

    /// Nothing was given out: the upstream is dropped at once.
    fn give_up(self: Pin<&mut Self>, failed: Failed) -> Failed {
        let mut this = self.project();
        this.body.set(None);
        *this.over = true;
        failed
    }
}
