//! A tower layer that bounds what retries may add, per call and per target.
