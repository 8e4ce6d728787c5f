use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Response, response::Parts};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_spillway_core::{BoxError, Class, ErrorReader, TargetName};

use super::{PeekedBody, layer::Judge, peek::Peek};
use crate::{Answer, media};

pin_project! {
    /// The future of [`VendorVerdict`](super::VendorVerdict).
    pub struct ResponseFuture<F, B> {
        #[pin]
        inner: F,
        // The answer whose body is being read.
        reading: Option<(Parts, Peek<B>)>,
        // Set where a body does not come at once.
        #[pin]
        limit: Option<Sleep>,
        judge: Arc<Judge>,
        target: Option<TargetName>,
    }
}

impl<F, B> ResponseFuture<F, B> {
    pub(super) fn new(inner: F, judge: Arc<Judge>, target: Option<TargetName>) -> Self {
        Self {
            inner,
            reading: None,
            limit: None,
            judge,
            target,
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<PeekedBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.reading.is_none() {
            let response = ready!(this.inner.poll(cx)).map_err(Into::into)?;
            let (head, body) = response.into_parts();
            let look = Look::at(&head);
            if look == Look::Never {
                this.judge.alarms.succeeded(this.target.as_ref());
                return Poll::Ready(Ok(Response::from_parts(head, PeekedBody::untouched(body))));
            }
            if look == Look::HeadOnly {
                let body = PeekedBody::untouched(body);
                let response = this.judge.judge(head, &[], body, this.target.as_ref());
                return Poll::Ready(Ok(response));
            }
            let success = head.status.is_success();
            *this.reading = Some((head, Peek::new(body, success)));
        }
        let Some((_, peek)) = this.reading else {
            // Not reached: it was set above.
            return Poll::Pending;
        };
        if peek.poll_read(cx).is_pending() {
            if this.limit.is_none() {
                this.limit.set(Some(sleep(this.judge.read_within)));
            }
            if let Some(limit) = this.limit.as_mut().as_pin_mut() {
                ready!(limit.poll(cx));
            }
        }
        this.limit.set(None);
        match this.reading.take() {
            Some((head, peek)) => {
                Poll::Ready(Ok(this.judge.give_back(head, peek, this.target.as_ref())))
            }
            None => Poll::Pending,
        }
    }
}

/// How much of an answer is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// A success that hides nothing.
    Never,
    /// The body cannot be read: the status decides.
    HeadOnly,
    Inside,
}

impl Look {
    fn at(head: &Parts) -> Self {
        let success = head.status.is_success();
        let encoded = media::is_encoded(&head.headers);
        if success && (encoded || !media::may_hide_a_failure(&head.headers)) {
            Self::Never
        } else if encoded {
            Self::HeadOnly
        } else {
            Self::Inside
        }
    }
}

impl Judge {
    /// Judges an answer whose body was read, and puts the body back.
    fn give_back<B>(
        &self,
        head: Parts,
        peek: Peek<B>,
        target: Option<&TargetName>,
    ) -> Response<PeekedBody<B>>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        if peek.is_answer() {
            self.alarms.succeeded(target);
            return Response::from_parts(head, peek.into_body());
        }
        // Known before anybody got the answer: it can still be sent again.
        let cut = peek.error().filter(|_| head.status.is_success());
        if let Some(reading) = cut.map(|error| ErrorReader::default().read(&**error)) {
            let mut response = Response::from_parts(head, peek.into_body());
            let reading = reading.with_reason("answer_cut_short").from_vendor();
            response.extensions_mut().insert(reading);
            return response;
        }
        let text = peek.text().to_vec();
        self.judge(head, &text, peek.into_body(), target)
    }

    fn judge<B>(
        &self,
        mut head: Parts,
        text: &[u8],
        body: PeekedBody<B>,
        target: Option<&TargetName>,
    ) -> Response<PeekedBody<B>> {
        let status = head.status.as_u16();
        let answer = Answer::with_headers(status, &head.headers, text, &self.hints);
        let verdict = self.rules.judge(&answer);
        match verdict.class() {
            Class::Success => {
                self.alarms.succeeded(target);
                return Response::from_parts(head, body);
            }
            Class::TargetDown => self.alarms.raise(target, &verdict, status),
            _ => {}
        }
        head.extensions.insert(verdict.into_reading());
        Response::from_parts(head, body)
    }
}

impl<F, B> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("target", &self.target)
            .field("reading", &self.reading.is_some())
            .finish_non_exhaustive()
    }
}
