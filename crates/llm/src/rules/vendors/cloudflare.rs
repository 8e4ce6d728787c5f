//! Cloudflare's edge, which stands in front of many vendors: its rows follow each vendor's own.
//!
//! Sources: anthropics/claude-code issues 30437 and 67341; developers.cloudflare.com 5xx errors.

use tower_spillway_core::Class;

use crate::{Remedy, Rule};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        // "Just a moment…": no answer of an API, here or anywhere behind this edge.
        Rule::new("html_answer", Class::TargetDown)
            .statuses(200..=299)
            .when(|answer| answer.said().is_html())
            .remedy(Remedy::Address),
        Rule::new("edge_challenge", Class::TargetDown)
            .status(403)
            .when(|answer| answer.said().is_html())
            .remedy(Remedy::Address),
        Rule::new("edge_denied", Class::TargetDown)
            .status(403)
            .messages(["error code: 1020", "error code: 1010", "error code: 1009"])
            .remedy(Remedy::Address),
        Rule::new("edge_rate_limited", Class::Throttled)
            .status(403)
            .status(429)
            .messages(["error code: 1015"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{TargetDown, Throttled, Transient};

    #[test]
    fn every_row() {
        check(
            Vendor::Cloudflare,
            &rules(),
            &[
                (
                    "html_answer",
                    200,
                    "<!DOCTYPE html><title>Just a moment...</title>",
                    TargetDown,
                ),
                ("edge_challenge", 403, "<html>", TargetDown),
                ("edge_denied", 403, "error code: 1020", TargetDown),
                ("edge_rate_limited", 429, "error code: 1015", Throttled),
                ("failed", 520, "error code: 520", Transient),
                ("failed", 502, "<html>", Transient),
            ],
        );
    }
}
