//! `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11, and the
//! dictionary form of its seventh draft, which is still widely sent).

use http::{HeaderMap, HeaderName};

use super::{
    number::SECOND,
    structured::{self, Member, integer},
};

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What `RateLimit` says of the quotas that are used up (`r=0`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateLimit {
    /// There is one.
    pub(super) exhausted: bool,
    /// The largest `t` of them, in nanoseconds.
    pub(super) asked: Option<u128>,
}

/// `"name";r=0;t=5, …` or `limit=100, remaining=0, reset=5`. A malformed field says nothing.
pub(super) fn read(headers: &HeaderMap) -> RateLimit {
    let mut said = RateLimit::default();
    let Some(members) = structured::members(headers, &RATELIMIT) else {
        return said;
    };
    let (mut remaining, mut reset) = (None, None);
    for member in members {
        match member.key {
            Some("remaining") => remaining = integer(member.item),
            Some("reset") => reset = Some(member.item),
            Some(_) => {}
            None => said.add(
                member.parameter("r").and_then(integer),
                member.parameter("t"),
            ),
        }
    }
    said.add(remaining, reset);
    said
}

impl RateLimit {
    /// An item whose reset is there and no integer says nothing.
    fn add(&mut self, remaining: Option<u128>, reset: Option<&str>) {
        let asked = reset.map(integer);
        if remaining == Some(0) && asked != Some(None) {
            self.exhausted = true;
            self.asked = self.asked.max(asked.flatten().map(|s| s * SECOND));
        }
    }
}

/// The longest window (`w`) of the policies whose quota is used up, in nanoseconds: the most that
/// the wait can be where `RateLimit` tells no `t`.
pub(super) fn window(headers: &HeaderMap) -> Option<u128> {
    structured::members(headers, &RATELIMIT_POLICY)?
        .filter(|policy| is_open(headers, policy.item))
        .filter_map(|policy| policy.parameter("w").and_then(integer))
        .max()
        .map(|s| s * SECOND)
}

/// Whether a policy's quota is used up with no word of when it is reset.
fn is_open(headers: &HeaderMap, policy: &str) -> bool {
    structured::members(headers, &RATELIMIT).is_some_and(|mut members| {
        members.any(|m: Member<'_>| {
            m.key.is_none()
                && m.item == policy
                && m.parameter("r").and_then(integer) == Some(0)
                && m.parameter("t").is_none()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(limit: &[&str], policy: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, lines) in [(RATELIMIT, limit), (RATELIMIT_POLICY, policy)] {
            for line in lines {
                headers.append(&name, HeaderValue::from_str(line).unwrap());
            }
        }
        headers
    }

    fn seconds(limit: &[&str]) -> Option<u128> {
        read(&headers(limit, &[])).asked.map(|n| n / SECOND)
    }

    #[test]
    fn the_latest_of_the_exhausted() {
        assert_eq!(seconds(&["\"default\";r=0;t=20"]), Some(20));
        assert_eq!(seconds(&["\"default\";t=20;r=0"]), Some(20));
        assert_eq!(seconds(&["\"a\";r=0;t=5, \"b\";r=0;t=42"]), Some(42));
        assert_eq!(seconds(&["\"a\";r=0;t=5", "\"b\";r=0;t=42"]), Some(42));
        assert_eq!(seconds(&["\"a\";r=0;t=30,\"b\";r=400;t=36000"]), Some(30));
        assert_eq!(seconds(&["\"a\";r=1;t=30"]), None);
        assert_eq!(
            seconds(&["\"a\";t=30"]),
            None,
            "without r nothing is used up"
        );
        assert_eq!(seconds(&["limit=100, remaining=0, reset=50"]), Some(50));
        assert_eq!(seconds(&["limit=100, remaining=1, reset=50"]), None);
    }

    #[test]
    fn malformed_says_nothing() {
        for bad in [
            "\"a\";r=0;t=-5",
            "\"a\";r=0;t=1.5",
            "\"a\";r=0;t=\"5\"",
            "\"a\";r=-1;t=5",
            "\"a\";r=0;t=5,",
            "0;t",
            "soon",
        ] {
            assert_eq!(read(&headers(&[bad], &[])), RateLimit::default(), "{bad}");
        }
        assert_eq!(
            seconds(&["\"a\";r=0;t=-5, \"b\";r=0;t=7"]),
            Some(7),
            "an item with a bad value leaves the others"
        );
    }

    #[test]
    fn without_t_the_window_bounds_it() {
        let policy = ["\"burst\";q=100;w=60,\"daily\";q=1000;w=86400"];
        let window = |limit: &str| window(&headers(&[limit], &policy)).map(|n| n / SECOND);
        assert_eq!(window("\"burst\";r=0"), Some(60));
        assert_eq!(window("\"burst\";r=0, \"daily\";r=0"), Some(86_400));
        assert_eq!(window("\"burst\";r=3"), None);
        assert_eq!(window("\"burst\";r=0;t=5"), None);
        assert_eq!(window("\"burst\";r=0;t=-5"), None);
        assert_eq!(window("\"other\";r=0"), None);
        assert!(read(&headers(&["\"burst\";r=0"], &[])).exhausted);
    }
}
