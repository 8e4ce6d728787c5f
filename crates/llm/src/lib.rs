//! Placeholder docs.

mod media;
pub mod rules;
mod said;
pub mod verdict;

pub use crate::{
    rules::{Answer, Remedy, Rule, Rules, Subclass, UnknownVendor, Vendor, Verdict},
    said::Said,
    verdict::{PeekedBody, VendorVerdict, VendorVerdictLayer},
};
