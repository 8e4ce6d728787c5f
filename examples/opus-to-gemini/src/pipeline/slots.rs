//! At most so many connections at one time.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use pin_project_lite::pin_project;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;
use tower_spillway_core::BoxError;

/// A connector that waits while too many of its connections are open.
///
/// hyper-util's pool bounds idle connections only.
#[derive(Clone, Debug)]
pub(super) struct Slots<C> {
    inner: C,
    free: Arc<Semaphore>,
}

impl<C> Slots<C> {
    pub(super) fn new(inner: C, most: u32) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self {
            inner,
            free: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
        }
    }
}

impl<C> Service<Uri> for Slots<C>
where
    C: Service<Uri, Future: Send + 'static> + Clone + Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = SlotStream<C::Response>;
    type Error = BoxError;
    // One box for each connection.
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let free = Arc::clone(&self.free);
        Box::pin(async move {
            let slot = free.acquire_owned().await?;
            let inner = inner.call(uri).await.map_err(Into::into)?;
            Ok(SlotStream { inner, slot })
        })
    }
}

pin_project! {
    /// A connection that frees its slot when it closes.
    pub(super) struct SlotStream<S> {
        #[pin]
        inner: S,
        slot: OwnedSemaphorePermit,
    }
}

impl<S: Read> Read for SlotStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buf)
    }
}

impl<S: Write> Write for SlotStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write_vectored(cx, bufs)
    }
}

impl<S: Connection> Connection for SlotStream<S> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}
