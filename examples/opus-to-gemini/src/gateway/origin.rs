//! Keeps web pages out.
//!
//! A page of any site can make a browser on this machine post to a server on loopback, or give its
//! own name the address 127.0.0.1. Neither may spend the keys of this gateway.

use http::{HeaderMap, Request, StatusCode, Uri, header, uri::Authority};

use super::error::ApiError;

/// Refuses what a page of another site sends; and, where the gateway is `open` (no keys are asked
/// for on loopback), what comes under any other name than this machine's own.
pub(super) fn check<B>(request: &Request<B>, open: bool) -> Result<(), ApiError> {
    let host = host(request);
    if is_foreign(request.headers(), host.as_ref()) {
        return Err(foreign("This gateway is not for pages of other sites."));
    }
    if open && !host.as_ref().is_none_or(|host| is_own_name(host.host())) {
        return Err(foreign(
            "This gateway is asked under a name that is not this machine's own. Ask 127.0.0.1 or \
             localhost, or set keys for its callers.",
        ));
    }
    Ok(())
}

fn foreign(message: &'static str) -> ApiError {
    ApiError::invalid(StatusCode::FORBIDDEN, "foreign_origin", message)
}

fn host<B>(request: &Request<B>) -> Option<Authority> {
    let named = request.headers().get(header::HOST);
    let named = named.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    named.or_else(|| request.uri().authority().cloned())
}

/// Whether a browser says that the request comes from a page that is not the gateway's own.
fn is_foreign(headers: &HeaderMap, host: Option<&Authority>) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let origin = Uri::try_from(origin.as_bytes()).ok();
    let origin = origin.as_ref().and_then(Uri::authority);
    origin.is_none() || origin != host
}

fn is_own_name(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<std::net::IpAddr>();
    address.is_ok_and(|address| address.is_loopback())
        || bare.eq_ignore_ascii_case("localhost")
        || bare.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_are_told_by_their_origin() {
        let foreign = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            is_foreign(&headers, Some(&Authority::from_static("127.0.0.1:8080")))
        };
        assert!(!foreign(None));
        assert!(!foreign(Some("http://127.0.0.1:8080")));
        for origin in ["http://127.0.0.1:9090", "https://evil.example", "null", ""] {
            assert!(foreign(Some(origin)), "{origin}");
        }
    }

    #[test]
    fn names_of_this_machine() {
        for own in [
            "127.0.0.1",
            "[::1]",
            "localhost",
            "LocalHost",
            "a.localhost",
            "127.8.8.8",
        ] {
            assert!(is_own_name(own), "{own}");
        }
        for other in [
            "evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost.evil.example",
        ] {
            assert!(!is_own_name(other), "{other}");
        }
    }
}
