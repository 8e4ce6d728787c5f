//! OpenRouter: codes are numbers or texts, the provider's error and headers ride in `metadata`.
//!
//! Sources: openrouter.ai/docs/api/reference/errors-and-debugging; Gitlawb/openclaude issues 936
//! and 1549.

use tower_spillway_core::Class;

use crate::{Answer, Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        // A budget of requests in flight, not of money: it says when it is free again.
        Rule::new("in_flight_budget", Class::Throttled)
            .status(402)
            .when(says_when),
        Rule::new("moderation", Class::CallerFault)
            .status(403)
            .codes(["flagged_input"])
            .subclass(Subclass::ContentPolicy),
        Rule::new("flagged", Class::CallerFault)
            .status(403)
            .messages(["requires moderation", "was flagged"])
            .subclass(Subclass::ContentPolicy),
        Rule::new("daily_limit", Class::TargetDown)
            .status(429)
            .messages(["per-day"])
            .remedy(Remedy::Quota),
        // It depends on what this request asks of a provider.
        Rule::new("no_provider", Class::NotHere)
            .status(503)
            .messages(["no available model provider", "no allowed providers"]),
        Rule::new("no_endpoints", Class::TargetDown)
            .statuses(400..=404)
            .messages(["no endpoints found", "is not a valid model id"])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("insufficient_credits", Class::TargetDown)
            .statuses(402..=403)
            .messages([
                "insufficient credits",
                "requires more credits",
                "key limit exceeded",
            ])
            .remedy(Remedy::Credit),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .status(413)
            .messages(["maximum context length", "prompt is too long"])
            .subclass(Subclass::ContextLength),
    ]
}

fn says_when(answer: &Answer<'_>) -> bool {
    answer.signals().asked().is_some()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::{Rules, Vendor};
    use Class::{CallerFault, NotHere, TargetDown, Throttled};
    use tower_spillway_core::hint::Reader;

    #[test]
    fn every_row() {
        let in_flight = rules().remove(0);
        assert_eq!(
            in_flight.name(),
            "in_flight_budget",
            "tested below: it needs a header"
        );
        check(
            Vendor::OpenRouter,
            &rules()[1..],
            &[
                (
                    "flagged",
                    403,
                    r#"{"error":{"code":403,"message":"x requires moderation. Your input was flagged"}}"#,
                    CallerFault,
                ),
                (
                    "moderation",
                    403,
                    r#"{"error":{"code":403,"message":"flagged","metadata":{"reasons":["x"],"flagged_input":"y"}}}"#,
                    CallerFault,
                ),
                (
                    "daily_limit",
                    429,
                    r#"{"error":{"message":"Rate limit exceeded: free-models-per-day-high-balance.","code":"429"}}"#,
                    TargetDown,
                ),
                (
                    "no_provider",
                    503,
                    r#"{"error":{"code":503,"message":"No available model provider that meets your routing requirements"}}"#,
                    NotHere,
                ),
                (
                    "no_endpoints",
                    404,
                    r#"{"error":{"code":404,"message":"No endpoints found for x."}}"#,
                    TargetDown,
                ),
                (
                    "insufficient_credits",
                    402,
                    r#"{"error":{"code":402,"message":"Insufficient credits"}}"#,
                    TargetDown,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"This endpoint's maximum context length is 8192 tokens.\"}}"}}}"#,
                    NotHere,
                ),
            ],
        );
    }

    #[test]
    fn a_402_that_says_when_is_waited_out() {
        let mut headers = http::HeaderMap::new();
        headers.insert("retry-after", "3".parse().unwrap());
        let body = br#"{"error":{"code":402,"message":"Too many requests in flight"}}"#;
        let rules = Rules::of(Vendor::OpenRouter);
        let verdict = rules.judge(&Answer::with_headers(402, &headers, body, &Reader::new()));
        assert_eq!(
            (verdict.reason(), verdict.class()),
            (Some("in_flight_budget"), Throttled)
        );
        assert_eq!(rules.judge(&Answer::new(402, body)).class(), TargetDown);
    }
}
