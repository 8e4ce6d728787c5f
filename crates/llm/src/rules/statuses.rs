//! Statuses, where the body says no more.
//!
//! It differs from core's table, which knows no vendors: 401, 402, 403 and 404 say that the target
//! serves nobody, a redirect is a wrong address, and whatever is 5xx may pass, 501 included (as the
//! vendors' SDKs have it).

use tower_spillway_core::Class;

use super::{Answer, Remedy, Rule, Subclass};
use crate::Said;

/// The status of an error in a success that names none: it may pass.
pub(super) const UNKNOWN_ERROR: u16 = 500;

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
                "file",
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
        Rule::new("redirected", CallerFault).statuses(300..=399),
        Rule::new("rejected", CallerFault).statuses(400..=499),
        Rule::new("failed", Transient),
    ];
    rows.into_iter().map(Rule::by_status).collect()
}

fn names_no_model(answer: &Answer<'_>) -> bool {
    let said = answer.said();
    !said.says("model") && !said.has_code("model_not_found")
}

/// Names of errors and the status that they stand for, for an error inside a success. Codes are
/// asked before types.
const NAMES: [(&str, u16); 38] = [
    ("rate_limit_error", 429),
    ("rate_limit_exceeded", 429),
    ("rate_limited", 429),
    ("too_many_requests", 429),
    ("slow_down", 429),
    ("insufficient_quota", 429),
    ("resource_exhausted", 429),
    ("throttlingexception", 429),
    ("overloaded_error", 529),
    ("overloaded", 529),
    ("server_is_overloaded", 503),
    ("service_unavailable_error", 503),
    ("unavailable", 503),
    ("timeout_error", 504),
    ("timeout", 504),
    ("deadline_exceeded", 504),
    ("api_error", 500),
    ("server_error", 500),
    ("internal", 500),
    ("internal_error", 500),
    ("internalserverexception", 500),
    ("authentication_error", 401),
    ("invalid_api_key", 401),
    ("unauthenticated", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("permission_denied", 403),
    ("not_found_error", 404),
    ("not_found", 404),
    ("model_not_found", 404),
    ("request_too_large", 413),
    ("invalid_prompt", 400),
    ("content_filter", 400),
    ("context_length_exceeded", 400),
    ("invalid_argument", 400),
    ("failed_precondition", 400),
    ("validationexception", 400),
    ("invalid_request_error", 400),
];

/// The status that a body stands for, by its codes, then by its types.
pub(super) fn of_body(said: &Said) -> Option<u16> {
    let find = |has: &dyn Fn(&str) -> bool| {
        let row = NAMES.iter().find(|(name, _)| has(name));
        row.map(|(_, status)| *status)
    };
    find(&|name| said.has_code(name)).or_else(|| find(&|name| said.has_kind(name)))
}
