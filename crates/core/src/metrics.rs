//! What the engine counts, with the feature `metrics`: through the facade of that name, so that any
//! recorder gets it. Without the feature nothing is compiled in.
//!
//! | name | kind | labels | what |
//! |---|---|---|---|
//! | `spillway.attempts` | counter | `target`, `class` | attempts that ended, by [`Class`]; of `refused` ones nothing was sent |
//! | `spillway.retries` | counter | `target`, `cause` | retries that were decided and granted, by what led to them: `throttled`, `transient`, `timed_out`, or `held` (refused here, to be asked again) |
//! | `spillway.possible_duplicates` | counter | `target` | those retries that follow an outcome after which the server may have done the work: each may be done, and billed, twice |
//! | `spillway.stops` | counter | `target`, `cause` | legs that ended in something else than a success and were not sent again, by [`Cause`] |
//!
//! `describe_metrics` tells a recorder what they are. An exporter for Prometheus may add `_total` to the
//! names of counters.
//!
//! `target` is the name of the target below a failover, else empty. It is the only label that comes
//! from outside these crates, and as bounded as the list of targets. No label is ever made of a
//! request, a header, a body, a key or what a server said.

use crate::{Cause, Class, Reading, TargetName};

#[cfg(not(feature = "metrics"))]
mod emit {
    use super::{Cause, Class, Reading, TargetName};

    pub(crate) fn attempt(_: Option<&TargetName>, _: Class) {}

    pub(crate) fn retry(_: Option<&TargetName>, _: &Reading) {}

    pub(crate) fn stop(_: Option<&TargetName>, _: Cause) {}
}

#[cfg(feature = "metrics")]
mod emit {
    use metrics::{Label, counter};

    use super::{Cause, Class, Reading, TargetName};

    pub(crate) fn attempt(target: Option<&TargetName>, class: Class) {
        let counter = match (target, class) {
            // The one of a clean call, whose labels need no allocation.
            (None, Class::Success) => {
                counter!("spillway.attempts", "target" => "", "class" => "success")
            }
            _ => counter!("spillway.attempts", labels(target, "class", class.as_str())),
        };
        counter.increment(1);
    }

    pub(crate) fn retry(target: Option<&TargetName>, after: &Reading) {
        let cause = match after.class() {
            Class::Refused => "held",
            _ if after.is_timed_out() => "timed_out",
            class => class.as_str(),
        };
        counter!("spillway.retries", labels(target, "cause", cause)).increment(1);
        if after.class() != Class::Refused && !after.is_unprocessed() {
            counter!("spillway.possible_duplicates", vec![label(target)]).increment(1);
        }
    }

    pub(crate) fn stop(target: Option<&TargetName>, cause: Cause) {
        counter!("spillway.stops", labels(target, "cause", cause.as_str())).increment(1);
    }

    fn labels(target: Option<&TargetName>, key: &'static str, value: &'static str) -> Vec<Label> {
        vec![label(target), Label::from_static_parts(key, value)]
    }

    fn label(target: Option<&TargetName>) -> Label {
        match target {
            Some(target) => Label::new("target", target.shared()),
            None => Label::from_static_parts("target", ""),
        }
    }
}

pub(crate) use emit::{attempt, retry, stop};

/// Tells the recorder in force what each of these is, for exporters that show it (`HELP` of
/// Prometheus). To be called once, after the recorder is installed.
#[cfg(feature = "metrics")]
pub fn describe_metrics() {
    use metrics::describe_counter;

    describe_counter!(
        "spillway.attempts",
        "Attempts that ended, by class; of refused ones nothing was sent."
    );
    describe_counter!(
        "spillway.retries",
        "Retries that were decided and granted, by what led to them."
    );
    describe_counter!(
        "spillway.possible_duplicates",
        "Requests that were sent again, here or to the next target, although the server may have done the work."
    );
    describe_counter!(
        "spillway.stops",
        "Legs that ended in something else than a success and were not sent again, by cause."
    );
}
