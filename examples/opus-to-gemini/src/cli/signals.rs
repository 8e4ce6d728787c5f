//! Signals of a server.

use std::io;

use tokio::sync::watch;

/// How often it was told to stop: by Ctrl-C, or SIGTERM where there is one.
pub(super) fn stops() -> io::Result<watch::Receiver<u32>> {
    let (told, stops) = watch::channel(0);
    let mut terminate = Signal::terminate()?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => if interrupted.is_err() { return },
                () = terminate.next() => {}
            }
            told.send_modify(|times| *times += 1);
        }
    });
    Ok(stops)
}

/// Ready once it was told so often.
pub(super) async fn told(mut stops: watch::Receiver<u32>, times: u32) {
    if stops.wait_for(|told| *told >= times).await.is_err() {
        std::future::pending().await
    }
}

/// A signal of Unix; one that never comes elsewhere.
pub(super) struct Signal(#[cfg(unix)] tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signal {
    fn terminate() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).map(Self)
    }

    /// SIGHUP.
    pub(super) fn hang_up() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::hangup()).map(Self)
    }

    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending().await
        }
    }
}

#[cfg(not(unix))]
impl Signal {
    fn terminate() -> io::Result<Self> {
        Ok(Self())
    }

    pub(super) fn hang_up() -> io::Result<Self> {
        Ok(Self())
    }

    pub(super) async fn next(&mut self) {
        std::future::pending().await
    }
}
