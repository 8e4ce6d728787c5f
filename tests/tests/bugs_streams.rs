//! Reports of streams that break, each a test named after its row in `bugs.jsonl`: kinds `stream`,
//! `timeout`, `cancel`, `fallback-policy` where it concerns streams, and the rows of other kinds that
//! happen inside a stream.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod streams;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use streams::{
    Do, Got, Told,
    tokens::{
        DONE, FINISH, OVERLOADED, PREAMBLE, count, send as text_of, text, token, tokens, whole,
    },
};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};
use tower_circuit_breaker::{Breaker, BreakerConfig, CircuitBreakerLayer, State};
use tower_failover::{FailoverService, Target};
use tower_jitter_backoff::{Jitter, JitterBackoffLayer};
use tower_spillway_core::{
    BoxError, Class, Http, Ledger, Read, Report, call::CallLayer, error::find,
};
use tower_spillway_llm::{
    Break, Commit, GuardedBody, PeekedBody, Rule, Rules, StreamBroken, StreamGuardLayer,
    StreamLimits, StreamUsage, Vendor, VendorVerdictLayer,
};

type Req = Request<Full<Bytes>>;
type Res = Response<GuardedBody<PeekedBody<Told>>>;
type Stack = BoxCloneSyncService<Req, Res, BoxError>;

const SECOND: Duration = Duration::from_secs(1);

/// An upstream that gives every request the same answer.
#[derive(Clone)]
struct Upstream {
    status: u16,
    content_type: &'static str,
    steps: Vec<Do>,
    calls: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Upstream {
    fn stream(steps: impl Into<Vec<Do>>) -> Self {
        Self {
            status: 200,
            content_type: "text/event-stream",
            steps: steps.into(),
            calls: Arc::default(),
            open: Arc::default(),
        }
    }

    fn events(text: &str) -> Self {
        Self::stream([text_of(text.to_owned())])
    }

    fn json(status: u16, body: &str) -> Self {
        Self {
            status,
            content_type: "application/json",
            ..Self::events(body)
        }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn answer(&self) -> Response<Told> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let response = Response::builder().status(self.status);
        let response = response.header("content-type", self.content_type);
        let body = Told::counted(self.steps.clone(), &self.open);
        response.body(body).unwrap()
    }
}

/// What a fleet is made with.
#[derive(Clone)]
struct Terms {
    limits: StreamLimits,
    commit: Commit,
    breaker: BreakerConfig,
    rules: Rules,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            limits: StreamLimits::default(),
            commit: Commit::FirstContent,
            breaker: BreakerConfig::new().failures(1),
            rules: Rules::of(Vendor::Gateway),
        }
    }
}

struct Fleet {
    client: FailoverService<Stack, Req>,
    breakers: Vec<Breaker>,
}

