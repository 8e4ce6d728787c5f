//! What an error means.

use std::{error::Error, fmt, io, sync::Arc};

use super::shortage::no_descriptor;
#[cfg(feature = "tonic")]
use super::table;
use crate::{
    Class, Reading, Refused,
    error::{Classified, TimedOut, chain},
};

type Reader = dyn Fn(&(dyn Error + 'static)) -> Option<Reading> + Send + Sync;

/// Reads errors: ours, `io::Error`, those of the crates whose features are on, and the user's own.
///
/// An `io::Error` that says that no file descriptor is left is read as [`Class::Refused`]: nothing
/// was sent, and no target is to blame. There is a warning, once a minute. So is a lookup of a name
/// that failed while none is left, which does not say so itself.
#[derive(Clone, Default)]
pub struct ErrorReader(Option<Arc<Reader>>);

impl ErrorReader {
    /// Asks `read` first for each error in the chain of sources, from the outside in.
    pub fn new(
        read: impl Fn(&(dyn Error + 'static)) -> Option<Reading> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(read)))
    }

    /// The reading of an error. One that nobody knows is Transient and may have been processed.
    pub fn read(&self, error: &(dyn Error + 'static)) -> Reading {
        own(error)
            .or_else(|| {
                let user = self.0.as_deref()?;
                chain(error).find_map(user)
            })
            .or_else(|| chain(error).find_map(no_descriptor))
            // From the inside out: the innermost error that we know says most. A client's
            // "connect" wraps the io error that caused it, so connecting is asked first.
            .or_else(|| chain(error).find_map(connecting))
            .or_else(|| chain(error).filter_map(foreign).last())
            .unwrap_or_else(|| Reading::new(Class::Transient))
    }
}

impl fmt::Debug for ErrorReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "ErrorReader(custom)"
        } else {
            "ErrorReader(default)"
        })
    }
}

/// Errors of these crates: they say what they mean, whatever wraps them.
pub(super) fn own(error: &(dyn Error + 'static)) -> Option<Reading> {
    chain(error).find_map(|e| {
        if let Some(classified) = e.downcast_ref::<Classified>() {
            return Some(classified.reading().clone());
        }
        if e.is::<Refused>() {
            return Some(Reading::new(Class::Refused));
        }
        if e.is::<TimedOut>() {
            return Some(Reading::new(Class::Transient).timed_out(true));
        }
        None
    })
}

/// The connection was never made: nothing was sent.
fn connecting(error: &(dyn Error + 'static)) -> Option<Reading> {
    #[cfg(feature = "hyper-util")]
    if let Some(e) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
        if e.is_connect() {
            return Some(Reading::new(Class::Transient).unprocessed(true));
        }
    }
    #[cfg(feature = "tonic")]
    if error.is::<tonic::ConnectError>() {
        return Some(Reading::new(Class::Transient).unprocessed(true));
    }
    let e = error.downcast_ref::<io::Error>()?;
    matches!(
        e.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::AddrNotAvailable
    )
    .then(|| Reading::new(Class::Transient).unprocessed(true))
}

fn foreign(error: &(dyn Error + 'static)) -> Option<Reading> {
    #[cfg(feature = "tower")]
    {
        if error.is::<tower::timeout::error::Elapsed>() {
            return Some(Reading::new(Class::Transient).timed_out(true));
        }
        if error.is::<tower::load_shed::error::Overloaded>() {
            return Some(Reading::new(Class::Refused));
        }
    }
    #[cfg(feature = "hyper")]
    if let Some(e) = error.downcast_ref::<hyper::Error>() {
        // Cancelled in hyper's sense: the connection closed before this request was written.
        return Some(
            Reading::new(Class::Transient)
                .timed_out(e.is_timeout())
                .unprocessed(e.is_canceled()),
        );
    }
    #[cfg(feature = "h2")]
    if let Some(e) = error.downcast_ref::<h2::Error>() {
        // RFC 9113 8.7: a refused stream was not processed.
        let refused = e.reason() == Some(h2::Reason::REFUSED_STREAM);
        return Some(Reading::new(Class::Transient).unprocessed(refused));
    }
    #[cfg(feature = "tonic")]
    {
        if error.is::<tonic::TimeoutExpired>() {
            return Some(Reading::new(Class::Transient).timed_out(true));
        }
        if let Some(status) = error.downcast_ref::<tonic::Status>() {
            return read_status(status);
        }
    }
    let e = error.downcast_ref::<io::Error>()?;
    Some(Reading::new(Class::Transient).timed_out(e.kind() == io::ErrorKind::TimedOut))
}

/// As the same code in a head. One that tonic made of another error has that as its source, which
/// says more and is read too. OK says nothing of an error.
#[cfg(feature = "tonic")]
fn read_status(status: &tonic::Status) -> Option<Reading> {
    use crate::hint;

    let code = u8::try_from(i32::from(status.code())).ok()?;
    let fields = status.metadata().as_ref();
    let signals = hint::Reader::default().read(http::StatusCode::OK, fields);
    (code != 0).then(|| table::read_grpc_code(code, &signals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxError, Refusal, TimeLimit};

    fn read(error: impl Into<BoxError>) -> Reading {
        ErrorReader::default().read(&*error.into())
    }

    fn io(kind: io::ErrorKind) -> io::Error {
        kind.into()
    }

    /// As a client wraps what failed below it.
    #[derive(Debug)]
    struct Wrapped(BoxError);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("client error")
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&*self.0)
        }
    }

    #[test]
    fn a_connection_that_was_not_made_sent_nothing() {
        let refused = Reading::new(Class::Transient).unprocessed(true);
        assert_eq!(read(io(io::ErrorKind::ConnectionRefused)), refused);
        let wrapped = Wrapped(io(io::ErrorKind::ConnectionRefused).into());
        assert_eq!(read(wrapped), refused);
    }

    #[cfg(unix)]
    #[test]
    fn a_lack_of_descriptors_is_no_failure_of_the_target() {
        for code in [23, 24] {
            let lack = || io::Error::from_raw_os_error(code);
            let refused = Reading::new(Class::Refused).with_reason("no_descriptor");
            assert!(refused.is_unprocessed());
            assert_eq!(read(lack()), refused);
            assert_eq!(read(Wrapped(lack().into())), refused);
            #[cfg(feature = "tonic")]
            assert_eq!(read(tonic::ConnectError(lack().into())), refused);
        }
        let other = io::Error::from_raw_os_error(22);
        assert_eq!(read(other).class(), Class::Transient);
    }

    #[test]
    fn a_reset_may_have_been_processed() {
        let reading = read(io(io::ErrorKind::ConnectionReset));
        assert_eq!(reading, Reading::new(Class::Transient));
        assert!(!reading.is_unprocessed());
    }

    #[test]
    fn time_limits_are_told_apart() {
        for error in [
            BoxError::from(io(io::ErrorKind::TimedOut)),
            TimedOut::new(TimeLimit::Head, std::time::Duration::ZERO).into(),
            io::Error::other(TimedOut::new(TimeLimit::Call, std::time::Duration::ZERO)).into(),
        ] {
            assert_eq!(read(error), Reading::new(Class::Transient).timed_out(true));
        }
    }

    #[test]
    fn refusals_and_readings_are_found_at_any_depth() {
        let refused = Wrapped(Wrapped(Refused::new(Refusal::Open).into()).into());
        assert_eq!(read(refused).class(), Class::Refused);
        let fault = Classified::new(Reading::new(Class::CallerFault), "no");
        assert_eq!(read(io::Error::other(fault)).class(), Class::CallerFault);
    }

    #[test]
    fn unknown_errors_are_transient() {
        assert_eq!(read("something"), Reading::new(Class::Transient));
    }

    #[test]
    fn readers_of_ones_own_come_after_these_crates_and_before_others() {
        let reader = ErrorReader::new(|e| {
            (e.is::<io::Error>() || e.is::<TimedOut>()).then(|| Reading::new(Class::CallerFault))
        });
        let reset: BoxError = Wrapped(io(io::ErrorKind::ConnectionReset).into()).into();
        assert_eq!(reader.read(&*reset).class(), Class::CallerFault);
        let ours: BoxError = TimedOut::new(TimeLimit::Head, std::time::Duration::ZERO).into();
        assert_eq!(reader.read(&*ours).class(), Class::Transient);
    }

    #[cfg(feature = "tower")]
    #[test]
    fn errors_of_tower() {
        let elapsed = read(Wrapped(tower::timeout::error::Elapsed::new().into()));
        assert_eq!(elapsed, Reading::new(Class::Transient).timed_out(true));
        let shed = read(tower::load_shed::error::Overloaded::new());
        assert_eq!(shed.class(), Class::Refused);
    }

    #[cfg(feature = "h2")]
    #[test]
    fn errors_of_h2() {
        let refused = read(Wrapped(h2::Error::from(h2::Reason::REFUSED_STREAM).into()));
        assert_eq!(refused, Reading::new(Class::Transient).unprocessed(true));
        let reset = read(h2::Error::from(h2::Reason::INTERNAL_ERROR));
        assert_eq!(reset, Reading::new(Class::Transient));
    }

    #[cfg(feature = "tonic")]
    #[test]
    fn every_code_of_tonic_reads_as_in_a_head() {
        use http::HeaderMap;
        use tonic::{Code, Status, metadata::MetadataMap};

        assert_eq!(read(Status::ok("?")), Reading::new(Class::Transient));
        let pushbacks = [None, Some("1500"), Some("0"), Some("-1"), Some("soon")];
        for code in 1..=16 {
            for pushback in pushbacks {
                let mut fields = HeaderMap::new();
                if let Some(ms) = pushback {
                    fields.insert("grpc-retry-pushback-ms", ms.parse().unwrap());
                }
                let metadata = MetadataMap::from_headers(fields.clone());
                let status = Status::with_metadata(Code::from(code), "no", metadata);
                fields.insert("grpc-status", code.into());
                let head = table::read_grpc(&fields).unwrap();
                assert_eq!(head.class(), read(status.clone()).class());
                assert_eq!(read(Wrapped(status.clone().into())), head);
                assert_eq!(read(status), head, "{code} {pushback:?}");
            }
        }
    }

    #[cfg(feature = "tonic")]
    #[test]
    fn what_failed_below_tonic_says_more_than_its_status() {
        use std::sync::Arc;
        use tonic::{ConnectError, Status, TimeoutExpired};

        let unprocessed = Reading::new(Class::Transient).unprocessed(true);
        let timed_out = Reading::new(Class::Transient).timed_out(true);
        // As tonic's own conversion does it: the status has the error as its source.
        let over = |error: BoxError| Status::from_error(Wrapped(error).into());

        let connect = || ConnectError("tls handshake".into());
        assert_eq!(read(Wrapped(connect().into())), unprocessed);
        assert_eq!(read(over(connect().into())), unprocessed);
        assert_eq!(read(Wrapped(TimeoutExpired(()).into())), timed_out);
        let expired = over(TimeoutExpired(()).into());
        assert_eq!(expired.code(), tonic::Code::Cancelled);
        assert_eq!(read(expired), timed_out);

        let mut reset = Status::unavailable("broken");
        reset.set_source(Arc::new(io(io::ErrorKind::ConnectionRefused)));
        assert_eq!(read(reset), unprocessed);
        assert_eq!(
            read(over(Status::not_found("x").into())).class(),
            Class::CallerFault
        );
        let refused = over(Refused::new(Refusal::Open).into());
        assert_eq!(read(refused).class(), Class::Refused);
        assert_eq!(read(over("something".into())).class(), Class::Transient);
    }
}
