//! Vertex AI: Google's errors from a shared pool, mostly without a hint; billing is a 403.
//!
//! Source: cline/cline issue 651; cloud.google.com/vertex-ai errors.

use tower_spillway_core::Class;

use super::gemini;
use crate::{Remedy, Rule, Subclass};

pub(in crate::rules) fn rules() -> Vec<Rule> {
    let mut rows = vec![
        Rule::new("billing_disabled", Class::TargetDown)
            .status(403)
            .codes(["BILLING_DISABLED"])
            .remedy(Remedy::Credit),
        Rule::new("publisher_model_not_found", Class::TargetDown)
            .status(400)
            .status(404)
            .messages(["publisher model"])
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
    ];
    rows.extend(gemini::rules());
    rows
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};
    use crate::Vendor;
    use Class::{TargetDown, Throttled};

    #[test]
    fn every_row() {
        let own = rules();
        check(
            Vendor::Vertex,
            &own[..own.len() - gemini::rules().len()],
            &[
                (
                    "billing_disabled",
                    403,
                    r#"{"error":{"code":403,"details":[{"reason":"BILLING_DISABLED"}]}}"#,
                    TargetDown,
                ),
                (
                    "publisher_model_not_found",
                    404,
                    r#"[{"error":{"message":"Publisher Model `projects/p/x` was not found"}}]"#,
                    TargetDown,
                ),
                (
                    "resource_exhausted",
                    429,
                    r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#,
                    Throttled,
                ),
            ],
        );
    }
}
