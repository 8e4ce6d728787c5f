//! Where a target is.

use form_urlencoded::Serializer;
use http::Uri;

use super::{error::BuildError, upstream::Upstream};
use crate::config::{holds_a_secret, is_address};

/// Its address, with its parameters.
pub(super) fn of(upstream: &Upstream) -> Result<Uri, BuildError> {
    let target = upstream.name.clone();
    let url = with_query(upstream);
    if holds_a_secret(&url) {
        return Err(BuildError::SecretInUrl { target });
    }
    let Ok(uri) = url.parse::<Uri>() else {
        return Err(BuildError::BadUrl { target, url });
    };
    let sends_a_secret = upstream.key.is_some() || !upstream.secret_headers.is_empty();
    if !is_address(&url, sends_a_secret) {
        return Err(match (uri.scheme_str(), uri.host()) {
            (Some("http"), Some(_)) => BuildError::Insecure { target, url },
            _ => BuildError::BadUrl { target, url },
        });
    }
    Ok(uri)
}

fn with_query(upstream: &Upstream) -> String {
    let (url, query) = (&upstream.target.url, &upstream.target.query);
    if query.is_empty() {
        return url.clone();
    }
    let query = Serializer::new(String::new()).extend_pairs(query).finish();
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Target;

    fn at(url: &str, query: &[(&str, &str)]) -> Result<String, BuildError> {
        let query = query
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect();
        let target = Target {
            url: url.into(),
            query,
            ..Target::default()
        };
        of(&Upstream::without_key("t", target)).map(|uri| uri.to_string())
    }

    #[test]
    fn parameters_are_written_as_addresses_want_them() {
        let url = "https://example.com/chat";
        assert_eq!(at(url, &[]).unwrap(), url);
        let dated = at(url, &[("api-version", "2024-10-21"), ("who", "a&b c")]).unwrap();
        assert_eq!(dated, format!("{url}?api-version=2024-10-21&who=a%26b+c"));
        let more = at(&format!("{url}?a=1"), &[("b", "2")]).unwrap();
        assert_eq!(more, format!("{url}?a=1&b=2"));
    }

    #[test]
    fn without_a_key_plain_http_may_go_to_another_machine() {
        let url = "http://ollama:11434/v1/chat/completions";
        assert_eq!(at(url, &[]).unwrap(), url);
        let keyed = Upstream::new(
            "t",
            Target {
                url: url.into(),
                ..Target::default()
            },
            "k",
        );
        assert!(matches!(of(&keyed), Err(BuildError::Insecure { .. })));
    }

    #[test]
    fn a_key_is_no_parameter() {
        let refused = at("https://example.com/chat", &[("key", "hunter2")]).unwrap_err();
        assert!(matches!(refused, BuildError::SecretInUrl { .. }));
        assert!(!refused.to_string().contains("hunter2"));
    }
}
