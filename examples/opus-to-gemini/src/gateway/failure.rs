//! From an outcome that is no answer to what the caller is told.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tower_circuit_breaker::Breaker;
use tower_failover::{AllRefused, NotPrepared};
use tower_spillway_core::{
    BoxError, Class, Ledger, Reading, Report, TimedOut,
    clock::millis,
    error::{TimeLimit, find},
    ledger::Attempt,
};

use super::{error::ApiError, vendor_error::Said};
use crate::pipeline::Pipeline;

/// What is known of a call whose outcome is no answer.
pub(super) struct Failed<'c> {
    pipeline: &'c Pipeline,
    report: Report,
}

impl<'c> Failed<'c> {
    pub(super) fn new(pipeline: &'c Pipeline, ledger: &Ledger) -> Self {
        Self {
            pipeline,
            report: ledger.report(),
        }
    }

    /// There was no response.
    pub(super) fn error(&self, error: &BoxError) -> ApiError {
        if find::<NotPrepared>(&**error).is_some() {
            let message = "The body cannot be read: it is nested too deeply, or no JSON.";
            return ApiError::invalid(StatusCode::BAD_REQUEST, "invalid_request", message);
        }
        if let Some(refused) = find::<AllRefused>(&**error) {
            let message = "Every target is out, so nothing was sent.";
            let wait = refused.retry_in().or_else(|| self.first_back());
            return self.out("all_targets_refused", message.to_owned(), wait);
        }
        let late = find::<TimedOut>(&**error);
        if let Some(late) = late.filter(|late| late.limit() == TimeLimit::Call) {
            let limit = late.after().as_millis();
            let message = format!("No answer within the {limit} ms that the call may take.");
            let status = StatusCode::GATEWAY_TIMEOUT;
            return ApiError::out(status, "deadline_exceeded", message).tried(self.tried());
        }
        let message = format!("{} could serve.{}", self.nobody(), self.story(None));
        self.out("all_targets_failed", message, self.first_back())
    }

    /// A vendor answered with an error. That the request is wrong comes back as the vendor said
    /// it; what says that this target cannot serve is not the caller's to mend.
    pub(super) fn answer(
        &self,
        status: StatusCode,
        reading: &Reading,
        body: Bytes,
    ) -> Result<Bytes, ApiError> {
        let target = self
            .report
            .target
            .as_ref()
            .map_or("the vendor", |t| t.as_str());
        let said = Said::read(&body, |text| self.pipeline.blot(text));
        if matches!(reading.class(), Class::CallerFault | Class::NotHere) {
            return Ok(said.into_body(target, status.as_u16(), body));
        }
        let asked = reading.hint().and_then(|hint| hint.after());
        let wait = [asked, self.first_back()].into_iter().flatten().min();
        let message = format!(
            "{} could serve.{}",
            self.nobody(),
            self.story(Some(said.message.as_str()).filter(|m| !m.is_empty()))
        );
        Err(self.out("all_targets_failed", message, wait))
    }

    fn out(&self, code: &'static str, message: String, wait: Option<Duration>) -> ApiError {
        ApiError::out(StatusCode::SERVICE_UNAVAILABLE, code, message)
            .retry_after(wait.unwrap_or_default())
            .tried(self.tried())
    }

    fn nobody(&self) -> &'static str {
        let mut targets: Vec<_> = self.report.attempts.iter().map(|a| &a.target).collect();
        targets.dedup();
        match targets.len() {
            0 | 1 => "Nobody",
            _ => "No target",
        }
    }

    /// What each target came to, in a sentence.
    fn story(&self, last_words: Option<&str>) -> String {
        let mut last: Vec<&Attempt> = Vec::new();
        for attempt in &self.report.attempts {
            match last.iter_mut().find(|known| known.target == attempt.target) {
                // A refusal after a real outcome is not what the target came to.
                Some(_) if attempt.class == Class::Refused => {}
                Some(known) => *known = attempt,
                None => last.push(attempt),
            }
        }
        let told = |attempt: &&Attempt| {
            let target = attempt.target.as_ref().map_or("?", |t| t.as_str());
            match attempt.status {
                Some(status) => format!("{target} answered {status} ({})", attempt.class),
                None => format!("{target}: {}", attempt.class),
            }
        };
        let parts: Vec<String> = last.iter().map(told).collect();
        let mut story = match parts.is_empty() {
            true => String::new(),
            false => format!(" {}.", parts.join(", ")),
        };
        if let Some(words) = last_words {
            story.push_str(&format!(" The last one said: {words}"));
        }
        story
    }

    /// When the first of the targets that refuse now may be back.
    fn first_back(&self) -> Option<Duration> {
        let breakers = self.pipeline.breakers().iter().map(Breaker::snapshot);
        breakers.filter_map(|breaker| breaker.retry_in).min()
    }

    fn tried(&self) -> Value {
        tried(&self.report)
    }
}

/// Every attempt, with nothing of what was sent or said.
pub(super) fn tried(report: &Report) -> Value {
    let attempts = report.attempts.iter().map(|attempt| {
        json!({
            "target": attempt.target.as_ref().map(|t| t.as_str()),
            "start_ms": millis(attempt.start),
            "elapsed_ms": millis(attempt.elapsed),
            "class": attempt.class.as_str(),
            "status": attempt.status,
            "reason": attempt.reason,
            "wait_ms": attempt.wait.map(millis),
            "cause": attempt.cause.map(|cause| cause.as_str()),
        })
    });
    Value::Array(attempts.collect())
}
