//! A body that breaks off.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_spillway_core::BoxError;

pin_project! {
    /// Yields half of a body, then an error, at which the server closes the connection.
    pub(super) struct Cut {
        half: Option<Bytes>,
        // An error right behind the data would keep the server from writing the data.
        #[pin]
        pause: Sleep,
    }
}

impl Cut {
    pub(super) fn new(body: &Bytes) -> Self {
        Self {
            half: Some(body.slice(..body.len() / 2)),
            pause: sleep(Duration::from_millis(5)),
        }
    }
}

impl Body for Cut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        if let Some(half) = this.half.take() {
            return Poll::Ready(Some(Ok(Frame::data(half))));
        }
        this.pause
            .poll(cx)
            .map(|()| Some(Err(io::Error::from(io::ErrorKind::BrokenPipe).into())))
    }
}
