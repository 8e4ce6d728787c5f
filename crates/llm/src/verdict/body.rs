use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_spillway_core::BoxError;

use super::peek::whole_bytes;

pin_project! {
    /// A response body that was looked into: it yields what the original does.
    pub struct PeekedBody<B> {
        read: VecDeque<Frame<Bytes>>,
        #[pin]
        rest: Rest<B>,
        size: SizeHint,
    }
}

pin_project! {
    /// What comes after the frames that were read.
    #[project = RestProj]
    pub(super) enum Rest<B> {
        /// All of it: nothing was read.
        Untouched { #[pin] body: B },
        Begun { body: Pin<Box<B>> },
        Failed { error: Option<BoxError> },
        Over,
    }
}

impl<B: Body> PeekedBody<B> {
    /// A body that nobody looked into.
    pub(super) fn untouched(body: B) -> Self {
        Self {
            read: VecDeque::new(),
            size: SizeHint::new(),
            rest: Rest::Untouched { body },
        }
    }

    pub(super) fn begun(read: VecDeque<Frame<Bytes>>, rest: Rest<B>, size: SizeHint) -> Self {
        Self { read, rest, size }
    }
}

impl<B> Body for PeekedBody<B>
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
        let mut this = self.project();
        let frame = match this.read.pop_front() {
            Some(frame) => Some(Ok(frame)),
            None => match this.rest.as_mut().project() {
                RestProj::Untouched { body } => ready!(body.poll_frame(cx)).map(owned),
                RestProj::Begun { body } => ready!(body.as_mut().poll_frame(cx)).map(owned),
                RestProj::Failed { error } => error.take().map(Err),
                RestProj::Over => None,
            },
        };
        if let Some(Ok(frame)) = &frame {
            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
            shrink(this.size, length);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty()
            && match &self.rest {
                Rest::Untouched { body } => body.is_end_stream(),
                Rest::Begun { body } => body.is_end_stream(),
                Rest::Failed { error } => error.is_none(),
                Rest::Over => true,
            }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Rest::Untouched { body } => body.size_hint(),
            Rest::Begun { body } if self.read.is_empty() => body.size_hint(),
            _ => self.size,
        }
    }
}

fn owned<D: bytes::Buf, E: Into<BoxError>>(
    frame: Result<Frame<D>, E>,
) -> Result<Frame<Bytes>, BoxError> {
    frame.map(whole_bytes).map_err(Into::into)
}

/// What is left after a frame of this length.
fn shrink(size: &mut SizeHint, length: u64) {
    let (lower, upper) = (size.lower(), size.upper());
    let mut left = SizeHint::new();
    left.set_lower(lower.saturating_sub(length));
    if let Some(upper) = upper {
        left.set_upper(upper.saturating_sub(length).max(left.lower()));
    }
    *size = left;
}

impl<B> fmt::Debug for PeekedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeekedBody")
            .field("frames_read", &self.read.len())
            .finish_non_exhaustive()
    }
}
