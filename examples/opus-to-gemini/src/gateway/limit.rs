//! How long a call may take, where its request says so.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::{error::ApiError, headers::TIMEOUT_MS};
use crate::config;

/// The time that a request gives itself: the nearest that the file allows. `None` if it says
/// nothing; then the deadlines of the file hold.
pub(super) fn asked(
    headers: &HeaderMap,
    table: &config::Gateway,
) -> Result<Option<Duration>, ApiError> {
    let Some(value) = headers.get(TIMEOUT_MS) else {
        return Ok(None);
    };
    let millis = value
        .to_str()
        .ok()
        .and_then(|v| v.trim().parse::<u64>().ok());
    let millis = millis.ok_or_else(|| {
        let message = "x-spillway-timeout-ms must be a whole number of milliseconds.";
        ApiError::invalid(StatusCode::BAD_REQUEST, "invalid_timeout", message)
    })?;
    let asked = Duration::from_millis(millis);
    Ok(Some(asked.min(table.max_timeout).max(table.min_timeout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_of_range_becomes_the_nearest_in_it() {
        let table = config::Gateway::default();
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(TIMEOUT_MS, text.parse().unwrap());
            asked(&headers, &table)
        };
        let (least, most) = (table.min_timeout, table.max_timeout);
        assert_eq!(of("0").unwrap(), Some(least));
        assert_eq!(of("30000").unwrap(), Some(Duration::from_secs(30)));
        assert_eq!(of("18446744073709551615").unwrap(), Some(most));
        for wrong in ["", "-1", "1.5", "10s", "18446744073709551616"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(asked(&HeaderMap::new(), &table).unwrap(), None);
    }
}