fn fleet(terms: &Terms, upstreams: &[(&'static str, &Upstream)]) -> Fleet {
    let mut breakers = Vec::new();
    let targets: Vec<_> = upstreams
        .iter()
        .map(|(name, upstream)| {
            let breaker =
                CircuitBreakerLayer::with_config(terms.breaker.clone().jitter(0.0)).unwrap();
            let backoff = JitterBackoffLayer::constant(SECOND)
                .unwrap()
                .jitter(Jitter::None);
            let guard = StreamGuardLayer::with_rules(terms.rules.clone())
                .commit(terms.commit)
                .limits(terms.limits)
                .unwrap();
            let upstream = (*upstream).clone();
            let stack = ServiceBuilder::new()
                .layer(backoff)
                .layer(breaker.clone())
                .layer(guard)
                .layer(VendorVerdictLayer::with_rules(terms.rules.clone()))
                .service(service_fn(move |_: Req| {
                    let answer = upstream.answer();
                    async move { Ok::<_, BoxError>(answer) }
                }));
            let breaker = breaker.breaker(*name);
            breakers.push(breaker.clone());
            Target::new(*name, BoxCloneSyncService::new(stack))
                .usable_if(move || breaker.state() != State::Open)
                .retry_ambiguous(true)
        })
        .collect();
    Fleet {
        client: FailoverService::new(targets).unwrap(),
        breakers,
    }
}

struct Called {
    got: Got,
    report: Report,
    took: Duration,
}

impl Called {
    fn served_by(&self) -> &str {
        self.report.target.as_ref().unwrap().as_str()
    }
}

fn chat() -> Req {
    Request::post("/v1/chat/completions")
        .body(Full::from("{}"))
        .unwrap()
}

async fn send(fleet: &Fleet) -> Called {
    let start = Instant::now();
    let ledger = Ledger::new();
    let mut request = chat();
    request.extensions_mut().insert(ledger.clone());
    let client = ServiceBuilder::new()
        .layer(CallLayer::new())
        .service(fleet.client.clone());
    let out = client.oneshot(request).await;
    let took = start.elapsed();
    let got = Got::of(out).await;
    Called {
        got,
        report: ledger.report(),
        took,
    }
}

fn two(a: &Upstream, b: &Upstream) -> Fleet {
    fleet(&Terms::default(), &[("A", a), ("B", b)])
}

// -- kind stream ----------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn cut_stream_looks_complete() {
    let mut steps = vec![text_of(PREAMBLE)];
    steps.extend(tokens("a", 0..40));
    let sent = text(&steps);
    steps.push(Do::Reset);
    let (a, b) = (Upstream::stream(steps), Upstream::stream(whole("b")));
    let called = send(&two(&a, &b)).await;
    assert!(called.got.is_broken_in_sight());
    assert!(called.got.body.starts_with(&sent), "what came is given on");
    assert_eq!(called.got.end.unwrap().class(), Class::Transient);
    assert_eq!(b.calls(), 0, "nothing is spliced");
}

#[tokio::test(start_paused = true)]
async fn opt_out_ignored_midstream() {
    // No fallback: one target. In mid-stream nothing else could be asked anyway.
    let a = Upstream::events(&[&token("a0"), OVERLOADED].concat());
    let b = Upstream::stream(whole("b"));
    let alone = fleet(&Terms::default(), &[("A", &a)]);
    let called = send(&alone).await;
    assert!(called.got.is_broken_in_sight());
    let called = send(&two(&a, &b)).await;
    assert!(called.got.is_broken_in_sight());
    assert_eq!(b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn second_endpoint_bypasses_failover() {
    let chat = text(&whole("b"));
    let responses = "event: response.created\ndata: {\"type\":\"response.created\"}\n\n\
        data: {\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\n\n\
        data: {\"type\":\"response.completed\"}\n\n";
    let messages = "data: {\"type\":\"message_start\"}\n\n\
        data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"b\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\"}]},\
        \"finishReason\":\"STOP\"}]}\n\n";
    for answer in [&chat, responses, messages, gemini] {
        let start = answer.split("\n\n").next().unwrap();
        // Where the first event is content, nothing at all comes.
        let stalls = match answer == gemini {
            true => vec![Do::Stall],
            false => vec![text_of(format!("{start}\n\n")), Do::Stall],
        };
        let (a, b) = (Upstream::stream(stalls), Upstream::events(answer));
        let called = send(&two(&a, &b)).await;
        assert_eq!(called.served_by(), "B", "{start}");
        assert!(called.got.is_whole(), "{start}");
        assert_eq!(called.got.body, answer);
    }
}

#[tokio::test(start_paused = true)]
async fn prefill_continuation_masks() {
    let a = Upstream::stream([tokens("a", 0..40), vec![Do::Reset]].concat());
    let b = Upstream::json(400, r#"{"error":{"message":"prefill not supported"}}"#);
    let called = send(&two(&a, &b)).await;
    assert!(called.got.is_broken_in_sight());
    assert!(called.got.body.contains("stream_failed"), "the cut itself");
    assert_eq!(b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn duplicate_stream_start() {
    let (a, b) = (
        Upstream::stream([text_of(PREAMBLE), Do::Stall]),
        Upstream::stream(whole("b")),
    );
    let called = send(&two(&a, &b)).await;
    assert_eq!(called.got.body, text(&b.steps), "B's, and nothing of A's");
    assert_eq!(called.got.body.matches("\"role\"").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn tool_args_spliced() {
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":\
        {\"arguments\":\"{\\\"code\\\":\\\"pri\"}}]}}]}\n\n";
    let a = Upstream::stream([text_of(call), Do::Reset]);
    let b = Upstream::stream(whole("b"));
    let called = send(&two(&a, &b)).await;
    assert!(called.got.is_broken_in_sight());
    assert_eq!(
        (a.calls(), b.calls()),
        (1, 0),
        "not sent again, here or there"
    );
}

#[tokio::test(start_paused = true)]
async fn ended_before_message_stop() {
    let a = Upstream::events("event: message_start\ndata: {\"type\":\"message_start\"}\n\n");
    let alone = fleet(
        &Terms {
            breaker: BreakerConfig::new(),
            ..Terms::default()
        },
        &[("A", &a)],
    );
    let out = alone.client.oneshot(chat()).await;
    let error = out.unwrap_err();
    let broken = find::<StreamBroken>(&*error).unwrap();
    assert_eq!(broken.why(), Break::EndedEarly, "typed");
    let reading = Read::<Res>::read(&Http::new(), Err(&*error));
    assert_eq!(reading.class(), Class::Transient);
    assert!(a.calls() > 1, "sent again before content");
}

#[tokio::test(start_paused = true)]
async fn prefill_done_then_529() {
    let late =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let a = Upstream::stream([Do::At(15 * SECOND), text_of(late)]);
    let terms = Terms {
        breaker: BreakerConfig::new(),
        ..Terms::default()
    };
    let called = send(&fleet(&terms, &[("A", &a)])).await;
    assert_eq!(a.calls(), 3, "the ordinary retries");
    assert_eq!(called.took, 3 * 15 * SECOND + 2 * SECOND, "backoff between");
    assert_eq!(called.got.status, 529);
    for attempt in &called.report.attempts {
        assert_eq!(attempt.status, Some(529));
        assert_eq!(attempt.class, Class::Transient);
    }
}

// -- kind timeout ---------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn keepalive_defeats_ttft() {
    let pings = (0..60).flat_map(|n| {
        let ping = match n % 3 {
            0 => ": ping\n\n",
            1 => PREAMBLE,
            _ => "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        };
        [Do::At(n * SECOND), text_of(ping)]
    });
    let (a, b) = (
        Upstream::stream(pings.collect::<Vec<_>>()),
        Upstream::stream(whole("b")),
    );
    let terms = Terms {
        limits: StreamLimits {
            first_content: Some(5 * SECOND),
            ..StreamLimits::default()
        },
        ..Terms::default()
    };
    let called = send(&fleet(&terms, &[("A", &a), ("B", &b)])).await;
    assert_eq!((called.served_by(), a.calls()), ("B", 1));
    assert!(
        called.took <= Duration::from_millis(5_200),
        "{:?}",
        called.took
    );
    assert_eq!(
        called.report.attempts[0].reason.as_deref(),
        Some("stream_no_content")
    );
    let first = called.report.first_content.unwrap();
    assert!(first >= 5 * SECOND && first <= called.took, "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn stall_after_first_token() {
    let a = Upstream::stream([text_of(token("a")), Do::At(60 * SECOND), text_of(DONE)]);
    let terms = Terms {
        limits: StreamLimits {
            idle: Some(2 * SECOND),
            ..StreamLimits::default()
        },
        ..Terms::default()
    };
    let response = fleet(&terms, &[("A", &a)])
        .client
        .oneshot(chat())
        .await
        .unwrap();
    let start = Instant::now();
    let mut body = response.into_body();
    assert!(body.frame().await.is_some());
    let error = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(start.elapsed() <= Duration::from_millis(2_500));
    assert!(error.starts_with(b"data: {\"error\""), "{error:?}");
    assert_eq!(a.open(), 0, "the upstream is gone though the body is held");
    assert!(body.frame().await.is_none());
}

/// Optional there: here a stream that is given out when complete, within a total time.
#[tokio::test(start_paused = true)]
async fn slow_drip() {
    let drip = (0..1000).flat_map(|n| {
        let at = Duration::from_millis(900 * n);
        [Do::At(at), text_of(token("a"))]
    });
    let (a, b) = (
        Upstream::stream(drip.collect::<Vec<_>>()),
        Upstream::stream(whole("b")),
    );
    let terms = Terms {
        limits: StreamLimits {
            total: Some(30 * SECOND),
            ..StreamLimits::default()
        },
        commit: Commit::Complete,
        ..Terms::default()
    };
    let called = send(&fleet(&terms, &[("A", &a), ("B", &b)])).await;
    assert_eq!(called.served_by(), "B");
    assert!(called.got.is_whole());
    assert_eq!(called.took, 30 * SECOND);
}

// -- kind cancel ----------------------------------------------------------------------------------

/// A stream, and an answer that is none: dropped at any point they are gone at once.
#[tokio::test(start_paused = true)]
async fn nonstream_disconnect() {
    let slow = |content_type, first: &'static str| Upstream {
        content_type,
        ..Upstream::stream([text_of(first), Do::At(20 * SECOND), text_of(DONE)])
    };
    for upstream in [
        slow("application/json", "{"),
        slow("application/json", "{\"choices\":[{"),
        slow("text/event-stream", PREAMBLE),
        slow(
            "text/event-stream",
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        ),
    ] {
        let fleet = fleet(&Terms::default(), &[("A", &upstream)]);
        let abort = Duration::from_millis(100);
        let call = async {
            let response = fleet.client.oneshot(chat()).await.unwrap();
            response.into_body().collect().await.unwrap();
        };
        assert!(tokio::time::timeout(abort, call).await.is_err());
        assert_eq!((upstream.calls(), upstream.open()), (1, 0));
    }
}

// -- kind fallback-policy -------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn fallback_always_fails() {
    let a = Upstream::events("data: {\"error\":{\"code\":429,\"message\":\"slow down\"}}\n\n");
    let b = Upstream::json(400, r#"{"message":"not available for this model"}"#);
    let called = send(&two(&a, &b)).await;
    assert_eq!(called.got.status, 429, "A's error is primary");
    let last = called.report.attempts.last().unwrap();
    assert_eq!(last.target.as_ref().unwrap().as_str(), "B");
    assert_eq!(last.status, Some(400), "B's is in the record");
}

#[tokio::test(start_paused = true)]
async fn fallback_pair_infinite() {
    let wrong_key = "data: {\"error\":{\"code\":401,\"message\":\"wrong key\"}}\n\n";
    let (a, b) = (Upstream::events(wrong_key), Upstream::events(wrong_key));
    let called = send(&two(&a, &b)).await;
    assert_eq!(called.got.status, 401);
    assert_eq!((a.calls(), b.calls()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn row_503_not_a_failover_signal() {
    let (a, b) = (Upstream::events(OVERLOADED), Upstream::stream(whole("b")));
    let fleet = two(&a, &b);
    for _ in 0..3 {
        let called = send(&fleet).await;
        assert_eq!(called.served_by(), "B");
        assert!(called.got.is_whole());
    }
}

// -- kinds classification and breaker: what is said inside a stream -------------------------------

#[tokio::test(start_paused = true)]
async fn soft_error_200() {
    // As it stands there, without the blank line that would end the event; and with it.
    let bare = "data: {\"error\":{\"message\":\"stream outcome exhausted\"}}";
    for text in [bare.to_owned(), format!("{bare}\n\n")] {
        let (a, b) = (Upstream::events(&text), Upstream::stream(whole("b")));
        let fleet = two(&a, &b);
        let called = send(&fleet).await;
        assert_eq!(called.served_by(), "B");
        assert_eq!(fleet.breakers[0].state(), State::Open, "A's one failure");
        assert_eq!(a.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn bedrock_400_internal_server() {
    for text in [
        "data: {\"status_code\":400,\":exception-type\":\"internalServerException\"}\n\n",
        "event: internalServerException\ndata: {\"message\":\"Try again.\"}\n\n",
    ] {
        let a = Upstream::events(text);
        let terms = Terms {
            rules: Rules::of(Vendor::Bedrock),
            ..Terms::default()
        };
        let called = send(&fleet(&terms, &[("A", &a)])).await;
        assert_eq!(called.got.reading.class(), Class::Transient, "{text}");
        assert_eq!(called.got.status, 500, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn gateway_timeout_code_not_transient() {
    let text = "data: {\"error\":{\"code\":\"gateway_stream_timeout\"}}\n\n";
    let a = Upstream::events(text);
    let terms = Terms {
        breaker: BreakerConfig::new(),
        ..Terms::default()
    };
    let called = send(&fleet(&terms, &[("A", &a)])).await;
    assert_eq!(called.got.reading.class(), Class::Transient);
    assert!(a.calls() > 1, "it was retried");

    // A code that nothing here has heard of, and the one row that a user adds for it.
    let odd = "data: {\"error\":{\"code\":\"e_4711\"}}\n\n";
    let a = Upstream::events(odd);
    let called = send(&fleet(&terms, &[("A", &a)])).await;
    assert_eq!((called.got.reading.class(), a.calls()), (Class::NotHere, 1));
    let row = Rule::new("e_4711", Class::Transient).codes(["e_4711"]);
    let terms = Terms {
        rules: terms.rules.clone().with(row),
        ..terms
    };
    let a = Upstream::events(odd);
    let called = send(&fleet(&terms, &[("A", &a)])).await;
    assert_eq!(called.got.reading.reason(), Some("e_4711"));
    assert!(a.calls() > 1);
}

#[tokio::test(start_paused = true)]
async fn sse_400_becomes_500() {
    let a = Upstream::events("event: error\ndata: {\"type\":\"invalid_request_error\"}\n\n");
    let fleet = fleet(&Terms::default(), &[("A", &a)]);
    let called = send(&fleet).await;
    assert_eq!(called.got.status, 400);
    assert_eq!(called.got.reading.class(), Class::CallerFault);
    assert_eq!(
        called.got.body,
        "{\"error\":{\"type\":\"invalid_request_error\"}}"
    );
    assert_eq!(fleet.breakers[0].state(), State::Closed);
    send(&fleet).await;
    assert_eq!(a.calls(), 2, "the other tenant is served by A");

    let unknown = Upstream::events("event: error\ndata: {\"type\":\"an_error_to_come\"}\n\n");
    let b = Upstream::stream(whole("b"));
    let fleet = two(&unknown, &b);
    for calls in 1..4 {
        assert_eq!(send(&fleet).await.served_by(), "B");
        assert_eq!(unknown.calls(), calls, "no breaker opens for it");
    }
}

// -- beyond the rows ------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn what_a_stream_counted_is_there_at_its_end() {
    let a = Upstream::stream(whole("a"));
    let response = fleet(&Terms::default(), &[("A", &a)])
        .client
        .oneshot(chat())
        .await
        .unwrap();
    let usage = response.extensions().get::<StreamUsage>().cloned().unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(count(std::str::from_utf8(&body).unwrap(), "a"), 60);
    let usage = usage.get().unwrap();
    assert_eq!((usage.input, usage.output), (7, 60));
}

#[tokio::test(start_paused = true)]
async fn a_request_brings_its_own_limits() {
    let a = Upstream::stream([Do::At(3 * SECOND), text_of(token("a")), text_of(FINISH)]);
    let fleet = fleet(&Terms::default(), &[("A", &a)]);
    let mut request = chat();
    request.extensions_mut().insert(StreamLimits {
        first_content: Some(2 * SECOND),
        ..StreamLimits::NONE
    });
    let error = fleet.client.clone().oneshot(request).await.unwrap_err();
    let why = find::<StreamBroken>(&*error).unwrap().why();
    assert_eq!(why, Break::NoContent(2 * SECOND));
    assert!(
        fleet.client.oneshot(chat()).await.is_err(),
        "the breaker is open"
    );
}
