//! What gRPC says: the status, and the server's pushback.

use http::{HeaderMap, HeaderName, header};

use super::{Hint, Source, number};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_RETRY_PUSHBACK_MS: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The code of unknown errors, and of statuses that are none.
const UNKNOWN: u8 = 2;

/// Whether the head of a response is that of a gRPC call, by its `Content-Type`. gRPC-Web is none:
/// it has its trailers in the data.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.as_bytes().strip_prefix(GRPC))
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The code in `grpc-status`, if there is one: in trailers, or in the head of a trailers-only
/// response. One that is no code of gRPC counts as UNKNOWN (2).
pub fn grpc_status(headers: &HeaderMap) -> Option<u8> {
    let value = headers.get(GRPC_STATUS)?;
    let code = number::text(value)
        .and_then(number::whole)
        .and_then(|code| u8::try_from(code).ok())
        .filter(|code| *code <= 16);
    Some(code.unwrap_or(UNKNOWN))
}

/// The server's pushback in trailers, or in the head of a trailers-only response (gRPC A6): after
/// so many milliseconds, or never. Never is a value below zero, one that is no 32-bit number, and
/// a field sent twice.
pub fn grpc_pushback(headers: &HeaderMap) -> Option<Hint> {
    let mut lines = headers.get_all(GRPC_RETRY_PUSHBACK_MS).iter();
    let first = lines.next()?;
    let asked = number::text(first)
        .and_then(number::whole)
        .and_then(|ms| i32::try_from(ms).ok())
        .and_then(|ms| u64::try_from(ms).ok());
    Some(match (asked, lines.next()) {
        (Some(ms), None) => Hint::After {
            wait: std::time::Duration::from_millis(ms),
            source: Source::GrpcPushback,
        },
        _ => Hint::Never,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn pushback() {
        let read = |values: &[&[u8]]| grpc_pushback(&headers("grpc-retry-pushback-ms", values));
        let ms = |values| read(values).and_then(Hint::after).map(|d| d.as_millis());
        assert_eq!(read(&[]), None);
        assert_eq!(ms(&[b"0"]), Some(0));
        assert_eq!(ms(&[b" 5000 "]), Some(5000));
        assert_eq!(ms(&[b"2147483647"]), Some(2_147_483_647));
        let never: [&[&[u8]]; 7] = [
            &[b"-1"],
            &[b""],
            &[b"abc"],
            &[b"1.5"],
            &[b"2147483648"],
            &[b"100", b"10"],
            &[b"\xff"],
        ];
        for values in never {
            assert_eq!(read(values), Some(Hint::Never), "{values:?}");
        }
        assert_eq!(read(&[&[b'1'; 100_000]]), Some(Hint::Never));
    }

    #[test]
    fn kinds() {
        let kind = |value: &[u8]| is_grpc(&headers("content-type", &[value]));
        for grpc in [
            &b"application/grpc"[..],
            b"application/grpc+proto",
            b"application/grpc; charset=utf-8",
            b"application/grpc ",
        ] {
            assert!(kind(grpc), "{grpc:?}");
        }
        for other in [
            &b"application/grpc-web+proto"[..],
            b"application/grpcx",
            b"application/json",
            b"",
            b"\xff",
        ] {
            assert!(!kind(other), "{other:?}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn status() {
        let read = |value: &[u8]| grpc_status(&headers("grpc-status", &[value]));
        assert_eq!(grpc_status(&HeaderMap::new()), None);
        for code in 0..=16 {
            assert_eq!(read(code.to_string().as_bytes()), Some(code));
        }
        for bad in [
            &b"17"[..],
            b"-1",
            b"",
            b"OK",
            b"\xff",
            b"99999999999999999999999",
        ] {
            assert_eq!(read(bad), Some(UNKNOWN), "{bad:?}");
        }
    }
}
