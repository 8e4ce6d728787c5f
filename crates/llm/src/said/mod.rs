//! What an error answer says, whatever its shape.
//!
//! Vendors send objects, arrays of one object, bare strings, HTML pages, JSON inside a message, and
//! what a proxy cut off. All of them become one [`Said`]: codes, types, a message, waits. Total:
//! any bytes give one; what cannot be read gives one that says nothing, and the status decides.

mod hints;
mod names;
mod spans;
mod tree;

use http::HeaderMap;

pub(crate) use self::hints::add as add_hints;

/// What an error answer says, whatever its shape: what [`Rule`](crate::Rule)s look at.
///
/// Texts are in lower case.
#[derive(Clone, Debug, Default)]
pub struct Said {
    codes: Vec<String>,
    kinds: Vec<String>,
    messages: Vec<String>,
    quotas: Vec<String>,
    number: Option<u16>,
    html: bool,
    error: bool,
    choices: Option<usize>,
    waits: tree::Waits,
}

impl Said {
    /// Reads an answer's body, and the headers that name an error.
    pub fn read(headers: &HeaderMap, body: &[u8]) -> Self {
        let mut said = Self::default();
        said.read_header(headers);
        said.html = is_html(headers, body);
        if !said.html {
            tree::read(&mut said, body);
        }
        said
    }

    /// `x-amzn-errortype`: a class, sometimes followed by `:` and an address.
    fn read_header(&mut self, headers: &HeaderMap) {
        let class = headers.get("x-amzn-errortype").map(|v| v.as_bytes());
        if let Some(text) = class.and_then(|v| std::str::from_utf8(v).ok()) {
            let name = text.split(':').next().unwrap_or_default();
            push(&mut self.codes, name);
        }
    }

    /// Whether the body names this error: `error.code`, `error.status`, `details.error_code`,
    /// `details[].reason`, or `x-amzn-errortype`.
    pub fn has_code(&self, code: &str) -> bool {
        has(&self.codes, code)
    }

    /// Whether the body is of this type: `error.type`. Some vendors say `invalid_request_error`
    /// whatever happened.
    pub fn has_kind(&self, kind: &str) -> bool {
        has(&self.kinds, kind)
    }

    /// Whether the beginning of a message contains a phrase, in any case.
    pub fn says(&self, phrase: &str) -> bool {
        let phrase = phrase.to_ascii_lowercase();
        self.messages.iter().any(|m| m.contains(&phrase))
    }

    /// Whether an exhausted quota's name contains a word (google.rpc.QuotaFailure `quotaId`).
    pub fn has_quota(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        self.quotas.iter().any(|q| q.contains(&word))
    }

    /// Whether a message says `limit: 0`, which no wait changes. `limit: 0.5` does not.
    pub fn limit_is_zero(&self) -> bool {
        self.messages.iter().any(|m| {
            m.match_indices("limit: ").any(|(at, found)| {
                let after = m.get(at + found.len()..).unwrap_or_default();
                number(after).is_some_and(|(n, rest)| {
                    let fraction = rest
                        .strip_prefix('.')
                        .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
                    n == 0 && !fraction
                })
            })
        })
    }

    /// Whether a message says that this request alone is above the limit ("Limit 30000, Requested
    /// 31538"), so that no wait helps.
    pub fn asks_above_limit(&self) -> bool {
        self.messages.iter().any(|m| {
            let figure = |word: &str| {
                m.match_indices(word).find_map(|(at, found)| {
                    let after = m.get(at + found.len()..)?;
                    number(after.trim_start_matches([' ', ':'])).map(|(n, _)| n)
                })
            };
            match (figure("limit"), figure("requested")) {
                (Some(limit), Some(asked)) => asked > limit,
                _ => false,
            }
        })
    }

    /// Whether it is a page and no answer of an API.
    pub fn is_html(&self) -> bool {
        self.html
    }

    /// Whether there is an error in it.
    pub fn is_error(&self) -> bool {
        self.error
    }

    /// How many choices it has; `None` if it has no such list.
    pub fn choices(&self) -> Option<usize> {
        self.choices
    }

    /// Whether it names or says anything at all.
    pub fn is_readable(&self) -> bool {
        !(self.codes.is_empty() && self.kinds.is_empty() && self.messages.is_empty())
    }

    /// The status that the body itself gives (`error.code` as a number or digits).
    pub fn number(&self) -> Option<u16> {
        self.number
    }

    /// The status that an error in a success stands for: the one that it gives, else the one that
    /// its codes and types are names of, else 500.
    pub fn status(&self) -> u16 {
        self.number.unwrap_or_else(|| names::of(self))
    }

