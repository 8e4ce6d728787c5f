//! Statuses, where the body says no more.
//!
//! It differs from core's table, which knows no vendors: 401, 402, 403 and 404 say that the target
//! serves nobody, a redirect is a wrong address, and whatever is 5xx may pass, 501 included (as the
//! vendors' SDKs have it).

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
