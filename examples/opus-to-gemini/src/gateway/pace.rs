//! What a client must take of its answers, and in what time.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};
use tower_spillway_core::clock;

/// So many bytes for each so long that a client keeps its writer waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) least: u64,
    pub(super) within: Duration,
}

pin_project! {
    /// A connection that fails once its peer is too slow to take what is written.
    ///
    /// Only the time counts in which there is something to write and no room for it: an answer that
    /// comes slowly is not its reader's fault. It adds up over pieces, so that a byte now and then
    /// keeps nothing open.
    pub(super) struct Paced<S> {
        #[pin]
        inner: S,
        #[pin]
        limit: Sleep,
        pace: Pace,
        since: Option<Instant>,
        waited: Duration,
        taken: u64,
    }
}

impl<S> Paced<S> {
    pub(super) fn new(inner: S, pace: Pace) -> Self {
        Self {
            inner,
            limit: sleep_until(clock::now()),
            pace,
            since: None,
            waited: Duration::ZERO,
            taken: 0,
        }
    }

    /// Counts what came of a write.
    fn wrote(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut this = self.project();
        let Poll::Ready(written) = written else {
            if this.since.is_none() {
                let now = clock::now();
                *this.since = Some(now);
                let left = this.pace.within.saturating_sub(*this.waited);
                this.limit.as_mut().reset(clock::after(now, left));
            }
            return match this.limit.poll(cx) {
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                Poll::Pending => Poll::Pending,
            };
        };
        if let Some(since) = this.since.take() {
            let more = clock::now().saturating_duration_since(since);
            *this.waited = this.waited.saturating_add(more);
        }
        if let (Ok(count), false) = (&written, this.waited.is_zero()) {
            let count = u64::try_from(*count).unwrap_or(u64::MAX);
            *this.taken = this.taken.saturating_add(count);
            if *this.taken >= this.pace.least {
                (*this.waited, *this.taken) = (Duration::ZERO, 0);
            }
        }
        Poll::Ready(written)
    }
}

impl<S: AsyncRead> AsyncRead for Paced<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().project().inner.poll_write(cx, bytes);
        self.wrote(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().project().inner.poll_write_vectored(cx, parts);
        self.wrote(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    // A socket has nothing to flush, and says at once that it shuts down.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::sleep,
    };

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PACE: Pace = Pace {
        least: 100,
        within: Duration::from_secs(10),
    };

    /// A connection with room for ten bytes.
    fn connection() -> (Paced<DuplexStream>, DuplexStream) {
        let (here, there) = duplex(10);
        (Paced::new(here, PACE), there)
    }

    /// Takes `bytes` each `every`, for ever.
    async fn takes(mut from: DuplexStream, bytes: usize, every: Duration) {
        let mut piece = vec![0; bytes];
        loop {
            sleep(every).await;
            from.read_exact(&mut piece).await.unwrap();
        }
    }

    async fn write(to: Paced<DuplexStream>, bytes: usize) -> io::Result<()> {
        pin!(to).write_all(&vec![0; bytes]).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_keeps_nothing_open() {
        let (here, there) = connection();
        let start = Instant::now();
        let error = tokio::select! {
            written = write(here, 1000) => written.unwrap_err(),
            () = takes(there, 1, SECOND) => unreachable!(),
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), PACE.within);
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_the_pace_gets_everything() {
        let (here, there) = connection();
        let start = Instant::now();
        tokio::select! {
            written = write(here, 10_000) => written.unwrap(),
            () = takes(there, 10, SECOND / 2) => unreachable!(),
        }
        assert!(
            start.elapsed() > 10 * PACE.within,
            "a slow one, but not too slow"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn time_without_anything_to_write_is_nobodys_fault() {
        let (here, there) = connection();
        let mut here = pin!(here);
        let answer = async {
            for _ in 0..10 {
                sleep(PACE.within).await;
                here.write_all(&[0; 20]).await?;
            }
            io::Result::Ok(())
        };
        tokio::select! {
            answered = answer => answered.unwrap(),
            () = takes(there, 10, SECOND / 10) => unreachable!(),
        }
    }
}
