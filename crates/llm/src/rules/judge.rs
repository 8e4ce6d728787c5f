//! From an answer to a verdict.

use std::borrow::Cow;

use tower_spillway_core::{
    Class, Reading,
    adapter::class_of_status,
    hint::{self, Hint},
};

use super::{Answer, Rule, Rules, Verdict, statuses};
use crate::said;

impl Rules {
    /// What an answer means. Total: any status, headers and body have one.
    ///
    /// A success with a bare error in it is read by the status that its body names; one with an
    /// empty list of choices is Transient.
    pub fn judge(&self, answer: &Answer<'_>) -> Verdict {
        let said = answer.said();
        let status = answer.status();
        if !(200..=299).contains(&status) {
            return self.failed(status, answer);
        }
        // With something in it, it is an answer, whatever else it says.
        if said.choices().is_some_and(|n| n > 0) {
            return plain(Reading::new(Class::Success));
        }
        if said.is_error() {
            let status = said.number().or_else(|| statuses::of_body(said));
            return self.failed(status.unwrap_or(statuses::UNKNOWN_ERROR), answer);
        }
        if said.choices() == Some(0) {
            return plain(Reading::new(Class::Transient).with_reason("empty_choices"));
        }
        if said.is_html() {
            return self.failed(status, answer);
        }
        plain(Reading::new(Class::Success))
    }

    fn failed(&self, status: u16, answer: &Answer<'_>) -> Verdict {
        let row = self.rows().find(|row| row.holds(status, answer));
        let headers = answer.headers();
        let asked = headers.and_then(|h| hint::from_headers(h, || answer.now()));
        let asked = said::hint(asked, answer.said(), || answer.now());
        match row {
            Some(row) => self.by_row(row, status, asked, answer),
            None => by_status(status, asked, answer),
        }
    }

    fn by_row(&self, row: &Rule, status: u16, asked: Option<Hint>, answer: &Answer<'_>) -> Verdict {
        let class = self.class_of(row);
        let believed = |hint: &Hint| match (hint.after(), row.believed_from) {
            (Some(wait), Some(from)) => wait >= from,
            _ => true,
        };
        let asked = asked.filter(believed);
        let class = match class {
            Class::CallerFault if row.by_status && insists(answer) => Class::Transient,
            class => when_hinted(class, status, asked),
        };
        // By the row's own class: a switch changes what follows, not what happened.
        let turned_away =
            Reading::new(row.class).is_unprocessed() || is_unprocessed(status, answer);
        let reading = Reading::new(class)
            .with_hint(asked)
            .with_reason(reason(row, answer))
            .unprocessed(row.unprocessed.unwrap_or(turned_away));
        Verdict {
            reading: finish(reading, answer),
            subclass: row.subclass,
            remedy: row.remedy.filter(|_| class == Class::TargetDown),
        }
    }
}

fn by_status(status: u16, asked: Option<Hint>, answer: &Answer<'_>) -> Verdict {
    let class = when_hinted(class_of_status(status), status, asked);
    let reading = Reading::new(class).with_hint(asked);
    let unprocessed = reading.is_unprocessed() || is_unprocessed(status, answer);
    plain(finish(reading.unprocessed(unprocessed), answer))
}

fn plain(reading: Reading) -> Verdict {
    Verdict {
        reading: reading.from_vendor(),
        subclass: None,
        remedy: None,
    }
}

fn finish(reading: Reading, answer: &Answer<'_>) -> Reading {
    reading.from_vendor().with_status(Some(answer.status()))
}

/// A 503 that says when to come back asks for fewer requests.
fn when_hinted(class: Class, status: u16, asked: Option<Hint>) -> Class {
    match class {
        Class::Transient if status == 503 && asked.and_then(Hint::after).is_some() => {
            Class::Throttled
        }
        class => class,
    }
}

/// The row's name; where it knows but a status, the vendor's own word says more.
fn reason(row: &Rule, answer: &Answer<'_>) -> Cow<'static, str> {
    match answer.said().name() {
        Some(name) if row.by_status => Cow::Owned(name.to_owned()),
        _ => row.reason(),
    }
}

/// `x-should-retry: true` overrides the status (the SDKs of OpenAI and Anthropic).
fn insists(answer: &Answer<'_>) -> bool {
    answer
        .header("x-should-retry")
        .is_some_and(|v| v.eq_ignore_ascii_case("true"))
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
