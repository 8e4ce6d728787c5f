//! The secrets of a target: from variables and files, into headers.

use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::{error::BuildError, secret, upstream::Upstream};
use crate::{
    config::{Config, HeaderFrom},
    keys,
};

/// The target of that name, with what `key` gives for the names of its variables, and with what is
/// in its files.
pub(super) fn fetch(
    config: &Config,
    name: &str,
    key: impl Fn(&str) -> Option<SecretString>,
) -> Result<Upstream, BuildError> {
    let target = config.targets.get(name).cloned().unwrap_or_default();
    let mut upstream = Upstream::without_key(name, target.clone());
    // One that drains is sent nothing.
    if !target.enabled {
        return Ok(upstream);
    }
    let variable = |variable: &str| {
        key(variable).ok_or_else(|| BuildError::MissingKey {
            target: name.to_owned(),
            variable: variable.to_owned(),
        })
    };
    let file = |path: &str| {
        let unreadable = |reason: String| BuildError::KeyFile {
            target: name.to_owned(),
            path: path.to_owned(),
            reason,
        };
        let found = keys::from_file(path).map_err(|error| unreadable(error.to_string()))?;
        found.ok_or_else(|| unreadable("there is nothing in it".into()))
    };
    upstream.key = match (target.key_env.as_str(), target.key_file.as_str()) {
        ("", "") => None,
        ("", path) => Some(file(path)?),
        (name, _) => Some(variable(name)?),
    };
    for (header, from) in &target.headers {
        let value = match from {
            HeaderFrom::Text(_) => continue,
            HeaderFrom::Env(name) => variable(name)?,
            HeaderFrom::File(path) => file(path)?,
        };
        upstream.secret_headers.insert(header.clone(), value);
    }
    Ok(upstream)
}

/// The headers of a target's own, its key among them.
pub(super) fn headers(upstream: &Upstream) -> Result<HeaderMap, BuildError> {
    let mut headers = HeaderMap::new();
    let bad = |name: &str| BuildError::BadHeader {
        target: upstream.name.clone(),
        header: name.to_owned(),
    };
    let header = |name: &str| name.parse::<HeaderName>().map_err(|_| bad(name));
    for (name, from) in &upstream.target.headers {
        let value = match (from, upstream.secret_headers.get(name)) {
            (HeaderFrom::Text(text), _) => HeaderValue::from_str(text).ok(),
            (_, Some(value)) => secret::header("", value),
            (_, None) => None,
        };
        headers.insert(header(name)?, value.ok_or_else(|| bad(name))?);
    }
    if let Some(key) = &upstream.key {
        let value = secret::header(&upstream.target.auth_scheme, key);
        let value = value.ok_or_else(|| BuildError::BadKey {
            target: upstream.name.clone(),
        })?;
        headers.insert(header(&upstream.target.auth_header)?, value);
    }
    Ok(headers)
}

/// Whether two have the same secrets.
pub(super) fn same(one: &Upstream, other: &Upstream) -> bool {
    fn exposed(upstream: &Upstream) -> impl Iterator<Item = (&str, &str)> {
        let key = upstream.key.iter().map(|key| ("", key));
        let headers = upstream.secret_headers.iter();
        key.chain(headers.map(|(name, value)| (name.as_str(), value)))
            .map(|(name, value)| (name, value.expose_secret()))
    }
    exposed(one).eq(exposed(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AZURE: &str = r#"
        [targets.azure]
        vendor = "azure-openai"
        url = "https://me.openai.azure.com/openai/deployments/gpt/chat/completions"
        model = "gpt"
        key_env = "AZURE_KEY"
        auth_header = "api-key"
        auth_scheme = ""
        query = { api-version = "2024-10-21" }
        headers = { x-team = "search", x-pass = { env = "PASS" } }
        [chains]
        default = ["azure"]
    "#;

    #[test]
    fn a_key_goes_into_the_header_that_the_target_wants() {
        let config = Config::from_toml(AZURE).unwrap();
        let upstream = fetch(&config, "azure", |name| Some(format!("of-{name}").into())).unwrap();
        let headers = headers(&upstream).unwrap();
        assert_eq!(headers["api-key"], "of-AZURE_KEY");
        assert_eq!(headers["x-pass"], "of-PASS");
        assert_eq!(headers["x-team"], "search");
        assert!(!headers.contains_key("authorization"));
        let shown = format!("{headers:?} {upstream:?}");
        assert!(
            !shown.contains("of-") && shown.contains("search"),
            "{shown}"
        );
    }

    #[test]
    fn a_key_may_be_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut config = Config::default();
        let opus = config.targets.get_mut("opus").unwrap();
        opus.key_env.clear();
        opus.key_file = file.path().display().to_string();
        let fetched = |config: &Config| fetch(config, "opus", |_| None);
        let empty = fetched(&config).unwrap_err();
        assert!(matches!(empty, BuildError::KeyFile { .. }), "{empty}");
        std::fs::write(file.path(), "k-file\n").unwrap();
        let headers = headers(&fetched(&config).unwrap()).unwrap();
        assert_eq!(headers["authorization"], "Bearer k-file");
    }
}
