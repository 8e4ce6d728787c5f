//! What this process itself is short of, so that a call never left it.

use std::{
    error::Error,
    io,
    net::{Ipv4Addr, UdpSocket},
    time::Duration,
};

use crate::{
    Class, Reading,
    clock::{self, Every},
};

/// Of the process and of the whole system (`EMFILE`, `ENFILE`), which have no kind of their own in
/// `std`; the same numbers on every common Unix.
#[cfg(unix)]
const NO_DESCRIPTOR: [i32; 2] = [24, 23];
/// Of files and of sockets (`ERROR_TOO_MANY_OPEN_FILES`, `WSAEMFILE`).
#[cfg(windows)]
const NO_DESCRIPTOR: [i32; 2] = [4, 10024];
#[cfg(not(any(unix, windows)))]
const NO_DESCRIPTOR: [i32; 0] = [];

/// There is a warning once in this time: whatever runs out is asked for again at once.
static WARNED: Every = Every::new(Duration::from_secs(60));

/// No descriptor was left for the connection: nothing was sent, and no target is to blame.
pub(super) fn no_descriptor(error: &(dyn Error + 'static)) -> Option<Reading> {
    let error = error.downcast_ref::<io::Error>()?;
    let code = error.raw_os_error().or_else(|| behind_lookup(error))?;
    if !NO_DESCRIPTOR.contains(&code) {
        return None;
    }
    if WARNED.is_due(clock::now()) {
        tracing::warn!(
            os_error = code,
            "no file descriptor is left, so calls are not sent: raise the limit of open files \
             (`ulimit -n`) or bound the connections; no target counts it as a failure"
        );
    }
    Some(Reading::new(Class::Refused).with_reason("no_descriptor"))
}

/// What keeps this process from one more socket, if anything does. A lookup of a name that gets no
/// descriptor says that it found no address, and not why.
fn behind_lookup(error: &io::Error) -> Option<i32> {
    const LOOKUP: &str = "failed to lookup address information";
    if !error.to_string().starts_with(LOOKUP) {
        return None;
    }
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    socket.err()?.raw_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_knows_is_no_lack_of_ours() {
        let unknown = "failed to lookup address information: Name or service not known";
        assert_eq!(no_descriptor(&io::Error::other(unknown)), None);
    }
}
