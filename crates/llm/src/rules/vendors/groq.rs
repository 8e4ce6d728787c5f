//! Groq: a 413 may be a rate limit, flex capacity is a 498.
//!
//! Sources: console.groq.com/docs/errors; assafelovic/gpt-researcher issue 985.

use tower_spillway_core::Class;

use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("request_above_limit", Class::NotHere)
            .status(413)
            .codes(["rate_limit_exceeded"]),
        Rule::new("requested_above_limit", Class::NotHere)
            .status(429)
            .when(|answer| answer.said().asks_above_limit()),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .status(413)
            .codes(["context_length_exceeded"])
            .subclass(Subclass::ContextLength),
        Rule::new("model_not_found", Class::TargetDown)
            .statuses(400..=404)
            .codes([
                "model_not_found",
                "model_decommissioned",
                "model_not_active",
            ])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("organization_restricted", Class::TargetDown)
            .statuses(400..=403)
            .codes(["organization_restricted", "blocked_api_access"])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        Rule::new("flex_capacity_exceeded", Class::Transient)
            .status(498)
            .unprocessed(true),
        Rule::new("failed_dependency", Class::Transient).status(424),
        Rule::new("please_reduce_length", Class::CallerFault)
            .status(400)
            .messages(["reduce the length of the messages"])
            .subclass(Subclass::ContextLength),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{NotHere, TargetDown, Transient};

    #[test]
    fn every_row() {
        check(
            Vendor::Groq,
            &rules(),
            &[
                (
                    "request_above_limit",
                    413,
                    r#"{"error":{"type":"tokens","code":"rate_limit_exceeded","message":"Limit 6000, Requested 14368"}}"#,
                    NotHere,
                ),
                (
                    "requested_above_limit",
                    429,
                    r#"{"error":{"code":"rate_limit_exceeded","message":"Limit 6000, Requested 14368"}}"#,
                    NotHere,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"error":{"code":"context_length_exceeded"}}"#,
                    NotHere,
                ),
                (
                    "model_not_found",
                    400,
                    r#"{"error":{"code":"model_decommissioned"}}"#,
                    TargetDown,
                ),
                (
                    "organization_restricted",
                    400,
                    r#"{"error":{"code":"organization_restricted"}}"#,
                    TargetDown,
                ),
                (
                    "flex_capacity_exceeded",
                    498,
                    r#"{"error":{"code":"capacity_exceeded"}}"#,
                    Transient,
                ),
                (
                    "failed_dependency",
                    424,
                    r#"{"error":{"type":"failed_dependency"}}"#,
                    Transient,
                ),
                (
                    "please_reduce_length",
                    400,
                    r#"{"error":{"message":"Please reduce the length of the messages or completion."}}"#,
                    NotHere,
                ),
            ],
        );
    }
}
