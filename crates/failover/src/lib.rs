//! A tower service that sends a call to the next target when one fails.
