//! Amazon Bedrock: the class of an error is in `x-amzn-errortype` or in `__type`.
//!
//! Source: docs.aws.amazon.com/bedrock/latest/APIReference (InvokeModel, ResponseStream).

use tower_spillway_core::Class;

use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    vec![
        Rule::new("throttling", Class::Throttled)
            .statuses(400..=503)
            .codes(["ThrottlingException", "TooManyRequestsException"]),
        Rule::new("model_not_ready", Class::Transient)
            .codes(["ModelNotReadyException"])
            .unprocessed(true),
        Rule::new("model_error", Class::Transient).codes([
            "ModelStreamErrorException",
            "ModelErrorException",
            "ModelTimeoutException",
        ]),
        // Inside a stream it comes with a 400.
        Rule::new("internal_server", Class::Transient)
            .codes(["InternalServerException", "ServiceUnavailableException"]),
        Rule::new("service_quota_exceeded", Class::TargetDown)
            .codes(["ServiceQuotaExceededException"])
            .remedy(Remedy::Quota),
        Rule::new("access_denied", Class::TargetDown)
            .codes([
                "AccessDeniedException",
                "UnrecognizedClientException",
                "ExpiredTokenException",
                "InvalidSignatureException",
            ])
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        Rule::new("resource_not_found", Class::TargetDown)
            .codes(["ResourceNotFoundException"])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("model_identifier_invalid", Class::TargetDown)
            .status(400)
            .messages([
                "model identifier is invalid",
                "on-demand throughput isn",
                "model version has reached the end of its life",
            ])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("context_length_exceeded", Class::CallerFault)
            .status(400)
            .messages([
                "input is too long",
                "prompt is too long",
                "exceed context limit",
            ])
            .subclass(Subclass::ContextLength),
        Rule::new("dependency_failed", Class::Transient).status(424),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::{Answer, Rules, Vendor};
    use Class::{NotHere, TargetDown, Throttled, Transient};
    use tower_spillway_core::hint::Reader;

    #[test]
    fn every_row() {
        check(
            Vendor::Bedrock,
            &rules(),
            &[
                (
                    "throttling",
                    400,
                    r#"{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Rate exceeded"}"#,
                    Throttled,
                ),
                (
                    "model_not_ready",
                    429,
                    r#"{"__type":"ModelNotReadyException"}"#,
                    Transient,
                ),
                (
                    "model_error",
                    424,
                    r#"{"__type":"ModelStreamErrorException"}"#,
                    Transient,
                ),
                (
                    "internal_server",
                    400,
                    r#"{"__type":"internalServerException"}"#,
                    Transient,
                ),
                (
                    "service_quota_exceeded",
                    400,
                    r#"{"__type":"ServiceQuotaExceededException"}"#,
                    TargetDown,
                ),
                (
                    "access_denied",
                    403,
                    r#"{"__type":"AccessDeniedException"}"#,
                    TargetDown,
                ),
                (
                    "resource_not_found",
                    404,
                    r#"{"__type":"ResourceNotFoundException"}"#,
                    TargetDown,
                ),
                (
                    "model_identifier_invalid",
                    400,
                    r#"{"message":"The provided model identifier is invalid."}"#,
                    TargetDown,
                ),
                (
                    "context_length_exceeded",
                    400,
                    r#"{"message":"Input is too long for requested model."}"#,
                    NotHere,
                ),
                ("dependency_failed", 424, "", Transient),
            ],
        );
    }

    #[test]
    fn the_header_names_the_class_up_to_a_colon() {
        let mut headers = http::HeaderMap::new();
        let value = "ServiceQuotaExceededException:http://internal.amazon.com/coral/";
        headers.insert("x-amzn-errortype", value.parse().unwrap());
        let verdict = Rules::of(Vendor::Bedrock).judge(&Answer::with_headers(
            400,
            &headers,
            b"{}",
            &Reader::new(),
        ));
        assert_eq!(verdict.class(), TargetDown);
    }
}
