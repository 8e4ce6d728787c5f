use http::{HeaderValue, Request};

use crate::Chance;

/// The longest key that the servers which honour keys take.
const MOST: usize = 255;

/// Makes the key of a call. Closures over `&Request<B>` are makers.
pub trait MakeKey<B> {
    /// The key; it is checked afterwards.
    fn make(&self, request: &Request<B>) -> HeaderValue;
}

impl<B, F> MakeKey<B> for F
where
    F: Fn(&Request<B>) -> HeaderValue,
{
    fn make(&self, request: &Request<B>) -> HeaderValue {
        self(request)
    }
}

/// A random UUID (RFC 9562, version 4) for each call.
#[derive(Clone, Debug, Default)]
pub struct RandomKey {
    chance: Chance,
}

impl RandomKey {
    pub(super) fn new(chance: Chance) -> Self {
        Self { chance }
    }
}

impl<B> MakeKey<B> for RandomKey {
    fn make(&self, _request: &Request<B>) -> HeaderValue {
        let (high, low) = (self.chance.up_to(u64::MAX), self.chance.up_to(u64::MAX));
        let bits = (u128::from(high) << 64) | u128::from(low);
        // Version 4 and the variant of the RFC.
        let bits = bits & !(0xf << 76) | (0x4 << 76);
        let bits = bits & !(0x3 << 62) | (0x2 << 62);
        let text = format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            bits >> 96,
            (bits >> 80) & 0xffff,
            (bits >> 64) & 0xffff,
            (bits >> 48) & 0xffff,
            bits & 0xffff_ffff_ffff,
        );
        // Hexadecimal digits and dashes are a header value; an empty one would be refused.
        HeaderValue::from_maybe_shared(text.into_bytes())
            .unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

pub(super) fn is_key(value: &HeaderValue) -> bool {
    (1..=MOST).contains(&value.len()) && value.as_bytes().iter().all(|b| matches!(b, b' '..=b'~'))
}
