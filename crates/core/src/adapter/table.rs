//! What a status code means where no vendor table says more.

use crate::{Class, Reading};

/// The class of a status code that came without a hint.
///
/// | status | class |
/// |---|---|
/// | 2xx, 3xx | Success |
/// | 429 | Throttled |
/// | 408, 425, 500, 502, 503, 504, 520–526, 529, every 5xx not named here | Transient |
/// | 501, 505, every other 4xx | CallerFault |
///
/// A 503 with a hint is Throttled.
pub fn class_of_status(status: u16) -> Class {
    match status {
        100..=399 => Class::Success,
        429 => Class::Throttled,
        408 | 425 => Class::Transient,
        501 | 505 => Class::CallerFault,
        400..=499 => Class::CallerFault,
        _ => Class::Transient,
    }
}

/// What a response with this status means. `closes` tells whether it closes the connection:
/// a 408 that does was not processed (RFC 9110 15.5.9).
pub(super) fn read_status(status: u16, hinted: bool, closes: bool) -> Reading {
    let class = match class_of_status(status) {
        Class::Transient if status == 503 && hinted => Class::Throttled,
        class => class,
    };
    let unprocessed = match status {
        429 | 503 => true,
        408 => closes,
        _ => class == Class::CallerFault,
    };
    Reading::new(class)
        .unprocessed(unprocessed)
        .with_status(Some(status))
}
