//! The figures of a failover, by the `metrics` facade. See the [module docs](crate).

use metrics::{Label, counter, describe_counter};

/// Tells the recorder in force what each of the [figures](crate#metrics) is, for exporters that show
/// it (`HELP` of Prometheus). To be called once, after the recorder is installed.
pub fn describe_metrics() {
    describe_counter!(
        "spillway.failover.hops",
        "Calls that went on to the next target, by why."
    );
    describe_counter!(
        "spillway.possible_duplicates",
        "Requests that were sent again, here or to the next target, although the server may have done the work."
    );
}

pub(crate) fn hop(from: &str, to: &str, cause: &'static str) {
    let labels = vec![
        Label::new("from", from.to_owned()),
        Label::new("to", to.to_owned()),
        Label::new("cause", cause),
    ];
    counter!("spillway.failover.hops", labels).increment(1);
}

pub(crate) fn possible_duplicate(at: &str) {
    let label = Label::new("target", at.to_owned());
    counter!("spillway.possible_duplicates", vec![label]).increment(1);
}
