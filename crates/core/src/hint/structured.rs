//! As much of structured fields (RFC 9651) as rate limits need: lists and dictionaries of items
//! with parameters. Strict, since a malformed field must be ignored as a whole.

use http::{HeaderMap, HeaderName};

use super::number;

/// A field longer than this, all lines together, is not looked at.
const LONGEST_FIELD: usize = 1024;

/// A member of a list (`item;key=value`) or of a dictionary (`key=item`), in its raw text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) item: &'a str,
    parameters: &'a str,
}

impl<'a> Member<'a> {
    /// A parameter; of one given twice the last counts.
    pub(super) fn parameter(&self, key: &str) -> Option<&'a str> {
        let mut found = None;
        let mut rest = self.parameters;
        while let Some((name, value, after)) = parameter(rest) {
            if name == key {
                found = Some(value);
            }
            rest = after;
        }
        found
    }
}

/// All members of a field, over all its lines; `None` if it is absent, too long or malformed.
pub(super) fn members<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Option<impl Iterator<Item = Member<'h>> + use<'h>> {
    let mut total = 0usize;
    for line in headers.get_all(name) {
        total = total.saturating_add(line.len());
        if total > LONGEST_FIELD || !Members(Some(line.to_str().ok()?)).all(|m| m.is_some()) {
            return None;
        }
    }
    let members = headers
        .get_all(name)
        .into_iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| Members(Some(line)).flatten());
    (total > 0).then_some(members)
}

/// A whole number of zero or more. More than fifteen digits are no integer.
pub(super) fn integer(text: &str) -> Option<u128> {
    number::whole(text).filter(|_| text.len() <= 15)
}

/// The members of one line; `None` in the place of the first that is malformed.
#[derive(Clone)]
struct Members<'a>(Option<&'a str>);

impl<'a> Iterator for Members<'a> {
    type Item = Option<Member<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.take()?.trim_start_matches([' ', '\t']);
        if text.is_empty() {
            return None;
        }
        let Some((member, rest)) = member(text) else {
            return Some(None);
        };
        let rest = rest.trim_start_matches([' ', '\t']);
        self.0 = match rest.strip_prefix(',') {
            None if rest.is_empty() => None,
            // A comma with nothing after it.
            Some(more) if !more.trim_matches([' ', '\t']).is_empty() => Some(more),
            _ => return Some(None),
        };
        Some(Some(member))
    }
}

fn member(text: &str) -> Option<(Member<'_>, &str)> {
    let (first, after) = item(text)?;
    let (key, item, after) = match after.strip_prefix('=') {
        Some(value) if is_key(first) => {
            let (value, after) = item(value)?;
            (Some(first), value, after)
        }
        _ => (None, first, after),
    };
    let mut rest = after;
    while rest.starts_with(';') {
        (_, _, rest) = parameter(rest)?;
    }
    let length = after.len().checked_sub(rest.len())?;
    let parameters = after.get(..length)?;
    Some((
        Member {
            key,
            item,
            parameters,
        },
        rest,
    ))
}

/// `;key=value` or `;key`: the name, the raw value ("?1" where there is none) and the rest.
fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.strip_prefix(';')?.trim_start_matches(' ');
    let (name, rest) = take(text, |b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.*".contains(&b)
    })?;
    if !is_key(name) {
        return None;
    }
    match rest.strip_prefix('=') {
        Some(value) => item(value).map(|(value, rest)| (name, value, rest)),
        None => Some((name, "?1", rest)),
    }
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '*')
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.*".contains(&b))
}

/// A bare item in its raw text, and the rest.
fn item(text: &str) -> Option<(&str, &str)> {
    let length = match text.as_bytes().first()? {
        b'"' => quoted(text)?,
        b'%' => 1 + quoted(text.get(1..)?)?,
        b':' => 2 + text.get(1..)?.find(':')?,
        b'?' => match text.as_bytes().get(1)? {
            b'0' | b'1' => 2,
            _ => return None,
        },
        b'@' => 1 + figure(text.get(1..)?)?,
        b'-' | b'0'..=b'9' => figure(text)?,
        b if b.is_ascii_alphabetic() || *b == b'*' => take(text, |b| {
            b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&b)
        })?
        .0
        .len(),
        _ => return None,
    };
    text.split_at_checked(length)
}

/// The length of an integer or decimal at the start.
fn figure(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let (whole, rest) = take(unsigned, |b| b.is_ascii_digit())?;
    let fraction = match rest.strip_prefix('.') {
        None => 0,
        Some(digits) => 1 + take(digits, |b| b.is_ascii_digit())?.0.len(),
    };
    Some(sign + whole.len() + fraction)
}

