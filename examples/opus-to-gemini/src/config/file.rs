//! From text to a configuration, with the lines of what is wrong.

use std::ops::Range;

use serde::Deserialize;
use toml::{
    Deserializer, Spanned, Table,
    de::{DeTable, DeValue},
};

use super::{Config, ConfigError, Finding, Profile, check::Remark, error, merge};

/// More than anybody reads, of each kind.
const MOST: usize = 100;

impl Config {
    /// Reads a file's text: what it says over the figures of its profile.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] has everything that is wrong, each with its line and the reason: no TOML,
    /// unknown keys, values out of their bounds, chains and routes to targets that are none.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Self::from_toml_over(Profile::Interactive, text)
    }

    /// The same, over a profile where the text names none.
    ///
    /// # Errors
    ///
    /// As [`from_toml`](Self::from_toml).
    pub fn from_toml_over(profile: Profile, text: &str) -> Result<Self, ConfigError> {
        Self::with_warnings(profile, text).map(|(config, _)| config)
    }

    /// The same, with what can be used and is hardly meant: targets that are never asked, models
    /// without a price, attempts that take longer than the deadline.
    ///
    /// # Errors
    ///
    /// As [`from_toml`](Self::from_toml).
    ///
    /// ```
    /// use opus_to_gemini::config::{Config, Profile};
    ///
    /// let text = "[targets.opus]\nplain_within = \"2m\"\n";
    /// let (_, warnings) = Config::with_warnings(Profile::Interactive, text)?;
    /// assert_eq!(
    ///     warnings[0].reason(),
    ///     "chains.default may not get to its end: 1 attempt x 2m at opus \
    ///      + 1 attempt x 1m 30s at gemini = 3m 30s, beyond call.plain_deadline = 3m"
    /// );
    /// # Ok::<(), opus_to_gemini::config::ConfigError>(())
    /// ```
    pub fn with_warnings(
        profile: Profile,
        text: &str,
    ) -> Result<(Self, Vec<Finding>), ConfigError> {
        let (tree, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let errors = errors.iter().take(MOST);
            return Err(ConfigError::new(
                errors.map(|error| at(text, error)).collect(),
            ));
        }
        // First alone: each key and value has its place in the text only here.
        let mut read = Read::new(text, tree);
        let alone = read.alone();
        let own = Table::deserialize(Deserializer::from(read.tree))
            .map_err(|error| ConfigError::new(vec![at(text, &error)]))?;
        let profile = match own.contains_key("profile") {
            true => alone.profile,
            false => profile,
        };
        let none = |error: toml::ser::Error| Finding::new(None, error.to_string());
        let base = Table::try_from(Self::of(profile))
            .map_err(|error| ConfigError::new(vec![none(error)]))?;
        let config = Self::deserialize(merge::over(base, own))
            .map_err(|error| ConfigError::new(vec![at(text, &error)]))?;
        let wrong = config.wrong();
        let wrong = wrong.iter().filter(|wrong| !read.taken.explain(wrong));
        let mut findings = read.findings;
        findings.extend(wrong.take(MOST).map(|wrong| remark(text, wrong)));
        if !findings.is_empty() {
            return Err(ConfigError::new(findings));
        }
        let odd = config.odd();
        let odd = odd.iter().take(MOST).map(|odd| remark(text, odd));
        let mut warnings: Vec<_> = odd.collect();
        error::sort(&mut warnings);
        Ok((config, warnings))
    }
}

/// A text that is read as far as it can be.
struct Read<'t> {
    text: &'t str,
    tree: Spanned<DeTable<'t>>,
    findings: Vec<Finding>,
    taken: Taken,
}

impl<'t> Read<'t> {
    fn new(text: &'t str, tree: Spanned<DeTable<'t>>) -> Self {
        Self {
            text,
            tree,
            findings: Vec::new(),
            taken: Taken::default(),
        }
    }

    /// What the text says alone. What is no setting is taken out of it, so that the rest is looked
    /// at too.
    fn alone(&mut self) -> Config {
        while self.findings.len() < MOST {
            let error = match Config::deserialize(Deserializer::from(self.tree.clone())) {
                Ok(config) => return config,
                Err(error) => error,
            };
            self.findings.push(at(self.text, &error));
            let span = error.span().unwrap_or_default();
            let mut path = Vec::new();
            if !take_out(self.tree.get_mut(), &span, &mut path) {
                break;
            }
            self.taken.0.push(path);
        }
        *self.tree.get_mut() = DeTable::default();
        Config::default()
    }
}

/// Takes the innermost entry out that a place in the text is in.
fn take_out(table: &mut DeTable<'_>, place: &Range<usize>, path: &mut Vec<String>) -> bool {
    let around = |span: Range<usize>| span.start <= place.start && place.end <= span.end;
    let entry = table.iter_mut().find(|(key, value)| {
        around(key.span()) || around(value.span()) || holds(value.get_ref(), place)
    });
    let Some((key, value)) = entry else {
        return false;
    };
    let key = key.clone();
    path.push(key.get_ref().to_string());
    let inside = match value.get_mut() {
        DeValue::Table(inner) if !around(key.span()) => take_out(inner, place, path),
        _ => false,
    };
    inside || table.remove(&key).is_some()
}

/// Whether a place in the text is in a table, or in one of its tables, which may stand elsewhere.
fn holds(value: &DeValue<'_>, place: &Range<usize>) -> bool {
    let DeValue::Table(table) = value else {
        return false;
    };
    table.iter().any(|(key, value)| {
        [key.span(), value.span()]
            .iter()
            .any(|span| span.start <= place.start && place.end <= span.end)
            || holds(value.get_ref(), place)
    })
}

/// What was taken out.
#[derive(Default)]
struct Taken(Vec<Vec<String>>);

impl Taken {
    /// Whether something is only wrong because what it needs was taken out.
    fn explain(&self, wrong: &Remark) -> bool {
        let leads = |path: &Vec<String>| {
            let first = path.first().map(String::as_str);
            let names = matches!(first, Some("targets" | "chains")) && path.len() <= 2;
            let refers = wrong
                .path
                .first()
                .is_some_and(|p| p == "chains" || p == "routes");
            wrong.path.starts_with(path) || path.starts_with(&wrong.path) || (names && refers)
        };
        self.0.iter().any(leads)
    }
}

fn at(text: &str, error: &toml::de::Error) -> Finding {
    let line = error.span().map(|span| line_at(text, &span));
    // The message of several lines is for terminals of their own.
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    Finding::new(line, message)
}

fn remark(text: &str, remark: &Remark) -> Finding {
    Finding::new(line_of_key(text, &remark.path), remark.to_string())
}

fn line_at(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    before.filter(|b| **b == b'\n').count() + 1
}

/// The line of a key, or of the innermost table around it that the text has.
fn line_of_key(text: &str, path: &[String]) -> Option<usize> {
    let parsed = DeTable::parse(text).ok()?;
    let mut table = parsed.get_ref();
    let mut found = None;
    for key in path {
        let Some((name, value)) = table
            .iter()
            .find(|(name, _)| name.get_ref() == key.as_str())
        else {
            break;
        };
        found = Some(name.span());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    found.map(|span| line_at(text, &span))
}
