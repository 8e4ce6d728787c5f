//! Azure OpenAI: OpenAI's codes, and its own names for deployments.
//!
//! Source: learn.microsoft.com/azure/ai-foundry/openai.

use tower_spillway_core::Class;

use super::openai;
use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    let mut rows = vec![
        Rule::new("deployment_not_found", Class::TargetDown)
            .statuses(400..=404)
            .codes(["DeploymentNotFound", "OperationNotSupported"])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("responsible_ai_policy_violation", Class::CallerFault)
            .status(400)
            .codes(["ResponsibleAIPolicyViolation"])
            .subclass(Subclass::ContentPolicy),
    ];
    rows.extend(openai::rules());
    rows
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{CallerFault, TargetDown};

    #[test]
    fn every_row() {
        let shared = openai::rules().len();
        let own = rules();
        check(
            Vendor::Azure,
            &own[..own.len() - shared],
            &[
                (
                    "deployment_not_found",
                    404,
                    r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
                    TargetDown,
                ),
                (
                    "responsible_ai_policy_violation",
                    400,
                    r#"{"error":{"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                    CallerFault,
                ),
                (
                    "content_policy",
                    400,
                    r#"{"error":{"code":"content_filter"}}"#,
                    CallerFault,
                ),
            ],
        );
    }
}
