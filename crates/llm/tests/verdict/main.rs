//! What a layer outside of `VendorVerdictLayer` sees.

mod alarm;
mod body;
mod give_back;
mod stall;
mod verdicts;
