//! The default adapter: `http::Request` and `http::Response`.

use std::error::Error;

use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use http_body::Body;

use super::{Carry, ErrorReader, MayCarry, Read, ReplayableBody, Resend, ResendTerms, table};
use crate::{
    Class, Ledger, Reading,
    attempt_timeout::AttemptLimits,
    clock::Wall,
    error::NotReplayable,
    hint::{self, Hint, Signals},
};

/// A held body is at most this long.
const MOST_HELD: u64 = 64 * 1024;

/// Whether a body is known to be short enough to be held while a driver waits.
pub(crate) fn is_small<B: Body>(body: &B) -> bool {
    body.size_hint()
        .upper()
        .is_some_and(|most| most <= MOST_HELD)
}

/// What authenticates the caller to one target.
const CREDENTIALS: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::PROXY_AUTHORIZATION,
    header::COOKIE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Reads `http` requests and responses: the default adapter of every layer.
///
/// A request is sent again although it may have been processed only if its method is idempotent
/// (RFC 9110 9.2.2), unless [`honours_idempotency_key`](Self::honours_idempotency_key) or
/// [`retry_ambiguous`](Self::retry_ambiguous) says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Http {
    terms: ResendTerms,
    hints: hint::Reader,
    errors: ErrorReader,
}

impl Http {
    /// The default reading.
    pub fn new() -> Self {
        Self::default()
    }

    /// The targets honour `Idempotency-Key`: a request that has one may be sent again although
    /// it may have been processed.
    #[must_use]
    pub fn honours_idempotency_key(mut self, yes: bool) -> Self {
        self.terms.honours_idempotency_key = yes;
        self
    }

    /// Sends requests again although they may have been processed, whatever their method.
    #[must_use]
    pub fn retry_ambiguous(mut self, yes: bool) -> Self {
        self.terms.retry_ambiguous = yes;
        self
    }

    /// Where wall time comes from, for dates in responses without a `Date`.
    #[must_use]
    pub fn wall_clock(mut self, wall: Wall) -> Self {
        self.hints = self.hints.wall_clock(wall);
        self
    }

    /// Asks `read` for what a failed response says about when to come back, before all that is
    /// known here. See [`hint::Reader::with`].
    #[must_use]
    pub fn read_hints(
        mut self,
        read: impl Fn(StatusCode, &HeaderMap) -> Option<Hint> + Send + Sync + 'static,
    ) -> Self {
        self.hints = self.hints.with(read);
        self
    }

    /// Reads errors that these crates do not know.
    #[must_use]
    pub fn read_errors(mut self, errors: ErrorReader) -> Self {
        self.errors = errors;
        self
    }

    fn signals<B>(&self, response: &Response<B>) -> Signals {
        self.hints.read(response.status(), response.headers())
    }

    fn read_response<B>(&self, response: &Response<B>) -> Reading {
        let status = response.status().as_u16();
        if let Some(reading) = response.extensions().get::<Reading>() {
            let reading = reading.clone().with_status(Some(status));
            // Who changed the class alone did not mean to unsay what the server asked; a vendor
            // table has read the headers itself.
            if reading.class().may_pass() && reading.hint().is_none() && !reading.is_vendor() {
                return reading.with_hint(self.signals(response).hint());
            }
            return reading;
        }
        if response.status().is_success() {
            // Nobody needs a hint on a success, and reading none keeps the clean path short. Only
            // gRPC says with a 200 that it failed.
            let said = table::read_grpc_with(&self.hints, response.status(), response.headers());
            let reading = said.unwrap_or_else(|| Reading::new(Class::Success));
            return reading.with_status(Some(status));
        }
        let closes = closes(response.headers());
        table::read_status(status, &self.signals(response), closes)
    }
}

fn closes(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|token| token.trim().eq_ignore_ascii_case("close"))
}

impl<B> MayCarry<Request<B>> for Http {
    fn carrier(&self) -> Option<&dyn Carry<Request<B>>> {
        Some(self)
    }
}

impl<B> Carry<Request<B>> for Http {
    fn ledger_mut<'r>(&self, request: &'r mut Request<B>) -> Option<&'r mut Ledger> {
        request.extensions_mut().get_mut()
    }

    fn open(&self, request: &mut Request<B>, ledger: Ledger) {
        request.extensions_mut().insert(ledger);
    }

    fn strip_credentials(&self, request: &mut Request<B>) {
        for name in &CREDENTIALS {
            request.headers_mut().remove(name);
        }
    }

    fn attempt_limits(&self, request: &Request<B>) -> Option<AttemptLimits> {
        request.extensions().get().copied()
    }
}

impl<B: ReplayableBody> Resend<Request<B>> for Http {
    fn try_clone(&self, request: &Request<B>) -> Result<Request<B>, NotReplayable> {
        let mut copy = Request::new(request.body().try_replay()?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Ok(copy)
    }

    fn still_replayable(&self, copy: &Request<B>, answered: bool) -> Result<(), NotReplayable> {
        copy.body().still_replayable(answered)
    }

    fn resend_safe(&self, request: &Request<B>, terms: ResendTerms) -> bool {
        let terms = terms.or(self.terms);
        request.method().is_idempotent()
            || terms.retry_ambiguous
            || (terms.honours_idempotency_key && request.headers().contains_key(IDEMPOTENCY_KEY))
    }
}

impl<B: Body> Read<Response<B>> for Http {
    fn read(&self, result: Result<&Response<B>, &(dyn Error + 'static)>) -> Reading {
        match result {
            Ok(response) => self.read_response(response),
            Err(error) => self.errors.read(error),
        }
    }

    fn holdable(&self, response: &Response<B>) -> bool {
        is_small(response.body())
    }

    fn hint_on_success(&self, response: &Response<B>) -> Option<Hint> {
        hint::on_success(response.headers())
    }

    fn attach(&self, response: &mut Response<B>, ledger: &Ledger) {
        response.extensions_mut().insert(ledger.for_caller());
    }
}
