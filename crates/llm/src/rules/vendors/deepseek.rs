//! DeepSeek: no hints; an empty balance is a 402.
//!
//! Source: api-docs.deepseek.com/quick_start/error_codes.

use tower_spillway_core::Class;

use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("insufficient_balance", Class::TargetDown)
            .statuses(400..=429)
            .messages(["insufficient balance"])
            .remedy(Remedy::Credit),
        Rule::new("model_not_exist", Class::TargetDown)
            .statuses(400..=404)
            .messages(["model not exist"])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .status(422)
            .messages(["maximum context length"])
            .subclass(Subclass::ContextLength),
        Rule::new("content_policy", Class::CallerFault)
            .status(400)
            .messages(["content exists risk"])
            .subclass(Subclass::ContentPolicy),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{CallerFault, NotHere, TargetDown};

    #[test]
    fn every_row() {
        check(
            Vendor::DeepSeek,
            &rules(),
            &[
                (
                    "insufficient_balance",
                    402,
                    r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}"#,
                    TargetDown,
                ),
                (
                    "model_not_exist",
                    400,
                    r#"{"error":{"message":"Model Not Exist"}}"#,
                    TargetDown,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"error":{"message":"This model's maximum context length is 65536 tokens."}}"#,
                    NotHere,
                ),
                (
                    "content_policy",
                    400,
                    r#"{"error":{"message":"Content Exists Risk"}}"#,
                    CallerFault,
                ),
            ],
        );
    }
}
