//! A response body that settles its call.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Buf;
use http::{HeaderMap, Response, header};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_spillway_core::{
    BodyEnd, BoxError, Class, Http, Read, Reading,
    adapter::read_grpc,
    hint::{grpc_status, is_grpc},
};

use crate::{home::Share, permit::Guard};

pin_project! {
    /// A response body that keeps the right to its call, and the slot of a probe, until it ends,
    /// fails or is dropped. See [the crate's docs](crate#at-the-end-of-the-body).
    ///
    /// Frames, size hint and end are those of the body inside.
    pub struct OutcomeBody<B, A = Http> {
        #[pin]
        inner: B,
        // None once its outcome is known.
        watch: Option<Watch<A>>,
    }
}

impl<B, A> OutcomeBody<B, A>
where
    B: Body,
    A: Read<Response<B>>,
{
    /// Settles what the head says, or leaves it to the body.
    pub(crate) fn wrap(
        response: Response<B>,
        guard: Option<Guard<Share<A>>>,
    ) -> Response<OutcomeBody<B, A>> {
        let watch = guard.and_then(|guard| Self::watch(&response, guard));
        response.map(|inner| OutcomeBody { inner, watch })
    }

    fn watch(response: &Response<B>, guard: Guard<Share<A>>) -> Option<Watch<A>> {
        let reading = guard.read(Share::adapter, Ok(response));
        if reading.class() != Class::Success {
            guard.hear(&reading, None);
            return None;
        }
        let watch = Watch::new(response, guard);
        if watch.is_told() || response.body().is_end_stream() {
            // One that is empty may never be polled.
            watch.end();
            return None;
        }
        Some(watch)
    }
}

impl<B, A> OutcomeBody<B, A> {
    /// The body inside.
    pub fn get_ref(&self) -> &B {
        &self.inner
    }
}

impl<B, A> Body for OutcomeBody<B, A>
where
    B: Body,
    B::Error: Into<BoxError>,
    A: Read<Response<B>>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(watch) = this.watch.as_mut() else {
            let frame = ready!(this.inner.poll_frame(cx));
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        };
        let polled = watch.run(|| this.inner.as_mut().poll_frame(cx));
        let frame = ready!(polled).map(|frame| frame.map_err(Into::into));
        let said = match &frame {
            None => Said::End,
            Some(Err(error)) => {
                let error: &(dyn Error + 'static) = &**error;
                watch.read(Err::<&Response<B>, _>(error))
            }
            Some(Ok(frame)) => {
                match watch.passed(frame) {
                    // What is over may not be polled once more.
                    Said::Open if this.inner.is_end_stream() => Said::End,
                    said => said,
                }
            }
        };
        let reading = match said {
            Said::Open => return Poll::Ready(frame),
            Said::End => None,
            Said::So(reading) => Some(reading),
        };
        if let Some(watch) = this.watch.take() {
            match reading {
                Some(reading) => watch.settle(&reading),
                None => watch.end(),
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B, A> fmt::Debug for OutcomeBody<B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeBody")
            .field("open", &self.watch.is_some())
            .finish_non_exhaustive()
    }
}

/// What a frame says of the outcome.
enum Said {
    /// Nothing yet.
    Open,
    /// It is over: success, if all is there.
    End,
    So(Reading),
}

/// The right to a call whose body is open.
struct Watch<A> {
    /// Always there until it settles.
    guard: Option<Guard<Share<A>>>,
    /// How long the head took, where that matters to a rule.
    took: Option<Duration>,
    /// What a layer inside says of the end.
    end: Option<BodyEnd>,
    given: u64,
    /// As its size hint has it.
    least: u64,
    /// As the header has it, where the body itself does not know.
    announced: u64,
    /// A gRPC call whose status is still to come.
    wants_status: bool,
}

impl<A> Watch<A> {
    fn new<B: Body>(response: &Response<B>, guard: Guard<Share<A>>) -> Self {
        let hint = response.body().size_hint();
        let headers = response.headers();
        let announced = match hint.exact() {
            Some(_) => None,
            None => content_length(headers),
        };
        Self {
            took: guard.took(),
            guard: Some(guard),
            end: response.extensions().get().cloned(),
            given: 0,
            least: hint.lower(),
            announced: announced.unwrap_or(0),
            wants_status: is_grpc(headers) && grpc_status(headers).is_none(),
        }
    }

    /// Polls the body: if it panics, the call has failed.
    fn run<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        match &mut self.guard {
            Some(guard) => guard.run(poll),
            None => poll(),
        }
    }

    fn read<Res>(&self, result: Result<&Res, &(dyn Error + 'static)>) -> Said
    where
        A: Read<Res>,
    {
        match &self.guard {
            Some(guard) => Said::So(guard.read(Share::adapter, result)),
            None => Said::Open,
        }
    }

    fn passed<D: Buf>(&mut self, frame: &Frame<D>) -> Said {
        if let Some(data) = frame.data_ref() {
            let more = u64::try_from(data.remaining()).unwrap_or(u64::MAX);
            self.given = self.given.saturating_add(more);
        } else if let Some(trailers) = frame.trailers_ref() {
            // Nothing follows them, and nobody need poll again to know.
            return read_grpc(trailers).map_or(Said::End, Said::So);
        }
        match self.is_told() {
            true => Said::End,
            false => Said::Open,
        }
    }

    /// Whether a layer inside has said how it ends.
    fn is_told(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.get().is_some())
    }

    /// It came to its end.
    fn end(self) {
        // By the header alone an empty body may also be the answer to HEAD.
        let short = self.given < self.least || (self.given > 0 && self.given < self.announced);
        let class = match short || self.wants_status {
            true => Class::Transient,
            false => Class::Success,
        };
        self.settle(&Reading::new(class));
    }

    /// It ended so, unless a layer inside knows better.
    fn settle(mut self, reading: &Reading) {
        if let Some(guard) = self.guard.take() {
            let told = self.end.as_ref().and_then(BodyEnd::get);
            guard.hear_body(told.unwrap_or(reading), self.took);
        }
    }
}

impl<A> Drop for Watch<A> {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        // Who has read the last event need not read on.
        match self.end.as_ref().and_then(BodyEnd::get) {
            Some(told) => guard.hear_body(told, self.took),
            None => guard.leave(self.took),
        }
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.trim().parse().ok()
}
