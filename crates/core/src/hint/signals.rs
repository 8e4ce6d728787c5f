//! All that the head of a response says about when to come back, in one reading.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};

use super::{
    Hint, Source, date::Origin, grpc, number, rate_limit, reset, retry_after, should_retry,
};

/// What the head of a response says about when to come back. See the [module docs](super) for
/// what counts more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    asked: Option<Hint>,
    forbidden: bool,
    invited: bool,
    exhausted: bool,
}

/// Reads the head of a response that is no success; `now` is asked for wall time only where a date
/// is to be measured and the response has no `Date` of its own.
///
/// Total: any bytes, any length, any number of field lines. Of a field that is repeated the first
/// usable line counts.
pub fn read(status: StatusCode, headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Signals {
    let mut origin = Origin::new(headers, now);
    let pushback = grpc::grpc_pushback(headers);
    let should_retry = should_retry::read(headers);
    let limit = rate_limit::read(headers);
    // Full refill, so no news with other statuses: a 500 while a bucket happens to be empty is not
    // to be waited out for a day.
    let resets = match status {
        StatusCode::TOO_MANY_REQUESTS => reset::read(headers, &mut origin),
        // Servers that throttle with 403 show it by an empty bucket.
        StatusCode::FORBIDDEN => Some(reset::read(headers, &mut origin))
            .filter(|resets| resets.exhausted)
            .unwrap_or_default(),
        _ => reset::Resets::default(),
    };
    let asked = pushback.filter(|hint| hint.after().is_some()).or_else(|| {
        retry_after::millis(headers)
            .or_else(|| retry_after::seconds_or_date(headers, &mut origin))
            .or(limit.asked.map(|nanos| (nanos, Source::RateLimit)))
            .or(resets.asked)
            .or_else(|| Some((rate_limit::window(headers)?, Source::RateLimitWindow)))
            .map(after)
    });
    Signals {
        asked,
        forbidden: pushback == Some(Hint::Never) || should_retry == Some(false),
        invited: should_retry == Some(true),
        exhausted: limit.exhausted || resets.exhausted,
    }
}

/// How long a success asks the next requests to be held: the `t` of an IETF `RateLimit` whose
/// quota is used up (`r=0`). Other fields tell the time to a full refill, and say that of every
/// success; they count only with a 429.
pub fn on_success(headers: &HeaderMap) -> Option<Hint> {
    let asked = rate_limit::read(headers).asked?;
    Some(after((asked, Source::RateLimit)))
}

fn after((nanos, source): (u128, Source)) -> Hint {
    Hint::After {
        wait: number::whole_millis_up(nanos),
        source,
    }
}

impl Signals {
    /// What follows for this target: never if that was said, else the wait that was asked for.
    pub fn hint(&self) -> Option<Hint> {
        if self.forbidden {
            return Some(Hint::Never);
        }
        self.asked
    }

    /// The wait that was asked for, also beside a word that it should never be. A breaker may use
    /// it.
    pub fn asked(&self) -> Option<Hint> {
        self.asked
    }

    /// The server said never to send the same here again: `x-should-retry: false`, or a gRPC
    /// pushback that forbids.
    pub fn forbids(&self) -> bool {
        self.forbidden
    }

    /// The server said to send the same again, whatever the status: `x-should-retry: true`.
    pub fn invites(&self) -> bool {
        self.invited && !self.forbidden
    }

    /// A quota or bucket is used up. Vendors' own buckets are looked at only with 429 and 403.
    pub fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// A reader of the user's own counts more than any other wait, whatever it calls itself.
    pub(super) fn overruled_by(mut self, hint: Hint) -> Self {
        match hint {
            Hint::Never => self.forbidden = true,
            Hint::After { .. } => self.asked = Some(hint),
        }
        self
    }

    /// Adds what something else says: of two waits the one from the source of the stronger
    /// [`Rank`](super::Rank) is kept, of two alike the one that is here. A zero asks for no minimum,
    /// so any other wait counts more. Never stays never.
    #[must_use]
    pub fn or(mut self, hint: Option<Hint>) -> Self {
        match hint {
            None => {}
            Some(Hint::Never) => self.forbidden = true,
            Some(other) => {
                let order = |hint: Hint| {
                    let zero = hint.after().is_some_and(|wait| wait.is_zero());
                    (zero, hint.source().map(Source::rank))
                };
                if self.asked.is_none_or(|here| order(other) < order(here)) {
                    self.asked = hint;
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests;
