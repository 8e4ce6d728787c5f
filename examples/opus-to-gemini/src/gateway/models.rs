//! `GET /v1/models`

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::{Gateway, error::ApiError, headers};
use crate::pipeline::Fleet;

pub(super) async fn list(State(gateway): State<Gateway>) -> Response {
    let models = gateway.current().fleet.models();
    let models: Vec<Value> = models.iter().map(|id| model(&gateway, id)).collect();
    answer(&json!({"object": "list", "data": models}))
}

pub(super) async fn one(
    State(gateway): State<Gateway>,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    // What is no text names no model either.
    let id = id.map(|Path(id)| id).unwrap_or_default();
    if gateway.current().fleet.route(&id).is_some() {
        return answer(&model(&gateway, &id));
    }
    unknown(&id).into_response()
}

/// There is no such model; of a long name its beginning is told.
pub(super) fn unknown(model: &str) -> ApiError {
    let model: String = model.chars().take(100).collect();
    let message =
        format!("There is no model {model:?} here. GET /v1/models lists those that there are.");
    ApiError::invalid(StatusCode::NOT_FOUND, "model_not_found", message).param("model")
}

/// Nobody is asked for that model: it is not there, or all its targets drain, which will pass.
pub(super) fn unserved(fleet: &Fleet, model: &str) -> ApiError {
    if !fleet.drains(model) {
        return unknown(model);
    }
    let message = "All targets of this model drain: they get no new calls.";
    ApiError::out(
        StatusCode::SERVICE_UNAVAILABLE,
        "all_targets_drain",
        message,
    )
}

fn model(gateway: &Gateway, id: &str) -> Value {
    let (_, started_at_ms) = gateway.started();
    json!({
        "id": id,
        "object": "model",
        "created": started_at_ms / 1000,
        "owned_by": "spillway",
    })
}

fn answer(body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, headers::JSON)];
    (headers, Body::from(body.to_string())).into_response()
}
