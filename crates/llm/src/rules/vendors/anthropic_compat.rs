//! Anthropic's OpenAI-compatible endpoint: the name is in `error.code`, `error.type` is
//! `invalid_request_error` whatever happened, so no row here looks at it.
//!
//! Sources: FoundationAgents/OpenManus issue 746, yinzara/ha-config-ai-agent issue 5.

use tower_spillway_core::Class;

use super::anthropic;
use crate::{Remedy, Rule};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    let mut rows = vec![
        Rule::new("billing_error", Class::TargetDown)
            .statuses(400..=499)
            .codes(["billing_error"])
            .remedy(Remedy::Credit),
        Rule::new("overloaded_error", Class::Transient)
            .statuses(500..=599)
            .codes(["overloaded_error"])
            .unprocessed(true),
    ];
    rows.extend(anthropic::account());
    rows
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{CallerFault, NotHere, TargetDown, Throttled, Transient};

    #[test]
    fn every_row() {
        check(
            Vendor::AnthropicCompat,
            &rules(),
            &[
                (
                    "billing_error",
                    402,
                    r#"{"error":{"code":"billing_error","type":"invalid_request_error"}}"#,
                    TargetDown,
                ),
                (
                    "overloaded_error",
                    529,
                    r#"{"error":{"code":"overloaded_error","type":"invalid_request_error"}}"#,
                    Transient,
                ),
                (
                    "enforced_spend_limit_reached",
                    429,
                    r#"{"error":{"code":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
                    TargetDown,
                ),
                (
                    "credit_balance_too_low",
                    400,
                    r#"{"error":{"code":"invalid_request_error","message":"Your credit balance is too low"}}"#,
                    TargetDown,
                ),
                (
                    "usage_limit_reached",
                    400,
                    r#"{"error":{"message":"You have reached your specified API usage limits."}}"#,
                    TargetDown,
                ),
                (
                    "organization_disabled",
                    403,
                    r#"{"error":{"message":"This organization has been disabled."}}"#,
                    TargetDown,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000"}}"#,
                    NotHere,
                ),
                (
                    "content_policy",
                    400,
                    r#"{"error":{"message":"Output blocked by content filtering policy"}}"#,
                    CallerFault,
                ),
                // The status decides, whatever the type says.
                (
                    "rate_limit_error",
                    429,
                    r#"{"error":{"code":"rate_limit_error","type":"invalid_request_error"}}"#,
                    Throttled,
                ),
            ],
        );
    }
}
