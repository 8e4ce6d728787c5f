//! What a status code means, of HTTP or gRPC, where no vendor table says more.

use http::{HeaderMap, StatusCode};

use crate::{
    Class, Reading,
    hint::{self, Signals},
};

/// The class of a status code that came without a hint.
///
/// | status | class |
/// |---|---|
/// | 2xx, 3xx | Success |
/// | 429 | Throttled |
/// | 408, 425, 500, 502, 503, 504, 520–526, 529, every 5xx not named here | Transient |
/// | 501, 505, every other 4xx | CallerFault |
///
/// A 503 with a hint is Throttled, and so is a 403 that shows a used up bucket. A CallerFault that
/// comes with `x-should-retry: true` is Transient.
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
pub(super) fn read_status(status: u16, signals: &Signals, closes: bool) -> Reading {
    let plain = class_of_status(status);
    let class = match plain {
        Class::Transient if status == 503 && signals.asked().is_some() => Class::Throttled,
        Class::CallerFault if status == 403 && signals.exhausted() => Class::Throttled,
        Class::CallerFault if signals.invites() => Class::Transient,
        class => class,
    };
    let unprocessed = match status {
        429 | 503 => true,
        408 => closes,
        // What the server says of coming back does not change what it did.
        _ => plain == Class::CallerFault,
    };
    Reading::new(class)
        .unprocessed(unprocessed)
        .with_status(Some(status))
        .with_hint(signals.hint())
}

/// The codes of gRPC by number: name and class.
const GRPC: [(&str, Class); 17] = [
    ("OK", Class::Success),
    ("CANCELLED", Class::Cancelled),
    ("UNKNOWN", Class::Transient),
    ("INVALID_ARGUMENT", Class::CallerFault),
    ("DEADLINE_EXCEEDED", Class::Transient),
    ("NOT_FOUND", Class::CallerFault),
    ("ALREADY_EXISTS", Class::CallerFault),
    ("PERMISSION_DENIED", Class::CallerFault),
    ("RESOURCE_EXHAUSTED", Class::Throttled),
    ("FAILED_PRECONDITION", Class::CallerFault),
    ("ABORTED", Class::CallerFault),
    ("OUT_OF_RANGE", Class::CallerFault),
    ("UNIMPLEMENTED", Class::CallerFault),
    ("INTERNAL", Class::Transient),
    ("UNAVAILABLE", Class::Transient),
    ("DATA_LOSS", Class::Transient),
    ("UNAUTHENTICATED", Class::CallerFault),
];

const DEADLINE_EXCEEDED: u8 = 4;
const UNAVAILABLE: u8 = 14;

fn grpc_row(code: u8) -> (&'static str, Class) {
    let [_, _, unknown, ..] = GRPC;
    GRPC.get(usize::from(code)).copied().unwrap_or(unknown)
}

/// The class of a gRPC code that came without a pushback.
///
/// | code | class | why |
/// |---|---|---|
/// | 0 OK | Success | |
/// | 1 CANCELLED | Cancelled | typically by the caller |
/// | 2 UNKNOWN, and what is no code | Transient | as an unknown error |
/// | 3 INVALID_ARGUMENT | CallerFault | 400 |
/// | 4 DEADLINE_EXCEEDED | Transient, timed out | 504 |
/// | 5 NOT_FOUND | CallerFault | 404 |
/// | 6 ALREADY_EXISTS | CallerFault | 409 |
/// | 7 PERMISSION_DENIED | CallerFault | 403 |
/// | 8 RESOURCE_EXHAUSTED | Throttled | 429 |
/// | 9 FAILED_PRECONDITION | CallerFault | 400 |
/// | 10 ABORTED | CallerFault | 409: to be tried again from further up, not this call alone |
/// | 11 OUT_OF_RANGE | CallerFault | 400 |
/// | 12 UNIMPLEMENTED | CallerFault | 501 |
/// | 13 INTERNAL | Transient | 500 |
/// | 14 UNAVAILABLE | Transient; Throttled with a hint | 503 |
/// | 15 DATA_LOSS | Transient | 500 |
/// | 16 UNAUTHENTICATED | CallerFault | 401 |
///
/// The statuses are those of `google.rpc.Code`.
pub fn class_of_grpc(code: u8) -> Class {
    grpc_row(code).1
}

