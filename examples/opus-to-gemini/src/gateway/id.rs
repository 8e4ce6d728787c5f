//! The id of a request.

use http::{HeaderMap, HeaderValue};
use tower_spillway_core::Chance;

use super::headers::REQUEST_ID;

/// The id of a request: the caller's own `x-request-id` if it is short and plain, else a random
/// one.
#[derive(Clone, Debug)]
pub(super) struct RequestId(HeaderValue);

/// A longer id of a caller's is not taken.
const LONGEST: usize = 64;

impl RequestId {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        match headers.get(REQUEST_ID).filter(|id| is_plain(id.as_bytes())) {
            Some(id) => Self(id.clone()),
            None => Self::random(),
        }
    }

    pub(super) fn random() -> Self {
        let text = format!("call-{}", random_hex());
        let value = HeaderValue::try_from(text);
        Self(value.unwrap_or(HeaderValue::from_static("call")))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or("call")
    }

    pub(super) fn value(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// 128 random bits.
pub(super) fn random_hex() -> String {
    let chance = Chance::thread();
    let half = || chance.up_to(u64::MAX);
    format!("{:016x}{:016x}", half(), half())
}

/// It is written to logs and sent to vendors.
fn is_plain(id: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    (1..=LONGEST).contains(&id.len()) && id.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_id_is_kept_and_any_other_replaced() {
        let of = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(id).unwrap());
            RequestId::of(&headers).as_str().to_owned()
        };
        assert_eq!(of("req_1-a.b"), "req_1-a.b");
        for odd in ["", "a b", "a\"b", &"x".repeat(65)] {
            assert!(of(odd).starts_with("call-"), "{odd}");
        }
        assert_ne!(RequestId::random().as_str(), RequestId::random().as_str());
    }
}
