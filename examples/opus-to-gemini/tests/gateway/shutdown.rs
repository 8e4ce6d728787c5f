//! How it ends.

use std::time::Duration;

use http_body_util::BodyExt;
use opus_to_gemini::fake::Behaviour;
use tokio::net::TcpStream;

use crate::{
    logs,
    support::{PLENTY, Served, hello, streamed},
};

#[tokio::test]
async fn open_streams_may_end_and_nobody_new_is_taken_in() {
    let mut served = Served::start(|config| config.gateway.shutdown_within = PLENTY).await;
    served.fakes.anthropic.set_words(20);
    served
        .fakes
        .anthropic
        .set_stream(Duration::from_millis(500));
    let mut open = served.open(served.chat(&streamed())).await;
    open.frame().await.unwrap().unwrap();
    served.told_to_stop();
    served.until_closed().await;

    let rest = open.into_body().collect().await.unwrap().to_bytes();
    assert!(rest.ends_with(b"data: [DONE]\n\n"));
    served.ended().await;
}

#[tokio::test]
async fn what_is_still_open_at_the_limit_is_cut_and_says_so_in_the_log() {
    let log = logs::start();
    let mut served = Served::start(|config| {
        config.gateway.shutdown_within = Duration::from_millis(100);
    })
    .await;
    let mut open = stuck(&served, "cut-at-the-limit").await;
    served.told_to_stop();
    let rest = open.body_mut().collect().await;
    assert!(
        rest.is_err(),
        "a stream that is cut must not end as a whole one does"
    );
    served.ended().await;
    let line = log.call("cut-at-the-limit");
    assert_eq!(line["outcome"], "cut");
}

#[tokio::test]
async fn a_second_word_cuts_at_once() {
    let mut served = Served::start(|config| config.gateway.shutdown_within = PLENTY).await;
    let open = stuck(&served, "cut-at-once").await;
    served.told_to_stop();
    served.until_closed().await;
    served.told_to_stop_now();
    served.ended().await;
    assert!(open.into_body().collect().await.is_err());
}

/// A stream of which a part has come, and no more will.
async fn stuck(served: &Served, id: &str) -> http::Response<hyper::body::Incoming> {
    served.fakes.anthropic.set_words(60);
    served.fakes.anthropic.set(Behaviour::Stall);
    let mut request = served.chat(&streamed());
    request
        .headers_mut()
        .insert("x-request-id", id.parse().unwrap());
    let mut open = served.open(request).await;
    open.frame().await.unwrap().unwrap();
    open
}

impl Served {
    /// Waits until the listener is gone.
    async fn until_closed(&self) {
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn idle_connections_do_not_hold_it_up() {
    let mut served = Served::start(|config| config.gateway.shutdown_within = PLENTY).await;
    assert_eq!(served.send(served.chat(&hello())).await.status, 200);
    let _silent = TcpStream::connect(served.address).await.unwrap();
    served.told_to_stop();
    served.ended().await;
}
