//! A stream on its way: held, then given on event by event.

mod given;
mod hold;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_spillway_core::{BodyEnd, BoxError, Class, Ledger, Reading, TargetName};

use super::{
    Break, StreamLimits, StreamUsage,
    error::StreamBroken,
    event::InBand,
    fault::{self, Verdict},
    layer::Guard,
    timer::Timer,
    watch::{Fault, Watch},
};

/// What a stream was asked under.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) guard: Arc<Guard>,
    pub(super) limits: Option<StreamLimits>,
    pub(super) ledger: Option<Ledger>,
    pub(super) sent: Instant,
}

impl Terms {
    pub(super) fn target(&self) -> Option<&TargetName> {
        self.ledger.as_ref().and_then(Ledger::target)
    }
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

    /// What an error inside the stream means, given the headers that it came under. Of a target that
    /// serves nobody there is a warning.
    pub(super) fn judge(&self, error: &InBand, headers: &HeaderMap) -> Verdict {
        let guard = &self.guard;
        let mut verdict = fault::judge(&guard.rules, &guard.hints, headers, &error.body);
        if verdict.ruling.class() == Class::TargetDown {
            let status = verdict.status.as_u16();
            guard.alarms.raise(self.target(), &verdict.ruling, status);
        }
        if self.watch.has_content() {
            // Whatever its name says: there was an answer already.
            verdict.reading = verdict.reading.unprocessed(false);
        }
        verdict
    }

    fn target(&self) -> Option<&TargetName> {
        self.ledger.as_ref().and_then(Ledger::target)
    }

    /// It is whole, so its target serves.
    fn is_whole(&self) {
        self.guard.alarms.succeeded(self.target());
        self.end.set(Reading::new(Class::Success));
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
            // After the last event only the end is waited for, and not for ever.
            if !this.watch.is_done() {
                this.timer.as_mut().heard();
            }
            if matches!(frame, Some(Ok(_))) && !this.watch.is_complete() {
                // A stream that always has more is never waited for, and so would never be late.
                if let Some(why) = this.timer.is_past_total() {
                    this.body.set(None);
                    return Poll::Ready(Input::Late(why));
                }
            }
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
}

fn note_usage(watch: &Watch, usage: &StreamUsage) {
    if let Some(counts) = watch.usage() {
        usage.set(counts);
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::InBand(error) => Self::InBand(error),
            Fault::Broke(why) => Self::Broken(StreamBroken::new(why)),
        }
    }
}
