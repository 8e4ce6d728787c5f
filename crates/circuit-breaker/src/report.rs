//! What is said of a breaker: tracing events, and with the feature `metrics` its figures.

use std::time::Duration;

use tower_spillway_core::{Refusal, clock};

use crate::{breaker::Breaker, event::Event, state::State};

pub(crate) fn change(breaker: &Breaker, event: &Event) {
    let target = breaker.shown_name();
    let reason = event.reason.map(|reason| reason.as_str());
    let open = event.open_for.map(clock::millis);
    macro_rules! say {
        ($level:ident, $text:literal) => {
            tracing::$level!(
                spillway.target = target,
                spillway.breaker.from = event.from.as_str(),
                spillway.breaker.to = event.to.as_str(),
                spillway.breaker.generation = event.generation,
                spillway.breaker.calls = event.calls,
                spillway.breaker.bad = event.bad,
                spillway.reason = reason,
                spillway.open_ms = open,
                $text
            )
        };
    }
    match event.to {
        State::Open => say!(warn, "circuit breaker opened"),
        State::ForcedOpen => say!(warn, "circuit breaker opened by hand"),
        State::HalfOpen => say!(info, "circuit breaker half-open"),
        State::Closed => say!(info, "circuit breaker closed"),
        State::Disabled => say!(warn, "circuit breaker disabled"),
        State::MetricsOnly => say!(warn, "circuit breaker only counts"),
    }
    #[cfg(feature = "metrics")]
    crate::figures::change(breaker, event);
    state(breaker, event.to);
}

pub(crate) fn refusal(
    breaker: &Breaker,
    refusal: Refusal,
    reason: Option<&'static str>,
    wait: Option<Duration>,
) {
    tracing::debug!(
        spillway.target = breaker.shown_name(),
        spillway.refusal = refusal.as_str(),
        spillway.reason = reason,
        spillway.retry_in_ms = wait.map(clock::millis),
        "call refused"
    );
    #[cfg(feature = "metrics")]
    crate::figures::refusal(breaker, refusal, reason);
}

pub(crate) fn probe(breaker: &Breaker, good: bool) {
    tracing::debug!(
        spillway.target = breaker.shown_name(),
        spillway.probe.good = good,
        "probed"
    );
    #[cfg(feature = "metrics")]
    crate::figures::probe(breaker, good);
}

#[cfg_attr(
    not(feature = "metrics"),
    expect(unused_variables, reason = "only figures show a state")
)]
pub(crate) fn state(breaker: &Breaker, state: State) {
    #[cfg(feature = "metrics")]
    crate::figures::state(breaker, state);
}
