//! OpenAI: `error.code` names the error; one code, `rate_limit_exceeded`, is both waitable and not.
//!
//! Source: developers.openai.com/api/docs/guides/error-codes.

use tower_spillway_core::Class;

use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("spend_limit_exceeded", Class::TargetDown)
            .statuses(400..=429)
            .codes([
                "organization_spend_limit_exceeded",
                "project_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                "billing_hard_limit_reached",
            ])
            .remedy(Remedy::Quota),
        Rule::new("credit_balance_exhausted", Class::TargetDown)
            .statuses(400..=429)
            .codes([
                "credit_balance_exhausted",
                "billing_not_active",
                "insufficient_quota",
            ])
            .remedy(Remedy::Credit),
        // The code of this family varies.
        Rule::new("insufficient_quota", Class::TargetDown)
            .statuses(400..=429)
            .kinds(["insufficient_quota"])
            .remedy(Remedy::Credit),
        // This request alone is above the limit: no wait helps here, another target may take it.
        Rule::new("request_above_limit", Class::NotHere)
            .status(429)
            .status(413)
            .when(|answer| answer.said().asks_above_limit()),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .status(413)
            .codes(["context_length_exceeded"])
            .subclass(Subclass::ContextLength),
        Rule::new("content_policy", Class::CallerFault)
            .statuses(400..=403)
            .codes([
                "invalid_prompt",
                "content_policy_violation",
                "content_filter",
                "moderation_blocked",
            ])
            .subclass(Subclass::ContentPolicy),
        Rule::new("model_not_found", Class::TargetDown)
            .statuses(400..=404)
            .codes(["model_not_found", "model_not_available"])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("unsupported_region", Class::TargetDown)
            .status(403)
            .codes(["unsupported_country_region_territory"])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Address),
        Rule::new("invalid_api_key", Class::TargetDown)
            .statuses(400..=403)
            .codes(["invalid_api_key", "account_deactivated"])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        Rule::new("maximum_context_length", Class::CallerFault)
            .status(400)
            .status(413)
            .messages(["maximum context length", "exceeds the context window"])
            .subclass(Subclass::ContextLength),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{CallerFault, NotHere, TargetDown, Throttled};

    #[test]
    fn every_row() {
        check(
            Vendor::OpenAi,
            &rules(),
            &[
                (
                    "spend_limit_exceeded",
                    429,
                    r#"{"error":{"type":"insufficient_quota","code":"project_spend_limit_exceeded"}}"#,
                    TargetDown,
                ),
                (
                    "credit_balance_exhausted",
                    429,
                    r#"{"error":{"code":"credit_balance_exhausted"}}"#,
                    TargetDown,
                ),
                (
                    "insufficient_quota",
                    429,
                    r#"{"error":{"type":"insufficient_quota","code":null}}"#,
                    TargetDown,
                ),
                (
                    "request_above_limit",
                    429,
                    r#"{"error":{"code":"rate_limit_exceeded","message":"Request too large for gpt-4o: Limit 30000, Requested 31538."}}"#,
                    NotHere,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"error":{"code":"context_length_exceeded"}}"#,
                    NotHere,
                ),
                (
                    "content_policy",
                    400,
                    r#"{"error":{"code":"invalid_prompt","message":"flagged"}}"#,
                    CallerFault,
                ),
                (
                    "model_not_found",
                    404,
                    r#"{"error":{"code":"model_not_found"}}"#,
                    TargetDown,
                ),
                (
                    "unsupported_region",
                    403,
                    r#"{"error":{"code":"unsupported_country_region_territory"}}"#,
                    TargetDown,
                ),
                (
                    "invalid_api_key",
                    401,
                    r#"{"error":{"type":"invalid_request_error","code":"invalid_api_key"}}"#,
                    TargetDown,
                ),
                (
                    "maximum_context_length",
                    400,
                    r#"{"error":{"message":"This model's maximum context length is 128000 tokens."}}"#,
                    NotHere,
                ),
                // Waitable, with the same code as the request that is too large.
                (
                    "rate_limit_exceeded",
                    429,
                    r#"{"error":{"code":"rate_limit_exceeded","message":"Limit 30000, Used 14567, Requested 24754."}}"#,
                    Throttled,
                ),
            ],
        );
    }
}