/// The length of a quoted string at the start, quotes included.
fn quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    let mut bytes = text.bytes().enumerate();
    if bytes.next()?.1 != b'"' {
        return None;
    }
    for (at, b) in bytes {
        match b {
            b'"' | b'\\' if escaped => escaped = false,
            _ if escaped => return None,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            b' '..=b'~' => {}
            _ => return None,
        }
    }
    None
}

/// The longest start of at least one byte that is all `of` that kind, and the rest.
fn take(text: &str, of: impl Fn(u8) -> bool) -> Option<(&str, &str)> {
    let end = text.bytes().position(|b| !of(b)).unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    text.split_at_checked(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    const NAME: HeaderName = HeaderName::from_static("ratelimit");

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(NAME, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        headers
    }

    fn items(lines: &[&str]) -> Option<Vec<String>> {
        let headers = headers(lines);
        let members = members(&headers, &NAME)?;
        Some(members.map(|m| m.item.to_owned()).collect())
    }

    #[test]
    fn lists_over_lines() {
        let two = Some(vec!["\"a\"".to_owned(), "\"b\"".to_owned()]);
        assert_eq!(items(&["\"a\";r=0;t=5,\"b\";r=1"]), two);
        assert_eq!(items(&["\"a\";r=0 ,\t\"b\""]), two);
        assert_eq!(items(&["\"a\"", "\"b\";r=1"]), two);
        assert_eq!(items(&[]), None);
    }

    #[test]
    fn every_kind_of_item() {
        for item in [
            "\"a, b;c \\\" \\\\\"",
            "token/1:x",
            "*",
            "-12",
            "1.5",
            "?0",
            ":aGVsbG8=:",
            "@1659578233",
            "%\"f%c3%bc\"",
        ] {
            assert_eq!(items(&[item]), Some(vec![item.to_owned()]), "{item}");
            let parameters = format!("\"x\";a={item}; b;r=0;r=7");
            let headers = headers(&[&parameters]);
            let member = members(&headers, &NAME).unwrap().next().unwrap();
            assert_eq!(member.parameter("a"), Some(item));
            assert_eq!(member.parameter("b"), Some("?1"));
            assert_eq!(member.parameter("r"), Some("7"), "the last counts");
            assert_eq!(member.parameter("t"), None);
        }
    }

    #[test]
    fn dictionaries() {
        let headers = headers(&["limit=100, remaining=0, reset=50;x"]);
        let read: Vec<_> = members(&headers, &NAME)
            .unwrap()
            .map(|m| (m.key, m.item))
            .collect();
        assert_eq!(
            read,
            [
                (Some("limit"), "100"),
                (Some("remaining"), "0"),
                (Some("reset"), "50")
            ]
        );
    }

    #[test]
    fn one_fault_spoils_the_field() {
        for bad in [
            "\"a\";r=0,",
            ",\"a\"",
            "\"a\";r=",
            "\"a\";;r=0",
            "\"a\" \"b\"",
            "\"a",
            "\"a\\n\"",
            "\"a\";R=0",
            "(\"a\" \"b\");r=0",
            "\"a\";r=0;t=5s",
            "\"a\";t=.5",
            "?2",
            ":abc",
            "\"ü\"",
            "Limit=1",
        ] {
            assert_eq!(items(&["\"good\";r=0;t=5", bad]), None, "{bad}");
        }
        let long = "a,".repeat(2000) + "a";
        assert_eq!(items(&[&long]), None);
    }

    #[test]
    fn integers_have_fifteen_digits_at_most() {
        assert_eq!(integer("999999999999999"), Some(999_999_999_999_999));
        for bad in ["1000000000000000", "-1", "1.5", "", "\"1\""] {
            assert_eq!(integer(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn total(line in "[ -~\\t]{0,120}") {
            if let Some(members) = members(&headers(&[&line]), &NAME) {
                for member in members {
                    let _ = member.parameter("t");
                }
            }
        }

        #[test]
        fn writes_and_reads_back(names in prop::collection::vec("[a-z ]{1,8}", 1..8), t in 0u64..1 << 40) {
            let line = names.iter().map(|n| format!("\"{n}\";r=0;t={t}")).collect::<Vec<_>>().join(", ");
            let headers = headers(&[&line]);
            let read: Vec<_> = members(&headers, &NAME)
                .unwrap()
                .map(|m| (m.item.trim_matches('"').to_owned(), m.parameter("t").and_then(integer)))
                .collect();
            let want: Vec<_> = names.into_iter().map(|n| (n, Some(u128::from(t)))).collect();
            prop_assert_eq!(read, want);
        }
    }
}
