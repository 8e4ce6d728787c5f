//! `/`: one page over `/status`.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, header};

use super::{headers, id::random_bits};

const PAGE: &str = include_str!("page.html");

/// Where the page has its nonce.
const NONCE: &str = "{{nonce}}";

pub(super) async fn page() -> Response {
    let nonce = format!("{:032x}", random_bits());
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let mut response = PAGE.replace(NONCE, &nonce).into_response();
    let answer = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        answer.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_TYPE, "text/html; charset=utf-8");
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    if let Some(policy) = headers::value(policy) {
        answer.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
