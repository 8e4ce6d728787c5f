use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// A response body whose first frame may have been read: it yields what the original does.
    pub struct FirstFrameBody<B>
    where
        B: Body,
    {
        #[pin]
        inner: B,
        first: First<B::Data>,
    }
}

/// What was read of a body.
pub(super) enum First<D> {
    /// Nothing that was not given on.
    None,
    /// A frame, and the size before it.
    Frame(Frame<D>, SizeHint),
    /// Its end. It may not be polled again.
    End,
}

impl<B: Body> FirstFrameBody<B> {
    pub(super) fn new(inner: B, first: First<B::Data>) -> Self {
        Self { inner, first }
    }

    /// The body inside.
    pub fn get_ref(&self) -> &B {
        &self.inner
    }
}

impl<B: Body> Body for FirstFrameBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        match mem::replace(this.first, First::None) {
            First::None => this.inner.poll_frame(cx),
            First::Frame(frame, _) => Poll::Ready(Some(Ok(frame))),
            First::End => {
                *this.first = First::End;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.first {
            First::None => self.inner.is_end_stream(),
            First::Frame(..) => false,
            First::End => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.first {
            First::None => self.inner.size_hint(),
            First::Frame(frame, size) if frame.is_trailers() => no_data(*size),
            First::Frame(_, size) => *size,
            First::End => SizeHint::with_exact(0),
        }
    }
}

/// The size of what has trailers and nothing else: known to be small, so that a driver can hold it.
/// Not an exact 0, which a server would send as the length, without the trailers.
fn no_data(mut before: SizeHint) -> SizeHint {
    if before.upper().is_none() {
        before.set_upper(before.lower().max(1));
    }
    before
}

impl<B: Body> fmt::Debug for FirstFrameBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstFrameBody")
            .field("held", &matches!(self.first, First::Frame(..)))
            .finish_non_exhaustive()
    }
}
