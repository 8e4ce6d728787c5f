//! For tests: scripted services, a probe of the readiness contract, a walker over drop points, a
//! wall clock that stands still, counted clock reads.

pub mod clock;
