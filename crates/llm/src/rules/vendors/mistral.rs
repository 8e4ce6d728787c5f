//! Mistral: the error stands at the top of the body, its codes are digits as text; a full backend
//! calls itself `invalid_request_error`.
//!
//! Sources: continuedev/continue issue 6185, raycast/extensions issue 31107.

use tower_spillway_core::Class;

use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("capacity_exceeded", Class::Throttled)
            .codes(["3505"])
            .unprocessed(true),
        Rule::new("invalid_model", Class::TargetDown)
            .status(400)
            .status(422)
            .kinds(["invalid_model"])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("service_tier_capacity_exceeded", Class::Throttled)
            .messages(["service tier capacity exceeded"])
            .unprocessed(true),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .status(413)
            .status(422)
            .messages(["maximum context length", "too large for model"])
            .subclass(Subclass::ContextLength),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{NotHere, TargetDown, Throttled};

    #[test]
    fn every_row() {
        check(
            Vendor::Mistral,
            &rules(),
            &[
                (
                    "capacity_exceeded",
                    400,
                    r#"{"object":"error","type":"invalid_request_error","code":"3505"}"#,
                    Throttled,
                ),
                (
                    "invalid_model",
                    400,
                    r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}"#,
                    TargetDown,
                ),
                (
                    "service_tier_capacity_exceeded",
                    429,
                    r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"invalid_request_error","code":null}"#,
                    Throttled,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"object":"error","message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}"#,
                    NotHere,
                ),
            ],
        );
    }
}
