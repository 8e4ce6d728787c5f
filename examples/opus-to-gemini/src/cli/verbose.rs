//! `-v`: one line on stderr for each retry, hop, refusal and change of a breaker.

use std::fmt::{self, Write};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer, layer::Context, layer::SubscriberExt, registry::Registry, util::SubscriberInitExt,
};

/// Shows events up to a level.
pub(super) fn start(most: Level) {
    Registry::default().with(Lines { most }).init();
}

struct Lines {
    most: Level,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        // Of the stack alone: the libraries below have much to say.
        let ours = ["tower_", "opus_to_gemini"];
        let target = metadata.target();
        if *metadata.level() > self.most || !ours.iter().any(|o| target.starts_with(o)) {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        eprintln!("{}", line.finish(*metadata.level()));
    }
}

/// What an event says.
#[derive(Default)]
struct Line {
    message: String,
    target: String,
    attempt: Option<u64>,
    most: Option<u64>,
    class: String,
    status: Option<u64>,
    elapsed: Option<u64>,
    wait: Option<u64>,
    cause: String,
    rest: String,
}

impl Visit for Line {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "spillway.attempt" => self.attempt = Some(value),
            "spillway.max_attempts" => self.most = Some(value),
            "http.response.status_code" => self.status = Some(value),
            "spillway.elapsed_ms" => self.elapsed = Some(value),
            "spillway.wait_ms" => self.wait = Some(value),
            "http.request.resend_count" => {}
            name => self.other(name, &value),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "spillway.target" => value.clone_into(&mut self.target),
            "error.type" => value.clone_into(&mut self.class),
            "spillway.cause" => value.clone_into(&mut self.cause),
            name => self.other(name, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.other(name, &format_args!("{value:?}")),
        }
    }
}

impl Line {
    fn other(&mut self, name: &str, value: &dyn fmt::Display) {
        let name = name.strip_prefix("spillway.").unwrap_or(name);
        // A string cannot fail to be written to.
        write!(self.rest, " {name}={value}").ok();
    }

    fn finish(self, level: Level) -> String {
        let mut line = match level {
            Level::WARN => "warning:".to_owned(),
            Level::ERROR => "error:".to_owned(),
            _ => "info:".to_owned(),
        };
        let mut add = |part: fmt::Arguments<'_>| line.write_fmt(part).ok();
        if !self.target.is_empty() {
            add(format_args!(" {}", self.target));
        }
        if let Some(wait) = self.wait {
            // A retry: always in this order, so that lines can be cut into columns.
            let (n, most) = (self.attempt.unwrap_or(0), self.most.unwrap_or(0));
            let status = self.status.map_or("-".into(), |s| s.to_string());
            let took = self.elapsed.unwrap_or(0);
            add(format_args!(
                " attempt {n}/{most} {} {status} {took}ms wait {wait}ms",
                self.class
            ));
            if !self.cause.is_empty() {
                add(format_args!(" ({})", self.cause));
            }
            return line;
        }
        add(format_args!(" {}", self.message));
        if !self.class.is_empty() {
            add(format_args!(" class={}", self.class));
        }
        if let Some(status) = self.status {
            add(format_args!(" status={status}"));
        }
        if !self.cause.is_empty() {
            add(format_args!(" cause={}", self.cause));
        }
        line.push_str(&self.rest);
        line
    }
}
