//! From the first content to the end.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tower_spillway_core::{BoxError, Reading, clock};

use super::{Flow, Input, note_usage};
use crate::stream::{
    Break,
    dialect::Told,
    error::StreamBroken,
    event::InBand,
    layer::Guard,
    watch::{Fault, Place, Watch},
};

impl<B> Flow<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    /// The next frame for the caller, who has or will have a part of the answer.
    pub(in crate::stream) fn poll_given(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Frame<Bytes>>> {
        loop {
            let this = self.as_mut().project();
            if *this.whole > 0 {
                let whole = std::mem::take(this.whole);
                let events = this.held.split_to(whole).freeze();
                return Poll::Ready(Some(Frame::data(events)));
            }
            if let Some(last) = this.last.take() {
                return Poll::Ready(Some(Frame::data(last)));
            }
            if *this.over {
                return Poll::Ready(this.trailers.take().map(Frame::trailers));
            }
            if !this.rest.is_empty() {
                match self.as_mut().given_events() {
                    Some(events) => return Poll::Ready(Some(Frame::data(events))),
                    None => continue,
                }
            }
            match ready!(self.as_mut().poll_input(cx)) {
                Input::Data(data) if data.is_empty() => {
                    return Poll::Ready(Some(Frame::data(data)));
                }
                Input::Data(data) => *self.as_mut().project().rest = data,
                input => self.as_mut().ended(input),
            }
        }
    }

    /// What may be given on of the frame that is there: whole events. Their bytes are those of the
    /// frame, not copies, where it begins and ends with an event.
    fn given_events(mut self: Pin<&mut Self>) -> Option<Bytes> {
        let this = self.as_mut().project();
        let (mut read, mut whole, mut fault) = (0, 0, None);
        while let Some(more) = this.rest.get(read..).filter(|more| !more.is_empty()) {
            let (taken, said) = this.watch.read(more);
            read = read.saturating_add(taken);
            match said {
                Ok(Place::Between) => whole = read,
                Ok(Place::Inside) => {}
                Err(found) => {
                    if is_visible(&found, this.watch, this.guard) {
                        whole = read;
                    }
                    fault = Some(found);
                    break;
                }
            }
        }
        note_usage(this.watch, this.usage);
        let mut events = this.rest.split_to(whole);
        if !events.is_empty() && !this.held.is_empty() {
            this.held.extend_from_slice(&events);
            events = this.held.split().freeze();
        }
        let part = std::mem::take(this.rest);
        match fault {
            Some(fault) => self.broke(fault),
            None => {
                this.held.extend_from_slice(&part);
                if this.watch.is_done() {
                    self.is_whole();
                }
            }
        }
        (!events.is_empty()).then_some(events)
    }

    /// The upstream gives no more.
    fn ended(mut self: Pin<&mut Self>, input: Input) {
        let this = self.as_mut().project();
        let broken = match input {
            _ if this.watch.is_complete() => None,
            Input::Data(_) => return,
            Input::End => match this.watch.end() {
                Ok(()) => None,
                Err(fault) => return self.broke(fault),
            },
            Input::Failed(error) => Some(StreamBroken::failed(error)),
            Input::Late(why) => Some(StreamBroken::new(why)),
        };
        match broken {
            None => {
                // What follows the last event is given on as it came.
                *this.whole = this.held.len();
                *this.over = true;
                self.is_whole();
            }
            Some(broken) => self.close(broken.why(), broken.reading()),
        }
    }

    /// An event says that it is broken, or is.
    fn broke(self: Pin<&mut Self>, fault: Fault) {
        match fault {
            Fault::Broke(why) => {
                let reading = StreamBroken::new(why).reading();
                self.close(why, reading);
            }
            Fault::InBand(error) => {
                let this = self.as_ref();
                let visible = is_visible_in_band(&error, &this.watch, &this.guard);
                // The head was given out long ago; what it said of rate limits was of that time.
                let reading = this.judge(&error, &HeaderMap::new()).reading;
                match visible {
                    true => self.finish(None, reading),
                    false => self.close(Break::ErrorEvent, reading),
                }
            }
        }
    }

    /// Tells the caller of a break.
    fn close(self: Pin<&mut Self>, why: Break, reading: Reading) {
        let watch = &self.watch;
        let dialect = watch.dialect().unwrap_or(self.guard.dialect);
        let event = dialect.error_event(&Told::of(why), watch.number());
        let event = match watch.is_inside_given() {
            // Ends the event that was begun, or the caller would read both as one.
            true => [b"\n\n", &event[..]].concat().into(),
            false => event,
        };
        self.finish(Some(event), reading);
    }

    fn finish(self: Pin<&mut Self>, last: Option<Bytes>, reading: Reading) {
        let mut this = self.project();
        tracing::warn!(
            error.type = reading.class().as_str(),
            spillway.reason = reading.reason(),
            "a stream broke after its caller was given a part of it"
        );
        if let Some(ledger) = this.ledger {
            ledger.end_body(&reading, clock::now());
        }
        this.end.set(reading);
        // It ends in an error: what would have followed must not make it look complete.
        this.body.set(None);
        this.held.clear();
        *this.trailers = None;
        *this.last = last;
        *this.over = true;
    }

    /// Whether the caller has all there is.
    pub(in crate::stream) fn is_over(&self) -> bool {
        self.over && self.whole == 0 && self.last.is_none() && self.trailers.is_none()
    }
}

fn is_visible(fault: &Fault, watch: &Watch, guard: &Guard) -> bool {
    match fault {
        Fault::InBand(error) => is_visible_in_band(error, watch, guard),
        Fault::Broke(_) => false,
    }
}

/// Whether a caller who reads this dialect sees an error in the vendor's own event.
fn is_visible_in_band(error: &InBand, watch: &Watch, guard: &Guard) -> bool {
    let dialect = watch.dialect().unwrap_or(guard.dialect);
    error.visible_in.contains(&dialect)
}
