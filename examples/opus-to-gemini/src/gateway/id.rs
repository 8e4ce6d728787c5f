//! The id of a request.

use std::io::Write;

use bytes::Bytes;
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
        let mut text = [0; "call-".len() + 32];
        // It fits.
        write!(text.as_mut_slice(), "call-{:032x}", random_bits()).ok();
        // Shared from the start: it is cloned for the log, the vendor and the answer.
        let value = HeaderValue::from_maybe_shared(Bytes::from_owner(text));
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
pub(super) fn random_bits() -> u128 {
    let chance = Chance::thread();
    let half = || u128::from(chance.up_to(u64::MAX));
    half() << 64 | half()
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
    }

    #[test]
    fn a_random_id_is_32_digits_and_another_each_time() {
        let (one, other) = (RequestId::random(), RequestId::random());
        let digits = one.as_str().strip_prefix("call-").unwrap();
        assert_eq!(digits.len(), 32);
        assert!(digits.bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(is_plain(one.as_str().as_bytes()));
        assert_ne!(one.as_str(), other.as_str());
    }
}
