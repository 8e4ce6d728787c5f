//! A tower layer that waits as long as the server asked, then sends again.
