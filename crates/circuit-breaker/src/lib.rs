//! A tower layer that takes a failing target out at once and brings it back carefully.
