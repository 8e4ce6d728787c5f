//! What is served where.

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
    routing::{get, post_service},
};
use http::StatusCode;
use tower::service_fn;

use super::{
    Gateway, chat::chat, enter::EnterLayer, error::ApiError, health, metrics, models, page, status,
};

/// What exists, as a caller is told that asks for anything else.
const ENDPOINTS: &str = "POST /v1/chat/completions, GET /v1/models, GET /v1/models/{model}, \
                         GET /status, GET /metrics, GET /healthz, GET /readyz, GET /";

pub(super) fn router(gateway: &Gateway) -> Router {
    // A service and no handler: of a handler axum boxes the future, and then the route's again.
    let here = gateway.clone();
    let chat = service_fn(move |request| chat(here.clone(), request));
    let with_key = Router::new()
        .route("/v1/chat/completions", post_service(chat))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*model}", get(models::one))
        .route("/status", get(status::status))
        .route("/metrics", get(metrics::render))
        .method_not_allowed_fallback(wrong_method)
        .layer(EnterLayer::with_key(gateway));
    Router::new()
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/", get(page::page))
        .method_not_allowed_fallback(wrong_method)
        .fallback(nothing_here)
        .layer(EnterLayer::open(gateway))
        .merge(with_key)
        .with_state(gateway.clone())
}

async fn nothing_here(request: Request) -> Response {
    let (method, path) = (request.method(), path(&request));
    let message = format!("There is no {method} {path} here. There is: {ENDPOINTS}.");
    ApiError::invalid(StatusCode::NOT_FOUND, "not_found", message).into_response()
}

/// The path, as much of it as is fit for a message.
fn path(request: &Request) -> String {
    request.uri().path().chars().take(100).collect()
}

async fn wrong_method(request: Request) -> Response {
    let message = format!(
        "{} is not answered with {}. There is: {ENDPOINTS}.",
        path(&request),
        request.method()
    );
    let status = StatusCode::METHOD_NOT_ALLOWED;
    ApiError::invalid(status, "method_not_allowed", message).into_response()
}
