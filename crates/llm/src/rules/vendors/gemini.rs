//! Gemini's own API and Code Assist: google.rpc errors, waits in the body, a bad key is a 400.
//!
//! Sources: ai.google.dev/gemini-api/docs/troubleshooting; gemini-cli `googleQuotaErrors`.

use std::time::Duration;

use tower_spillway_core::Class;

use crate::{Remedy, Rule, Subclass};

/// Beside "exhausted" a shorter wait is false.
const BELIEVED: Duration = Duration::from_secs(60);

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("api_key_invalid", Class::TargetDown)
            .statuses(400..=403)
            .codes([
                "API_KEY_INVALID",
                "API_KEY_SERVICE_BLOCKED",
                "SERVICE_DISABLED",
            ])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        Rule::new("quota_exhausted", Class::TargetDown)
            .status(429)
            .status(503)
            .codes(["QUOTA_EXHAUSTED"])
            .believe_hints_from(BELIEVED)
            .remedy(Remedy::Quota),
        Rule::new("model_capacity_exhausted", Class::TargetDown)
            .status(429)
            .status(503)
            .codes(["MODEL_CAPACITY_EXHAUSTED"])
            .believe_hints_from(BELIEVED)
            .remedy(Remedy::Model),
        Rule::new("insufficient_credits", Class::TargetDown)
            .status(429)
            .status(503)
            .codes(["INSUFFICIENT_G1_CREDITS_BALANCE"])
            .believe_hints_from(BELIEVED)
            .remedy(Remedy::Credit),
        // Both come with a RetryInfo of some seconds, which is false.
        Rule::new("quota_per_day", Class::TargetDown)
            .status(429)
            .quotas(["PerDay", "per_day", "Daily"])
            .believe_hints_from(Duration::MAX)
            .remedy(Remedy::Quota),
        Rule::new("limit_zero", Class::TargetDown)
            .status(429)
            .when(|answer| answer.said().limit_is_zero())
            .believe_hints_from(Duration::MAX)
            .remedy(Remedy::Quota),
        Rule::new("unsupported_region", Class::TargetDown)
            .statuses(400..=403)
            .messages(["location is not supported"])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Address),
        Rule::new("failed_precondition", Class::TargetDown)
            .status(400)
            .codes(["FAILED_PRECONDITION"])
            .remedy(Remedy::Credit),
        // Where the reason is missing, and on the compatible endpoint.
        Rule::new("api_key_not_valid", Class::TargetDown)
            .status(400)
            .messages([
                "api key not valid",
                "api key expired",
                "api key not found",
                "missing or invalid authorization header",
            ])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .status(413)
            .messages(["exceeds the maximum number of tokens", "input token count"])
            .subclass(Subclass::ContextLength),
        Rule::new("content_policy", Class::CallerFault)
            .status(400)
            .messages(["prohibited_content", "prompt was blocked"])
            .subclass(Subclass::ContentPolicy),
        // Google's "cancelled": by its side, since ours is still waiting.
        Rule::new("cancelled", Class::Transient).status(499),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::{
        super::tests::{Case, check},
        *,
    };
    use crate::{Answer, Rules, Vendor};
    use Class::{CallerFault, NotHere, TargetDown, Transient};

    pub(in super::super) const CASES: [Case; 12] = [
        (
            "api_key_invalid",
            400,
            r#"{"error":{"code":400,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
            TargetDown,
        ),
        (
            "quota_exhausted",
            429,
            r#"{"error":{"code":429,"details":[{"reason":"QUOTA_EXHAUSTED"}]}}"#,
            TargetDown,
        ),
        (
            "model_capacity_exhausted",
            503,
            r#"{"error":{"code":503,"details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}"#,
            TargetDown,
        ),
        (
            "insufficient_credits",
            429,
            r#"{"error":{"details":[{"reason":"INSUFFICIENT_G1_CREDITS_BALANCE"}]}}"#,
            TargetDown,
        ),
        (
            "quota_per_day",
            429,
            r#"[{"error":{"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"10s"}]}}]"#,
            TargetDown,
        ),
        (
            "limit_zero",
            429,
            r#"{"error":{"message":"Quota exceeded, limit: 0\nPlease retry in 59.9s."}}"#,
            TargetDown,
        ),
        (
            "unsupported_region",
            400,
            r#"{"error":{"status":"FAILED_PRECONDITION","message":"User location is not supported for the API use."}}"#,
            TargetDown,
        ),
        (
            "failed_precondition",
            400,
            r#"{"error":{"status":"FAILED_PRECONDITION","message":"Please enable billing."}}"#,
            TargetDown,
        ),
        (
            "api_key_not_valid",
            400,
            r#"[{"error":{"message":"API key not valid. Please pass a valid API key."}}]"#,
            TargetDown,
        ),
        (
            "context_length_exceeded",
            400,
            r#"{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}"#,
            NotHere,
        ),
        (
            "content_policy",
            400,
            r#"{"error":{"message":"PROHIBITED_CONTENT"}}"#,
            CallerFault,
        ),
        ("cancelled", 499, "", Transient),
    ];

    #[test]
    fn every_row() {
        check(Vendor::Gemini, &rules(), &CASES);
    }

    #[test]
    fn short_waits_beside_a_spent_quota_are_not_believed() {
        let rules = Rules::of(Vendor::Gemini);
        let hint = |body: &str| {
            let verdict = rules.judge(&Answer::new(429, body.as_bytes()));
            verdict.hint().and_then(|h| h.after())
        };
        assert_eq!(hint(CASES[4].2), None);
        assert_eq!(hint(CASES[5].2), None);
        let exhausted = |wait: &str| {
            format!(
                r#"{{"error":{{"details":[{{"reason":"QUOTA_EXHAUSTED"}},
                {{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{wait}"}}]}}}}"#
            )
        };
        assert_eq!(hint(&exhausted("0.5s")), None);
        assert_eq!(
            hint(&exhausted("68940s")),
            Some(Duration::from_secs(68_940))
        );
    }
}
