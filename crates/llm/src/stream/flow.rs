//! A stream on its way: held, then given on event by event.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_spillway_core::{BodyEnd, BoxError, Class, Ledger, Reading, clock};

use super::{
    Break, Commit, StreamLimits, StreamUsage,
    dialect::Told,
    error::StreamBroken,
    event::InBand,
    fault::{self, Verdict},
    layer::Guard,
    timer::Timer,
    watch::{Fault, Place, Watch},
};

/// What a stream was asked under.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) guard: Arc<Guard>,
    pub(super) limits: Option<StreamLimits>,
    pub(super) ledger: Option<Ledger>,
    pub(super) sent: Instant,
}

/// How a stream ended that nobody had anything of yet.
#[derive(Debug)]
pub(super) enum Failed {
    InBand(InBand),
    Broken(StreamBroken),
}

/// What came of the upstream.
enum Input {
    Data(Bytes),
    End,
    Failed(BoxError),
    Late(Break),
}

pin_project! {
    /// A stream on its way.
    pub(super) struct Flow<B> {
        // None once it has ended or was given up: dropping it cancels it.
        #[pin]
        body: Option<B>,
        #[pin]
        timer: Timer,
        watch: Watch,
        // Not given out yet: whole events, then a part of one.
        held: BytesMut,
        // How much of `held` is whole events.
        whole: usize,
        // Of the last frame, not looked at yet.
        rest: Bytes,
        trailers: Option<HeaderMap>,
        // Told to the caller last.
        last: Option<Bytes>,
        over: bool,
        empties: usize,
        guard: Arc<Guard>,
        ledger: Option<Ledger>,
        end: BodyEnd,
        usage: StreamUsage,
    }
}

/// A body without data in its frames would be read for ever.
const MOST_EMPTY: usize = 1024;

impl<B> Flow<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    pub(super) fn new(body: B, terms: Terms) -> Self {
        let limits = terms.limits.unwrap_or(terms.guard.limits);
        Self {
            body: Some(body),
            timer: Timer::new(limits, terms.sent),
            watch: Watch::new(terms.guard.most_held),
            held: BytesMut::new(),
            whole: 0,
            rest: Bytes::new(),
            trailers: None,
            last: None,
            over: false,
            empties: 0,
            guard: terms.guard,
            ledger: terms.ledger,
            end: BodyEnd::new(),
            usage: StreamUsage::default(),
        }
    }

    pub(super) fn end(&self) -> &BodyEnd {
        &self.end
    }

    pub(super) fn usage(&self) -> &StreamUsage {
        &self.usage
    }

    /// What an error inside the stream means, given the headers that it came under.
    pub(super) fn judge(&self, error: &InBand, headers: &HeaderMap) -> Verdict {
        let guard = &self.guard;
        let mut verdict = fault::judge(&guard.rules, &guard.hints, headers, &error.body);
        if self.watch.has_content() {
            // Whatever its name says: there was an answer already.
            verdict.reading = verdict.reading.unprocessed(false);
        }
        verdict
    }

    /// Reads until the stream may be given out.
    pub(super) fn poll_hold(
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
        let this = self.project();
        if let Some(ledger) = this.ledger.take() {
            if this.watch.has_content() {
                ledger.saw_first_content(clock::now());
            }
        }
        if this.watch.is_done() {
            this.end.set(Reading::new(Class::Success));
        }
    }

    /// Nothing was given out: the upstream is dropped at once.
    fn give_up(self: Pin<&mut Self>, failed: Failed) -> Failed {
        let mut this = self.project();
        this.body.set(None);
        *this.over = true;
        failed
    }

    /// The next of what the upstream gives.
    fn poll_input(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Input> {
        let mut this = self.project();
        loop {
            let Some(body) = this.body.as_mut().as_pin_mut() else {
                return Poll::Ready(Input::End);
            };
            let Poll::Ready(frame) = body.poll_frame(cx) else {
                let wanted = !this.watch.has_begun();
                let why = ready!(this.timer.as_mut().poll(wanted, cx));
                this.body.set(None);
                return Poll::Ready(Input::Late(why));
            };
            this.timer.as_mut().heard();
            return Poll::Ready(match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(mut data) => Input::Data(data.copy_to_bytes(data.remaining())),
                    Err(frame) => {
                        *this.trailers = frame.into_trailers().ok();
                        continue;
                    }
                },
                None => {
                    this.body.set(None);
                    Input::End
                }
                Some(Err(error)) => {
                    this.body.set(None);
                    Input::Failed(error.into())
                }
            });
        }
    }

    /// The next frame for the caller, who has or will have a part of the answer.
    pub(super) fn poll_given(
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
                    this.end.set(Reading::new(Class::Success));
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
                this.end.set(Reading::new(Class::Success));
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
        this.end.set(reading);
        // It ends in an error: what would have followed must not make it look complete.
        this.body.set(None);
        this.held.clear();
        *this.trailers = None;
        *this.last = last;
        *this.over = true;
    }

    /// Whether the caller has all there is.
    pub(super) fn is_over(&self) -> bool {
        self.over && self.whole == 0 && self.last.is_none() && self.trailers.is_none()
    }
}

fn note_usage(watch: &Watch, usage: &StreamUsage) {
    if let Some(counts) = watch.usage() {
        usage.set(counts);
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

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::InBand(error) => Self::InBand(error),
            Fault::Broke(why) => Self::Broken(StreamBroken::new(why)),
        }
    }
}
