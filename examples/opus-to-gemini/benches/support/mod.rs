//! What the benches share, and the short soak among the tests.

// Each bench is a program of its own, and uses a part of this.
#![allow(dead_code, unreachable_pub, reason = "shared by several programs")]

pub mod caller;
pub mod figures;
pub mod gateway;
pub mod process;
pub mod proxy;
pub mod soak;
pub mod stack;
pub mod upstream;
pub mod verdict;
