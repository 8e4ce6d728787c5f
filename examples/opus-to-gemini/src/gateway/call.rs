//! One call, from its request to the end of its answer.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_spillway_core::{BodyEnd, BoxError, Class, Ledger, clock};
use tower_spillway_llm::{StreamUsage, Usage};

use super::{
    Gateway, after, calls::Entry, failure::tried, id::RequestId, metrics, outcome::Outcome,
    queue::Slot, wall::now_ms,
};
use crate::pipeline::{AnswerBody, Secrets};

/// A longer name of a model is cut in records.
const LONGEST_NAME: usize = 100;

/// A call that is not over. When it is dropped it is recorded, as left where nothing else was said.
pub(super) struct Call {
    gateway: Gateway,
    id: RequestId,
    at_ms: u64,
    opened: Instant,
    took: Option<Duration>,
    ledger: Ledger,
    asked: Option<String>,
    stream: bool,
    status: Option<u16>,
    outcome: Option<Outcome>,
    error: Option<String>,
    used: Used,
    slot: Option<Slot>,
}

/// Where the tokens of an answer are told.
#[derive(Default)]
pub(super) enum Used {
    #[default]
    Unknown,
    Plain(Option<Usage>),
    Stream(StreamUsage),
}

impl Call {
    pub(super) fn new(gateway: Gateway, id: RequestId) -> Self {
        gateway.in_flight().increment(1.0);
        Self {
            gateway,
            id,
            at_ms: now_ms(),
            opened: clock::now(),
            took: None,
            ledger: Ledger::new(),
            asked: None,
            stream: false,
            status: None,
            outcome: None,
            error: None,
            used: Used::Unknown,
            slot: None,
        }
    }

    pub(super) fn asks(&mut self, model: &str, stream: bool) {
        let name = model.chars().take(LONGEST_NAME);
        let shown = name.map(|c| if c.is_control() { ' ' } else { c });
        self.asked = Some(shown.collect());
        self.stream = stream;
    }

    /// It is under way now.
    pub(super) fn starts(&mut self, slot: Slot) {
        self.slot = Some(slot);
    }

    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Since its request came; once it is over, until its end.
    pub(super) fn elapsed(&self) -> Duration {
        let now = || clock::now().saturating_duration_since(self.opened);
        self.took.unwrap_or_else(now)
    }

    /// It ends in an error.
    pub(super) fn fails(&mut self, status: u16, code: &str) {
        self.status = Some(status);
        self.error = Some(code.to_owned());
        self.outcome = Some(Outcome::Failed);
    }

    /// The head of its answer goes to the caller, and the body will.
    pub(super) fn answers(mut self, status: u16, used: Used, body: Answer) -> CallBody {
        self.status = Some(status);
        self.used = used;
        // Nobody asks for what is not there.
        if body.body.is_end_stream() {
            self.ends(Outcome::Answered);
        }
        CallBody {
            body,
            call: Ending { call: Some(self) },
        }
    }

    fn ends(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }

    /// The body came to its end; `end` tells how, where the bytes do not.
    fn ends_with(&mut self, end: Option<&BodyEnd>) {
        let broke = end.and_then(BodyEnd::get);
        match broke.filter(|reading| reading.class() != Class::Success) {
            Some(reading) => {
                self.error = reading.reason().map(str::to_owned);
                self.ends(Outcome::Broken);
            }
            None => self.ends(Outcome::Answered),
        }
    }

    fn entry(&self) -> Entry {
        let report = self.ledger.report();
        let cut = || match self.gateway.is_cut() {
            true => Outcome::Cut,
            false => Outcome::Left,
        };
        let outcome = self.outcome.unwrap_or_else(cut);
        let usage = match &self.used {
            Used::Unknown => None,
            Used::Plain(usage) => *usage,
            Used::Stream(usage) => usage.get(),
        };
        let prices = &self.gateway.current().prices;
        let cost = report.model.as_deref().zip(usage);
        let cost = cost.and_then(|(model, usage)| prices.cost(model, &usage));
        let target = report.target.as_ref().map(|t| t.as_str().to_owned());
        let entry = Entry {
            id: self.id.as_str().to_owned(),
            at_ms: self.at_ms,
            asked: self.asked.clone(),
            stream: self.stream,
            target,
            model: report.model.as_deref().map(str::to_owned),
            status: self.status,
            outcome,
            error: self.error.clone(),
            sends: report.sends(),
            latency_ms: clock::millis(self.elapsed()),
            first_content_ms: report.first_content_ms(),
            fallback_reason: report.fallback_reason.as_ref().map(ToString::to_string),
            tokens: usage.map(Into::into),
            cost: cost.map(crate::chat::dollars),
            attempts: tried(&report),
        };
        self.gateway.figures().add(&report, &entry, cost);
        entry
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.slot = None;
        self.gateway.in_flight().decrement(1.0);
        let entry = self.entry();
        metrics::ended(&entry, self.elapsed());
        entry.log();
        self.gateway.calls().add(entry);
    }
}

/// A call whose answer is under way. When it is dropped, the last bytes are with the connection, but
/// not sent yet.
struct Ending {
    call: Option<Call>,
}

impl Ending {
    fn with(&mut self, end: impl FnOnce(&mut Call)) {
        if let Some(call) = &mut self.call {
            end(call);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else {
            return;
        };
        call.slot = None;
        call.took = Some(call.elapsed());
        after::record(call);
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of a vendor's answer.
    pub(super) struct Answer {
        #[pin]
        pub(super) body: AnswerBody,
        pub(super) end: Option<BodyEnd>,
        // What an error in the stream must not show.
        pub(super) secrets: Option<Secrets>,
    }
}

/// Whether a stream broke: what comes last of it is an error, in a vendor's own words it may be.
fn is_broken(end: Option<&BodyEnd>) -> bool {
    let end = end.and_then(BodyEnd::get);
    end.is_some_and(|reading| reading.class() != Class::Success)
}

pin_project! {
    /// A body that ends its call.
    pub(super) struct CallBody {
        #[pin]
        body: Answer,
        call: Ending,
    }
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        let mut answer = this.body.project();
        let mut frame = ready!(answer.body.as_mut().poll_frame(cx));
        if let (Some(secrets), true) = (answer.secrets, is_broken(answer.end.as_ref())) {
            frame = frame.map(|f| f.map(|f| f.map_data(|data| secrets.blot_bytes(data))));
        }
        match &frame {
            Some(Err(_)) => this.call.with(|call| {
                call.error = Some("body_failed".to_owned());
                call.ends(Outcome::Broken);
            }),
            // Nobody asks for more than the last frame of a body that knows its end.
            Some(Ok(_)) if !answer.body.is_end_stream() => {}
            Some(Ok(_)) | None => {
                let end = answer.end.as_ref();
                this.call.with(|call| call.ends_with(end));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.body.size_hint()
    }
}
