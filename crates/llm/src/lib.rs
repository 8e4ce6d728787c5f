//! Placeholder docs.

mod media;
pub mod profile;
pub mod rules;
mod said;
pub mod verdict;

pub use crate::{
    profile::{NotInMemory, TargetProfile},
    rules::{Answer, Remedy, Rule, Rules, Subclass, UnknownVendor, Vendor, Verdict},
    said::Said,
    verdict::{PeekedBody, VendorVerdict, VendorVerdictLayer},
};
