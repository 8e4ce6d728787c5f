//! What came of an item.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tower_spillway_core::{Cause, Class, TimeLimit, TimedOut, error::find};
use tower_spillway_llm::PriceTable;

use super::{BadLine, Item};
use crate::chat::{Answer, Asked, ChatError, Record};

/// What came of an item.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The answer, or what went wrong.
    pub answer: Result<Answer, Failed>,
    /// Of its last call; `None` if there was none.
    pub record: Option<Record>,
    /// How often it went back into the queue.
    pub requeues: u32,
}

/// An item without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failed {
    /// The vendor's status, if there was an answer.
    pub status: Option<u16>,
    /// The class of the last attempt.
    pub class: String,
    /// At most 500 characters: the vendor's, or what happened instead.
    pub message: String,
}

/// Whether an item goes back into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    No,
    /// Not before this.
    In(Option<Duration>),
    /// Everybody refuses, until then.
    AllRefuse(Option<Duration>),
}

impl Outcome {
    pub(super) fn bad(line: &BadLine) -> Self {
        Self {
            answer: Err(Failed {
                status: None,
                class: Class::CallerFault.as_str().into(),
                message: format!("the line is no chat: {line}"),
            }),
            record: None,
            requeues: 0,
        }
    }

    pub(super) fn new(asked: Asked, requeues: u32, prices: &PriceTable) -> Self {
        let record = Record::new(&asked.report, asked.usage(), prices);
        let class = asked.report.attempts.last().map(|a| a.class);
        let answer = asked.answer.map_err(|error| {
            let class = match (&error, error.all_refused()) {
                (_, Some(_)) => Class::Refused,
                (ChatError::NoText { .. }, _) => Class::NotHere,
                _ => class.unwrap_or(Class::Transient),
            };
            Failed::new(error, class)
        });
        Self {
            answer,
            record: Some(record),
            requeues,
        }
    }

    /// Something here is wrong, not at a vendor.
    pub(super) fn broken(requeues: u32) -> Self {
        Self {
            answer: Err(Failed {
                status: None,
                class: Class::Cancelled.as_str().into(),
                message: "the call ended without an outcome".into(),
            }),
            record: None,
            requeues,
        }
    }

    /// Whether there is an answer.
    pub fn is_ok(&self) -> bool {
        self.answer.is_ok()
    }

    /// As a line of the output.
    pub(super) fn line(&self, item: &Item) -> Value {
        let mut line = json!({
            "line": item.line, "id": item.id, "key": item.key, "input": item.digest,
        });
        let Some(fields) = line.as_object_mut() else {
            return line;
        };
        match &self.answer {
            Ok(answer) => {
                fields.insert("answer".into(), json!(answer.text));
                if item.whole {
                    let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
                    let response = json!({"status_code": 200, "body": body});
                    fields.insert("response".into(), response);
                    fields.insert("custom_id".into(), json!(item.id));
                }
                fields.insert("error".into(), Value::Null);
            }
            Err(failed) => {
                fields.insert("error".into(), json!(failed));
            }
        }
        if let Ok(Value::Object(record)) = serde_json::to_value(&self.record) {
            fields.extend(record);
        }
        fields.insert("requeues".into(), json!(self.requeues));
        line
    }
}

impl Failed {
    fn new(error: ChatError, class: Class) -> Self {
        let status = error.status();
        let message = match error {
            ChatError::Vendor { message, .. } => message,
            other => format!("{:#}", anyhow::Error::from(other)),
        };
        Self {
            status,
            class: class.as_str().into(),
            message: message.chars().take(500).collect(),
        }
    }
}

/// Whether the same call may be served later: what ended it was that nobody could now.
pub(super) fn again(asked: &Asked) -> Again {
    let error = match &asked.answer {
        Ok(_) => return Again::No,
        Err(error) => error,
    };
    if let Some(refused) = error.all_refused() {
        return Again::AllRefuse(refused.retry_in());
    }
    let asked_to_wait = match error {
        ChatError::Vendor { asked_to_wait, .. } => *asked_to_wait,
        ChatError::NoAnswer(error) => {
            // Ours, not an attempt's: the deadline passed while it waited or was sent.
            let call = find::<TimedOut>(&**error).map(TimedOut::limit);
            if call == Some(TimeLimit::Call) {
                return Again::In(None);
            }
            None
        }
        // No item is asked for as a stream.
        ChatError::Broken { .. } | ChatError::NoText { .. } | ChatError::AllRefused(_) => {
            return Again::No;
        }
    };
    // Only what may pass: a key, a model or a request that is wrong stays so.
    let sent = |class: Class| class != Class::Refused;
    let attempts = &asked.report.attempts;
    let last = attempts.iter().rev().find(|a| sent(a.class));
    let may_pass = last.is_some_and(|a| a.class.may_pass());
    let later = attempts.iter().filter_map(|a| a.cause).any(|cause| {
        matches!(
            cause,
            Cause::HintTooLong
                | Cause::AttemptsExhausted
                | Cause::BudgetDenied { .. }
                | Cause::DeadlineWouldPass
                // Another target came first, and could not serve it either.
                | Cause::OtherTargetFirst
                | Cause::NotReady
                | Cause::Refused
        )
    });
    match may_pass && later {
        true => Again::In(asked_to_wait),
        false => Again::No,
    }
}
