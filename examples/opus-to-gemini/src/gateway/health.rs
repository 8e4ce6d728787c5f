//! `/healthz` and `/readyz`, for whoever starts, stops and balances gateways.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;

use super::Gateway;

/// It runs.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Some target could serve a call now.
pub(super) async fn ready(State(gateway): State<Gateway>) -> Response {
    match gateway.current().fleet.usable() {
        true => "ok\n".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "every target is out\n").into_response(),
    }
}
