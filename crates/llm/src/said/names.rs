//! The names of errors.

use super::Said;

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

/// The status that a body stands for, by its codes, then by its types. An error that names none
/// may pass.
pub(super) fn of(said: &Said) -> u16 {
    let find = |has: &dyn Fn(&str) -> bool| {
        let row = NAMES.iter().find(|(name, _)| has(name));
        row.map(|(_, status)| *status)
    };
    find(&|name| said.has_code(name))
        .or_else(|| find(&|name| said.has_kind(name)))
        .unwrap_or(500)
}

/// The name as it stands here, if it is known.
pub(super) fn known(word: &str) -> Option<&'static str> {
    let row = NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word));
    row.map(|(name, _)| *name)
}