/// What the gRPC status in these fields means: trailers, or the head of a trailers-only response.
/// `None` where there is none.
///
/// The class is that of [`class_of_grpc`], and the hint the server's pushback, or whatever else
/// [`hint::read`] knows. UNAVAILABLE may have been processed, unlike 503: proxies turn a reset in
/// mid-request into it. A server that pushes back has turned the call away, so that it is Throttled.
///
/// ```
/// use http::HeaderMap;
/// use tower_spillway_core::{Class, adapter::read_grpc};
///
/// let mut trailers = HeaderMap::new();
/// trailers.insert("grpc-status", "14".parse().unwrap());
/// assert_eq!(read_grpc(&trailers).unwrap().class(), Class::Transient);
///
/// trailers.insert("grpc-retry-pushback-ms", "1500".parse().unwrap());
/// let reading = read_grpc(&trailers).unwrap();
/// assert_eq!(reading.class(), Class::Throttled);
/// assert_eq!(reading.hint().unwrap().after().unwrap().as_millis(), 1500);
/// ```
pub fn read_grpc(fields: &HeaderMap) -> Option<Reading> {
    read_grpc_with(&hint::Reader::default(), StatusCode::OK, fields)
}

/// The same, with the user's own signals first. The status is that of the response.
pub(crate) fn read_grpc_with(
    hints: &hint::Reader,
    status: StatusCode,
    fields: &HeaderMap,
) -> Option<Reading> {
    let reading = match hint::grpc_status(fields)? {
        // Nobody needs a hint on a success.
        0 => Reading::new(Class::Success),
        code => read_grpc_code(code, &hints.read(status, fields)),
    };
    Some(reading)
}

