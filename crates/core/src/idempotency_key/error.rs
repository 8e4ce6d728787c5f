use std::{error::Error, fmt};

/// What was made for a call is no key: nothing was sent.
///
/// A key is 1 to 255 characters of visible ASCII or spaces: what the draft allows in its quotes, and
/// what the servers that honour keys take at most. Layers outside read it as
/// [`CallerFault`](crate::Class::CallerFault).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidIdempotencyKey(());

impl InvalidIdempotencyKey {
    pub(super) fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for InvalidIdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an idempotency key must be 1 to 255 characters of printable ASCII")
    }
}

impl Error for InvalidIdempotencyKey {}
