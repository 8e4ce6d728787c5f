//! What a target must be.

use http::{HeaderName, HeaderValue, Uri};

use super::{Found, figures::breaker};
use crate::config::{Config, HeaderFrom, Target};

impl Config {
    pub(super) fn check_targets(&self, found: &mut Found) {
        for (name, target) in &self.targets {
            self.check_target(found, name, target);
        }
    }

    fn check_target(&self, found: &mut Found, name: &str, target: &Target) {
        let path = |key| ["targets", name, key];
        found.ensure(
            !name.is_empty() && !name.chars().any(char::is_control),
            &["targets", name],
            "have a name that a line can hold",
        );
        found.ensure(!target.url.is_empty(), &path("url"), "be set");
        found.ensure(!target.model.is_empty(), &path("model"), "be set");
        let url = &target.url;
        found.ensure(
            url.is_empty() || is_address(url, target.sends_a_secret()),
            &path("url"),
            "be an https address, or http on this machine or without a key",
        );
        found.ensure(
            !holds_a_secret(url),
            &path("url"),
            "not hold a user, a password or a key: the variable of key_env does",
        );
        found.ensure(
            !target.query.keys().any(|name| names_a_key(name)),
            &path("query"),
            "not hold a key: the variable of key_env does",
        );
        variable(found, &target.key_env, &path("key_env"));
        found.ensure(
            target.key_env.is_empty() || target.key_file.is_empty(),
            &path("key_file"),
            "not be set beside key_env",
        );
        headers(found, name, target);
        for (time, key) in [
            (target.plain_within, "plain_within"),
            (target.streaming_within, "streaming_within"),
        ] {
            found.at_least_a_moment(time, &path(key));
        }
        found.at_least_one(target.in_flight.into(), &path("in_flight"));
        found.ensure(
            target.max_tokens_cap == 0 || target.max_tokens <= target.max_tokens_cap,
            &path("max_tokens"),
            "be at most max_tokens_cap",
        );
        if let Some(own) = &target.breaker {
            breaker(found, own, &path("breaker"));
        }
        self.check_account(found, name, target);
    }

    /// How a target is, is known for each model at an endpoint: two names for one would each know
    /// half of it.
    fn check_account(&self, found: &mut Found, name: &str, target: &Target) {
        let same = |other: &Target| {
            other.url == target.url
                && other.query == target.query
                && other.model == target.model
                && (&other.key_env, &other.key_file) == (&target.key_env, &target.key_file)
                && other.headers == target.headers
        };
        let mut before = self.targets.iter().take_while(|(other, _)| *other != name);
        if let Some((other, _)) = before.find(|(_, other)| same(other)) {
            let said = format!(
                "must not be [targets.{other}] again, the same model with the same key: name that \
                 in both chains"
            );
            found.say(&["targets", name], said);
        }
    }
}

fn headers(found: &mut Found, name: &str, target: &Target) {
    let auth = target.auth_header.to_ascii_lowercase();
    found.ensure(
        is_free(&target.auth_header),
        &["targets", name, "auth_header"],
        "be the name of a header that the stack does not set itself",
    );
    found.ensure(
        target.auth_scheme.bytes().all(|b| b.is_ascii_graphic()),
        &["targets", name, "auth_scheme"],
        "be one word, or empty",
    );
    for (header, from) in &target.headers {
        let path = ["targets", name, "headers", header.as_str()];
        found.ensure(
            is_free(header) && header.to_ascii_lowercase() != auth,
            &path,
            "be the name of a header that the stack does not set itself",
        );
        match from {
            HeaderFrom::Text(text) => {
                found.ensure(
                    !is_secret(header),
                    &path,
                    "be in a variable, { env = \"NAME\" }, or a file, { file = \"PATH\" }",
                );
                let fine = HeaderValue::from_str(text).is_ok();
                found.ensure(fine, &path, "be a text that a header can hold");
            }
            HeaderFrom::Env(env) => {
                found.ensure(!env.is_empty(), &path, "name a variable");
                variable(found, env, &path);
            }
            HeaderFrom::File(file) => found.ensure(!file.is_empty(), &path, "name a file"),
        }
    }
}

fn variable(found: &mut Found, name: &str, path: &[&str]) {
    found.ensure(
        !name.contains(['=', '\0', ' ']) && !looks_like_a_key(name),
        path,
        "be the name of a variable, not a key",
    );
}

/// Whether a name is that of a header which only the file sets.
fn is_free(name: &str) -> bool {
    /// Of one connection (RFC 9110 7.6.1), or of the request as the stack sends it.
    const TAKEN: [&str; 13] = [
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-attempt-id",
    ];
    let name = name.parse::<HeaderName>();
    name.is_ok_and(|name| !TAKEN.contains(&name.as_str()))
}

/// Whether a header holds a secret, by its name.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "authorization",
        "cookie",
        "key",
        "token",
        "secret",
        "password",
    ]
    .iter()
    .any(|word| name.ends_with(word))
}

/// A key would travel in the clear over plain http to another machine.
pub(crate) fn is_address(url: &str, sends_a_secret: bool) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) | (Some("http"), Some("127.0.0.1" | "[::1]" | "localhost")) => {
            true
        }
        (Some("http"), Some(_)) => !sends_a_secret,
        _ => false,
    }
}

/// Names of variables are short, in capitals by custom, and without dashes.
pub(super) fn looks_like_a_key(name: &str) -> bool {
    name.len() > 64 || name.contains('-')
}

/// Whether an address has a user, or a parameter that is named as keys are.
pub(crate) fn holds_a_secret(url: &str) -> bool {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let mut names = query.split('&').filter_map(|pair| pair.split('=').next());
    address.contains('@') || names.any(names_a_key)
}

fn names_a_key(parameter: &str) -> bool {
    const NAMES: [&str; 8] = [
        "key",
        "api_key",
        "api-key",
        "apikey",
        "token",
        "access_token",
        "sig",
        "signature",
    ];
    NAMES.contains(&parameter.to_lowercase().as_str())
}
