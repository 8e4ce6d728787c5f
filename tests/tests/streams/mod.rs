//! Streams that come as told, and what became of them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

pub mod server;
pub mod tokens;

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_spillway_core::{BodyEnd, BoxError, Class, Http, Read, Reading};

/// One thing that a stream does.
#[derive(Clone, Debug)]
pub enum Do {
    Send(Bytes),
    /// Waits until so long after the first poll.
    At(Duration),
    Reset,
    Stall,
}

/// A body that does as told, and counts how many of its like are open.
pub struct Told {
    steps: VecDeque<Do>,
    start: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
    open: Arc<AtomicUsize>,
}

impl Told {
    pub fn new(steps: impl IntoIterator<Item = Do>) -> Self {
        Self::counted(steps, &Arc::default())
    }

    pub fn counted(steps: impl IntoIterator<Item = Do>, open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self {
            steps: steps.into_iter().collect(),
            start: None,
            sleep: None,
            open: open.clone(),
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let start = *this.start.get_or_insert_with(Instant::now);
        loop {
            if let Some(sleep) = &mut this.sleep {
                ready!(sleep.as_mut().poll(cx));
                this.sleep = None;
            }
            return match this.steps.pop_front() {
                None => Poll::Ready(None),
                Some(Do::Send(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Do::At(at)) => {
                    this.sleep = Some(Box::pin(sleep_until(start + at)));
                    continue;
                }
                Some(Do::Reset) => {
                    let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    Poll::Ready(Some(Err(error.into())))
                }
                Some(Do::Stall) => {
                    this.steps.push_front(Do::Stall);
                    Poll::Pending
                }
            };
        }
    }
}

/// What a caller got.
#[derive(Debug, PartialEq)]
pub struct Got {
    /// 0 for an error.
    pub status: u16,
    pub reading: Reading,
    pub body: String,
    /// How the body ended, as the layers outside hear it.
    pub end: Option<Reading>,
}

impl Got {
    pub async fn of<B>(out: Result<Response<B>, BoxError>) -> Self
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        let reading = Http::new().read(out.as_ref().map_err(|e| &**e as _));
        let Ok(response) = out else {
            return Self {
                status: 0,
                reading,
                body: String::new(),
                end: None,
            };
        };
        let status = response.status().as_u16();
        let end = response.extensions().get::<BodyEnd>().cloned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Self {
            status,
            reading,
            body: String::from_utf8_lossy(&body).into_owned(),
            end: end.map(|end| end.get().cloned().unwrap()),
        }
    }

    /// Whether the caller got a whole answer.
    pub fn is_whole(&self) -> bool {
        let ends_well = self.end.as_ref().map(Reading::class) == Some(Class::Success);
        if ends_well {
            assert_eq!(errors(&self.body), 0, "{}", self.body);
        }
        self.status == 200 && ends_well
    }

    /// Whether the caller got a part, and then was told so: one error event at the very end.
    pub fn is_broken_in_sight(&self) -> bool {
        let failed = self
            .end
            .as_ref()
            .is_some_and(|end| end.class() != Class::Success);
        if failed {
            let last = self.body.trim_end().rsplit("\n\n").next().unwrap();
            assert_eq!((errors(&self.body), errors(last)), (1, 1), "{}", self.body);
            assert!(!self.body.contains("[DONE]"), "{}", self.body);
            assert!(self.body.ends_with("\n\n"), "{:?}", self.body);
        }
        self.status == 200 && failed
    }
}

/// How many error events a caller sees, in any dialect.
pub fn errors(body: &str) -> usize {
    let unified = body.replace("\r\n", "\n").replace('\r', "\n");
    let data = unified
        .lines()
        .filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok())
        .filter(|event| {
            let failed = matches!(event["type"].as_str(), Some("error" | "response.failed"));
            failed || event.get("error").is_some_and(|e| !e.is_null())
        })
        .count()
}