    /// What the error calls itself, where that is a known name: nothing else of a body is logged.
    pub(crate) fn name(&self) -> Option<&'static str> {
        let words = self.codes.iter().chain(&self.kinds);
        words.filter_map(|word| names::known(word)).next()
    }
}

/// Longer names are not names.
const LONGEST_NAME: usize = 128;

/// Vendors repeat the prompt in messages; what they say themselves comes first.
const LONGEST_MESSAGE: usize = 1024;

fn push(list: &mut Vec<String>, name: &str) {
    if !name.is_empty() && name.len() <= LONGEST_NAME && list.len() < 32 {
        list.push(name.to_ascii_lowercase());
    }
}

fn push_message(list: &mut Vec<String>, message: &str) {
    if !message.is_empty() && list.len() < 8 {
        let message: String = message.chars().take(LONGEST_MESSAGE).collect();
        list.push(message.to_ascii_lowercase());
    }
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|n| n.eq_ignore_ascii_case(name))
}

/// A whole number at the start of a text, thousands with commas, and what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = |c: char| c.is_ascii_digit() || c == ',';
    let end = text.find(|c| !digits(c)).unwrap_or(text.len());
    let (figure, rest) = text.split_at_checked(end)?;
    let figure: String = figure.chars().filter(char::is_ascii_digit).collect();
    if figure.is_empty() {
        return None;
    }
    Some((figure.parse().unwrap_or(u64::MAX), rest))
}

fn is_html(headers: &HeaderMap, body: &[u8]) -> bool {
    let text = body.trim_ascii_start();
    let starts = |tag: &[u8]| {
        text.get(..tag.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(tag))
    };
    // Some proxies call JSON so.
    let typed = crate::media::is(headers, crate::media::HTML) && !starts(b"{") && !starts(b"[");
    typed || starts(b"<!doctype") || starts(b"<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> Said {
        Said::read(&HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn strings_and_integers_are_codes() {
        for body in [
            r#"{"error":{"code":429,"message":"m"}}"#,
            r#"{"error":{"code":"429","message":"m"}}"#,
            r#"[{"error":{"code":429,"message":"m"}}]"#,
            r#"{"code":"429","message":"m","object":"error"}"#,
        ] {
            assert_eq!(said(body).number(), Some(429), "{body}");
            assert!(said(body).has_code("429"), "{body}");
            assert!(said(body).says("M"), "{body}");
        }
    }

    #[test]
    fn shapes() {
        assert!(said(r#"{"error":"model not found"}"#).says("model not found"));
        assert!(said(r#""quota exceeded""#).says("quota exceeded"));
        assert!(said("error code: 1015").says("error code: 1015"));
        assert!(said("<!DOCTYPE html><html>").is_html());
        assert!(
            said("\u{feff}{\"error\":\"x\"}").says("x"),
            "a byte order mark"
        );
        assert!(
            said(r#"{"__type":"com.amazon#ThrottlingException"}"#).has_code("ThrottlingException")
        );
        for nothing in [
            "",
            "[]",
            "{}",
            "null",
            "7",
            "[{\"error\": {\"code\": 429, \"mess",
            "\u{0}\u{1}{",
        ] {
            assert!(!said(nothing).is_readable(), "{nothing}");
        }
    }

    #[test]
    fn json_in_a_message_is_read() {
        let inner =
            r#"{\"error\":{\"status\":\"RESOURCE_EXHAUSTED\",\"message\":\"Quota exceeded.\"}}"#;
        let said = said(&format!(
            r#"{{"error":{{"code":429,"message":"{inner}"}}}}"#
        ));
        assert!(said.has_code("resource_exhausted") && said.says("quota exceeded."));
    }

    #[test]
    fn limits_in_words() {
        let says = |m: &str| said(&format!(r#"{{"error":{{"message":"{m}"}}}}"#));
        assert!(says("limit: 0").limit_is_zero());
        assert!(says("x, limit: 0. Please").limit_is_zero());
        assert!(!says("limit: 0.5").limit_is_zero());
        assert!(!says("limit: 10").limit_is_zero());
        assert!(says("Limit 30,000, Requested 31,538").asks_above_limit());
        assert!(says("(TPM): Limit: 6000, Requested: 14368").asks_above_limit());
        assert!(!says("Limit 30000, Used 14567, Requested 24754").asks_above_limit());
        assert!(!says("Limit 30000").asks_above_limit());
    }

    #[test]
    fn what_stands_far_into_a_message_is_the_prompt() {
        let long = format!(
            r#"{{"error":{{"message":"{}credit balance"}}}}"#,
            "é".repeat(1100)
        );
        assert!(!said(&long).says("credit balance"));
    }
}
