//! `GET /v1/models`

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::{Gateway, error::ApiError, headers};

pub(super) async fn list(State(gateway): State<Gateway>) -> Response {
    let models = gateway.current().fleet.models();
    let models: Vec<Value> = models.iter().map(|id| model(&gateway, id)).collect();
    answer(&json!({"object": "list", "data": models}))
}

pub(super) async fn one(State(gateway): State<Gateway>, Path(id): Path<String>) -> Response {
    if gateway.current().fleet.route(&id).is_some() {
        return answer(&model(&gateway, &id));
    }
    let id: String = id.chars().take(100).collect();
    let message =
        format!("There is no model {id:?} here. GET /v1/models lists those that there are.");
    ApiError::invalid(StatusCode::NOT_FOUND, "model_not_found", message)
        .param("model")
        .into_response()
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
