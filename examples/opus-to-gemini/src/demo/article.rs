//! The article's clients, as it has them: what the stack is measured against.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tower_spillway_core::{BoxError, clock};

use super::{
    played::{Attempt, Call},
    timeline::Notes,
};

/// One vendor as these clients know it.
pub(super) struct Vendor {
    pub(super) name: &'static str,
    pub(super) url: String,
    pub(super) key: &'static str,
    pub(super) model: String,
    pub(super) within: Duration,
    /// Section 5's; `None` in section 4.
    pub(super) breaker: Option<Breaker>,
}

/// `try: Opus; except: Gemini`, with a breaker around each or without.
#[derive(Clone)]
pub(super) struct Article {
    vendors: Arc<[Vendor]>,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl Article {
    pub(super) fn new(vendors: Vec<Vendor>) -> Self {
        Self {
            vendors: vendors.into(),
            http: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Fills in what is left open in `call`, in times as played.
    pub(super) async fn ask(&self, body: &Value, call: &mut Call) {
        let start = clock::now();
        let since = |at: Instant| clock::millis(at.saturating_duration_since(start));
        for vendor in self.vendors.iter() {
            if vendor.breaker.as_ref().is_some_and(|b| !b.may_pass()) {
                continue;
            }
            let sent = clock::now();
            let id = format!("{}/{}/1", call.number, vendor.name);
            let head = match timeout(vendor.within, self.send(vendor, body, &id)).await {
                Ok(head) => head,
                Err(error) => Err(error.into()),
            };
            let status = head.as_ref().ok().map(|head| head.status().as_u16());
            let first_content = since(clock::now());
            let ok = match head {
                Ok(head) if head.status().is_success() => head.collect().await.is_ok(),
                _ => false,
            };
            call.attempts.push(Attempt {
                target: vendor.name.into(),
                start: since(sent),
                elapsed: first_content.saturating_sub(since(sent)),
                class: if ok { "success" } else { "failure" }.into(),
                status,
                sent: true,
            });
            if let Some(breaker) = &vendor.breaker {
                breaker.heard(ok);
            }
            if ok {
                call.ok = true;
                call.first_content = Some(first_content);
                call.target = Some(vendor.name.into());
                call.model = Some(vendor.model.clone());
                break;
            }
            call.fallback_reason
                .get_or_insert_with(|| format!("{}: failure", vendor.name));
        }
        call.latency = since(clock::now());
    }

    async fn send(
        &self,
        vendor: &Vendor,
        body: &Value,
        id: &str,
    ) -> Result<Response<Incoming>, BoxError> {
        let mut body = body.clone();
        if let Some(body) = body.as_object_mut() {
            body.insert("model".into(), json!(vendor.model));
        }
        let request = Request::post(&vendor.url)
            .header("authorization", format!("Bearer {}", vendor.key))
            .header("content-type", "application/json")
            .header("x-attempt-id", id)
            .body(Full::from(body.to_string()))?;
        Ok(self.http.request(request).await?)
    }
}

/// The breaker of section 5: so many failures in a row, so long open, then one user's call finds
/// out.
pub(super) struct Breaker {
    name: &'static str,
    failures: u32,
    open: Duration,
    state: Mutex<State>,
    notes: Notes,
}

#[derive(Clone, Copy)]
enum State {
    Closed { run: u32 },
    Open { until: Instant },
    HalfOpen,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

impl Breaker {
    pub(super) fn new(name: &'static str, failures: u32, open: Duration, notes: Notes) -> Self {
        Self {
            name,
            failures,
            open,
            state: Mutex::new(State::Closed { run: 0 }),
            notes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go(&self, state: &mut State, to: State, reason: Option<&str>) {
        if state.name() != to.name() {
            self.notes.note(self.name, state.name(), to.name(), reason);
        }
        *state = to;
    }

    fn may_pass(&self) -> bool {
        let mut state = self.state();
        match *state {
            State::Closed { .. } => true,
            State::Open { until } if clock::now() >= until => {
                self.go(&mut state, State::HalfOpen, None);
                true
            }
            State::Open { .. } | State::HalfOpen => false,
        }
    }

    fn heard(&self, ok: bool) {
        let mut state = self.state();
        let opens = State::Open {
            until: clock::now() + self.open,
        };
        match (*state, ok) {
            // A call from before: it says nothing of now.
            (State::Open { .. }, _) => {}
            (_, true) => self.go(&mut state, State::Closed { run: 0 }, None),
            (State::HalfOpen, false) => self.go(&mut state, opens, Some("probe_failed")),
            (State::Closed { run }, false) if run + 1 >= self.failures => {
                self.go(&mut state, opens, Some("consecutive"));
            }
            (State::Closed { run }, false) => *state = State::Closed { run: run + 1 },
        }
    }
}
