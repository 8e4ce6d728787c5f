//! Anthropic's own API: the error's name is its type, a full account is a 400.
//!
//! Sources: platform.claude.com/docs/en/api/errors; captures in anthropics/claude-code issues 66297
//! and 91322.

use tower_spillway_core::Class;

use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    let mut rows = vec![
        Rule::new("billing_error", Class::TargetDown)
            .statuses(400..=499)
            .kinds(["billing_error"])
            .remedy(Remedy::Credit),
        Rule::new("overloaded_error", Class::Transient)
            .statuses(500..=599)
            .kinds(["overloaded_error"])
            .unprocessed(true),
    ];
    rows.extend(account());
    rows
}

/// What both endpoints say of the account and the prompt.
pub(super) fn account() -> Vec<Rule> {
    vec![
        Rule::new("enforced_spend_limit_reached", Class::TargetDown)
            .status(429)
            .codes(["enforced_spend_limit_reached"])
            .remedy(Remedy::Quota),
        Rule::new("credit_balance_too_low", Class::TargetDown)
            .statuses(400..=429)
            .messages(["credit balance is too low"])
            .remedy(Remedy::Credit),
        Rule::new("usage_limit_reached", Class::TargetDown)
            .statuses(400..=429)
            .messages([
                "reached your specified api usage limits",
                "reached your specified workspace api usage limits",
                "reached your api usage limits",
            ])
            .remedy(Remedy::Quota),
        Rule::new("organization_disabled", Class::TargetDown)
            .statuses(400..=403)
            .messages(["organization has been disabled"])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .status(413)
            .messages([
                "prompt is too long",
                "exceed context limit",
                "exceeds the context window",
            ])
            .subclass(Subclass::ContextLength),
        Rule::new("content_policy", Class::CallerFault)
            .status(400)
            .messages(["blocked by content filtering policy"])
            .subclass(Subclass::ContentPolicy),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{CallerFault, NotHere, TargetDown, Transient};

    #[test]
    fn every_row() {
        check(
            Vendor::Anthropic,
            &rules(),
            &[
                (
                    "billing_error",
                    403,
                    r#"{"error":{"type":"billing_error","message":"Pay."}}"#,
                    TargetDown,
                ),
                (
                    "overloaded_error",
                    529,
                    r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                    Transient,
                ),
                (
                    "enforced_spend_limit_reached",
                    429,
                    r#"{"error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
                    TargetDown,
                ),
                (
                    "credit_balance_too_low",
                    400,
                    r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
                    TargetDown,
                ),
                (
                    "usage_limit_reached",
                    400,
                    r#"{"error":{"message":"You have reached your specified workspace API usage limits."}}"#,
                    TargetDown,
                ),
                (
                    "organization_disabled",
                    400,
                    r#"{"error":{"message":"This organization has been disabled."}}"#,
                    TargetDown,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                    NotHere,
                ),
                (
                    "content_policy",
                    400,
                    r#"{"error":{"message":"Output blocked by content filtering policy"}}"#,
                    CallerFault,
                ),
            ],
        );
    }
}
