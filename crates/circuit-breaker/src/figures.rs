//! The figures of breakers, by the `metrics` facade. See the [module docs](crate).

use metrics::{Label, counter, describe_counter, describe_gauge, gauge};
use tower_spillway_core::Refusal;

use crate::{breaker::Breaker, event::Event, state::State};

/// Tells the recorder in force what each of the [figures](crate#metrics) is, for exporters that show
/// it (`HELP` of Prometheus). To be called once, after the recorder is installed.
pub fn describe_metrics() {
    describe_gauge!(
        "spillway.breaker.state",
        "The state of a circuit breaker: 0 closed, 1 half-open, 2 open, 3 forced open, -1 only counting, -2 disabled."
    );
    describe_counter!(
        "spillway.breaker.transitions",
        "Changes of a circuit breaker's state."
    );
    describe_counter!(
        "spillway.breaker.refusals",
        "Calls that a circuit breaker refused."
    );
    describe_counter!(
        "spillway.breaker.probes",
        "Probes of a target without a user, by how they went."
    );
}

pub(crate) fn state(breaker: &Breaker, state: State) {
    let value = match state {
        State::Closed => 0.0,
        State::HalfOpen => 1.0,
        State::Open => 2.0,
        State::ForcedOpen => 3.0,
        State::MetricsOnly => -1.0,
        State::Disabled => -2.0,
    };
    // Breakers of keys have no name: their states would overwrite each other.
    if !breaker.is_secret() {
        gauge!("spillway.breaker.state", labels(breaker, [])).set(value);
    }
}

pub(crate) fn change(breaker: &Breaker, event: &Event) {
    let reason = event.reason.map_or("", |reason| reason.as_str());
    let labels = labels(
        breaker,
        [
            ("from", event.from.as_str()),
            ("to", event.to.as_str()),
            ("reason", reason),
        ],
    );
    counter!("spillway.breaker.transitions", labels).increment(1);
}

pub(crate) fn refusal(breaker: &Breaker, refusal: Refusal, reason: Option<&'static str>) {
    let labels = labels(
        breaker,
        [
            ("refusal", refusal.as_str()),
            ("reason", reason.unwrap_or("")),
        ],
    );
    counter!("spillway.breaker.refusals", labels).increment(1);
}

pub(crate) fn probe(breaker: &Breaker, good: bool) {
    let outcome = if good { "good" } else { "bad" };
    let labels = labels(breaker, [("outcome", outcome)]);
    counter!("spillway.breaker.probes", labels).increment(1);
}

fn labels<const N: usize>(
    breaker: &Breaker,
    more: [(&'static str, &'static str); N],
) -> Vec<Label> {
    let target = breaker.shown_name().unwrap_or("").to_owned();
    let mut labels = vec![Label::new("target", target)];
    labels.extend(more.map(|(name, value)| Label::new(name, value)));
    labels
}
