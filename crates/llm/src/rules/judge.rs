//! From an answer to a verdict.

use std::borrow::Cow;

use tower_spillway_core::{
    Class, Reading,
    adapter::class_of_status,
    hint::{Hint, Signals},
};

use super::{Answer, Rule, Rules, Ruling};

impl Rules {
    /// What an answer means. Total: any status, headers and body have one.
    ///
    /// A success with a bare error in it is read by the status that its body names; one with an
    /// empty list of choices is Transient.
    pub fn judge(&self, answer: &Answer<'_>) -> Ruling {
        let said = answer.said();
        let success = (200..=299).contains(&answer.status());
        // With something in it, it is an answer, whatever else it says.
        let answered = said.choices().is_some_and(|n| n > 0);
        match success {
            true if answered => plain(Reading::new(Class::Success)),
            true if said.is_error() || said.is_html() => self.judge_failure(answer),
            true if said.choices() == Some(0) => {
                plain(Reading::new(Class::Transient).with_reason("empty_choices"))
            }
            true => plain(Reading::new(Class::Success)),
            false => self.judge_failure(answer),
        }
    }

    /// What an answer means that is known to be a failure: an event of a stream that carries an
    /// error, choices or not.
    pub fn judge_failure(&self, answer: &Answer<'_>) -> Ruling {
        let status = answer.failure_status();
        let row = self.rows().find(|row| row.holds(status, answer));
        match row {
            Some(row) => self.by_row(row, status, answer),
            None => by_status(status, answer),
        }
    }

    fn by_row(&self, row: &Rule, status: u16, answer: &Answer<'_>) -> Ruling {
        let signals = answer.signals();
        let believed = |hint: &Hint| match (hint.after(), row.believed_from) {
            (Some(wait), Some(from)) => wait >= from,
            _ => true,
        };
        let class = self.class_of(row);
        let class = match row.by_status {
            true => with_signals(class, status, &signals),
            false => class,
        };
        // By the row's own class: a switch changes what follows, not what happened.
        let turned_away =
            Reading::new(row.class).is_unprocessed() || is_unprocessed(status, answer);
        let reading = Reading::new(class)
            .with_hint(signals.hint().filter(believed))
            .with_reason(reason(row, answer))
            .unprocessed(row.unprocessed.unwrap_or(turned_away));
        Ruling {
            reading: finish(reading, answer),
            subclass: row.subclass,
            remedy: row.remedy.filter(|_| class == Class::TargetDown),
        }
    }
}

/// Where no row holds: as core's table does.
fn by_status(status: u16, answer: &Answer<'_>) -> Ruling {
    let signals = answer.signals();
    let own = class_of_status(status);
    let turned_away = Reading::new(own).is_unprocessed() || is_unprocessed(status, answer);
    let reading = Reading::new(with_signals(own, status, &signals))
        .with_hint(signals.hint())
        .unprocessed(turned_away);
    plain(finish(reading, answer))
}

fn plain(reading: Reading) -> Ruling {
    Ruling {
        reading: reading.from_vendor(),
        subclass: None,
        remedy: None,
    }
}

fn finish(reading: Reading, answer: &Answer<'_>) -> Reading {
    reading.from_vendor().with_status(Some(answer.status()))
}

/// What the head says moves what is known from a status alone.
fn with_signals(class: Class, status: u16, signals: &Signals) -> Class {
    match (class, status) {
        // A 503 that says when to come back asks for fewer requests.
        (Class::Transient, 503) if signals.hint().is_some() => Class::Throttled,
        (_, 403) if signals.exhausted() => Class::Throttled,
        // `x-should-retry: true` overrides the status (the SDKs of OpenAI and Anthropic).
        (Class::CallerFault, _) if signals.invites() => Class::Transient,
        (class, _) => class,
    }
}

/// The row's name; where it knows but a status, the vendor's own word says more.
fn reason(row: &Rule, answer: &Answer<'_>) -> Cow<'static, str> {
    match answer.said().name() {
        Some(name) if row.by_status => Cow::Borrowed(name),
        _ => row.reason(),
    }
}

/// Turned away before any work: overload, and a 408 that closes (RFC 9110 15.5.9).
fn is_unprocessed(status: u16, answer: &Answer<'_>) -> bool {
    match status {
        429 | 503 | 529 => true,
        408 => answer
            .header("connection")
            .is_some_and(|v| v.to_ascii_lowercase().contains("close")),
        _ => false,
    }
}
