//! A tower layer that retries with jittered backoff.
