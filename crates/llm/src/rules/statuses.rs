//! Statuses, where the body says no more.
//!
//! It differs from core's table, which knows no vendors: 401, 402, 403 and 404 say that the target
//! serves nobody, and whatever is 5xx may pass, 501 included (as the vendors' SDKs have it).
//!
//! A redirect says that the vendor is not at this address, whoever asks: it is of the target, not of
//! the request, and stays until somebody mends the address. So it is TargetDown: the next target is
//! asked at once, and the breaker holds this one. It is never followed, which would show the key
//! and the prompt to a server that nobody chose.

use tower_spillway_core::Class;

use super::{Answer, Remedy, Rule, Subclass};

pub(super) fn rules() -> Vec<Rule> {
    use Class::{CallerFault, TargetDown, Throttled, Transient};
    let rows = vec![
        Rule::new("throttled", Throttled).status(429),
        Rule::new("failed", Transient)
            .status(408)
            .status(409)
            .status(425)
            .statuses(500..=599),
        Rule::new("unauthorized", TargetDown)
            .status(401)
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        Rule::new("payment_required", TargetDown)
            .status(402)
            .remedy(Remedy::Credit),
        Rule::new("forbidden", TargetDown)
            .status(403)
            .subclass(Subclass::Auth)
            .remedy(Remedy::Key),
        // What the caller named is gone, not the model.
        Rule::new("resource_not_found", CallerFault)
            .status(404)
            .messages([
                "no such file",
                "file with id",
                "file_id",
                "previous response",
                "previous_response",
                "item with id",
            ])
            .when(names_no_model),
        Rule::new("model_not_found", TargetDown)
            .status(404)
            .status(410)
            .subclass(Subclass::ModelNotFound)
            .remedy(Remedy::Model),
        Rule::new("redirected", TargetDown)
            .statuses(300..=399)
            .remedy(Remedy::Address),
        Rule::new("rejected", CallerFault).statuses(400..=499),
        Rule::new("failed", Transient),
    ];
    rows.into_iter().map(Rule::by_status).collect()
}

fn names_no_model(answer: &Answer<'_>) -> bool {
    let said = answer.said();
    !said.says("model") && !said.has_code("model_not_found")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rules, Vendor};

    fn class(status: u16, body: &str) -> Class {
        let rules = Rules::of(Vendor::OpenAi);
        rules.judge(&Answer::new(status, body.as_bytes())).class()
    }

    #[test]
    fn statuses_alone() {
        use Class::{CallerFault, Success, TargetDown, Throttled, Transient};
        for (statuses, wanted) in [
            (&[200, 201, 204][..], Success),
            (&[429], Throttled),
            (
                &[
                    408, 409, 425, 500, 501, 502, 503, 504, 505, 520, 524, 526, 529, 599,
                ],
                Transient,
            ),
            (
                &[301, 302, 304, 307, 308, 401, 402, 403, 404, 410],
                TargetDown,
            ),
            (&[400, 405, 406, 413, 415, 418, 422, 451], CallerFault),
            // No status of HTTP: whatever it is, it was no answer.
            (&[0, 100, 999], Transient),
        ] {
            for status in statuses {
                assert_eq!(class(*status, ""), wanted, "{status}");
            }
        }
    }

    #[test]
    fn a_404_of_something_else_than_the_model() {
        let gone = |message: &str| class(404, &format!(r#"{{"error":{{"message":"{message}"}}}}"#));
        assert_eq!(gone("No such File object: file-1"), Class::CallerFault);
        assert_eq!(
            gone("Previous response with id 'r' not found."),
            Class::CallerFault
        );
        assert_eq!(
            gone("The inference profile was not found"),
            Class::TargetDown
        );
        assert_eq!(gone("The model `x` does not exist"), Class::TargetDown);
        assert_eq!(gone("Requested entity was not found."), Class::TargetDown);
    }
}
