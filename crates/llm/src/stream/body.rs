use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_spillway_core::BoxError;

use super::flow::Flow;

pin_project! {
    /// A response body that is checked to its end if it is a stream.
    ///
    /// Dropping it drops the upstream's body at once.
    pub struct GuardedBody<B> {
        #[pin]
        state: State<B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B> {
        /// No stream: left alone.
        Plain { #[pin] body: B },
        // In a box: it was polled before it became a body, and what is pinned cannot be moved out
        // of the future that polled it.
        Stream { flow: Pin<Box<Flow<B>>> },
        /// The error of a stream of which nothing was given out.
        Error { json: Bytes },
    }
}

impl<B> GuardedBody<B> {
    pub(super) fn plain(body: B) -> Self {
        Self {
            state: State::Plain { body },
        }
    }

    pub(super) fn stream(flow: Pin<Box<Flow<B>>>) -> Self {
        Self {
            state: State::Stream { flow },
        }
    }

    pub(super) fn error(json: Bytes) -> Self {
        Self {
            state: State::Error { json },
        }
    }
}

impl<B> Body for GuardedBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().state.project() {
            StateProj::Plain { body } => body.poll_frame(cx).map(|frame| {
                let frame = frame?.map_err(Into::into);
                Some(frame.map(|f| f.map_data(|mut data| data.copy_to_bytes(data.remaining()))))
            }),
            StateProj::Stream { flow } => flow.as_mut().poll_given(cx).map(|f| f.map(Ok)),
            StateProj::Error { json } => {
                let json = std::mem::take(json);
                Poll::Ready((!json.is_empty()).then(|| Ok(Frame::data(json))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Plain { body } => body.is_end_stream(),
            State::Stream { flow } => flow.is_over(),
            State::Error { json } => json.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Plain { body } => body.size_hint(),
            // An error event may follow what the upstream announced.
            State::Stream { .. } => SizeHint::new(),
            State::Error { json } => SizeHint::with_exact(json.len() as u64),
        }
    }
}

impl<B> fmt::Debug for GuardedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Plain { .. } => "plain",
            State::Stream { .. } => "stream",
            State::Error { .. } => "error",
        };
        f.debug_tuple("GuardedBody").field(&state).finish()
    }
}