/// What this code, other than OK, means with these signals.
pub(super) fn read_grpc_code(code: u8, signals: &Signals) -> Reading {
    let (name, plain) = grpc_row(code);
    let pushed_back = code == UNAVAILABLE && signals.asked().is_some();
    let class = match plain {
        Class::Transient if pushed_back => Class::Throttled,
        Class::CallerFault if signals.invites() => Class::Transient,
        class => class,
    };
    let unprocessed = pushed_back || matches!(plain, Class::Throttled | Class::CallerFault);
    Reading::new(class)
        .unprocessed(unprocessed)
        .timed_out(code == DEADLINE_EXCEEDED)
        .with_reason(name)
        .with_hint(signals.hint())
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use crate::{Http, Read, hint::Hint};
    use http::{HeaderMap, HeaderName, Response};

    fn read(status: u16, fields: &[(&str, &str)]) -> Reading {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let mut response = Response::new(String::new());
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        *response.headers_mut() = headers;
        Http::new().read(Ok::<_, &(dyn Error + 'static)>(&response))
    }

    #[test]
    fn every_grpc_code() {
        use Class::{CallerFault, Cancelled, Success, Throttled, Transient};
        let rows = [
            (0, "OK", Success),
            (1, "CANCELLED", Cancelled),
            (2, "UNKNOWN", Transient),
            (3, "INVALID_ARGUMENT", CallerFault),
            (4, "DEADLINE_EXCEEDED", Transient),
            (5, "NOT_FOUND", CallerFault),
            (6, "ALREADY_EXISTS", CallerFault),
            (7, "PERMISSION_DENIED", CallerFault),
            (8, "RESOURCE_EXHAUSTED", Throttled),
            (9, "FAILED_PRECONDITION", CallerFault),
            (10, "ABORTED", CallerFault),
            (11, "OUT_OF_RANGE", CallerFault),
            (12, "UNIMPLEMENTED", CallerFault),
            (13, "INTERNAL", Transient),
            (14, "UNAVAILABLE", Transient),
            (15, "DATA_LOSS", Transient),
            (16, "UNAUTHENTICATED", CallerFault),
        ];
        for (code, name, class) in rows {
            let reading = read(200, &[("grpc-status", &code.to_string())]);
            assert_eq!(reading.class(), class, "{name}");
            assert_eq!(class_of_grpc(code), class, "{name}");
            assert_eq!(reading.is_timed_out(), name == "DEADLINE_EXCEEDED");
            assert_eq!(
                reading.is_unprocessed(),
                matches!(class, CallerFault | Throttled),
                "{name}"
            );
            let reason = (code != 0).then_some(name);
            assert_eq!(reading.reason(), reason);
        }
        for none in ["17", "abc", "-1", ""] {
            assert_eq!(read(200, &[("grpc-status", none)]).class(), Transient);
        }
        assert_eq!(class_of_grpc(200), Transient);
    }

    #[test]
    fn pushback() {
        let pushed = |code: &str, ms: &str| {
            read(
                200,
                &[("grpc-status", code), ("grpc-retry-pushback-ms", ms)],
            )
        };
        let unavailable = pushed("14", "1500");
        assert_eq!(unavailable.class(), Class::Throttled);
        assert!(unavailable.is_unprocessed(), "it was turned away");
        assert_eq!(
            unavailable.hint().unwrap().after().unwrap().as_millis(),
            1500
        );
        assert_eq!(pushed("13", "1500").class(), Class::Transient);
        assert_eq!(pushed("8", "-1").hint(), Some(Hint::Never));
        assert_eq!(pushed("0", "1500").hint(), None, "a success is a success");
        assert_eq!(read(200, &[("grpc-retry-pushback-ms", "5")]).hint(), None);
    }

    #[test]
    fn what_headers_do_to_a_status() {
        use Class::{CallerFault, Success, Throttled, Transient};
        let empty = ("x-ratelimit-remaining", "0");
        let again = ("x-should-retry", "true");
        for (status, field, class, unprocessed) in [
            (403, empty, Throttled, true),
            (403, ("x-ratelimit-remaining", "1"), CallerFault, true),
            (403, ("ratelimit", "\"a\";r=0;t=5"), Throttled, true),
            (403, ("retry-after", "5"), CallerFault, true),
            (404, empty, CallerFault, true),
            (503, ("retry-after", "5"), Throttled, true),
            (503, ("x-should-retry", "false"), Transient, true),
            (503, ("x-other", "5"), Transient, true),
            (500, ("retry-after", "5"), Transient, false),
            (400, again, Transient, true),
            (409, again, Transient, true),
            (500, again, Transient, false),
            (501, again, Transient, true),
            (429, again, Throttled, true),
            (200, again, Success, false),
            (304, again, Success, false),
            (400, ("x-should-retry", "false"), CallerFault, true),
        ] {
            let reading = read(status, &[field]);
            assert_eq!(reading.class(), class, "{status} {field:?}");
            assert_eq!(reading.is_unprocessed(), unprocessed, "{status} {field:?}");
        }
    }

    #[test]
    fn a_hint_of_ones_own_makes_a_503_throttled() {
        let http = Http::new().read_hints(|_, headers| {
            headers.get("x-busy").map(|_| Hint::After {
                wait: std::time::Duration::from_secs(3),
                source: crate::hint::Source::Custom("x_busy"),
            })
        });
        let mut response = Response::new(String::new());
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        let read = |response: &_| http.read(Ok::<_, &(dyn Error + 'static)>(response));
        assert_eq!(read(&response).class(), Class::Transient);
        response.headers_mut().insert("x-busy", 1.into());
        assert_eq!(read(&response).class(), Class::Throttled);
        assert_eq!(
            read(&response).hint().unwrap().after().unwrap().as_secs(),
            3
        );
    }

    #[test]
    fn a_success_is_not_read_for_hints() {
        let fields = [
            ("retry-after", "30"),
            ("ratelimit", "\"a\";r=0;t=50"),
            ("x-should-retry", "false"),
        ];
        for status in [200, 201, 299] {
            let reading = read(status, &fields);
            assert_eq!((reading.class(), reading.hint()), (Class::Success, None));
        }
    }
}
