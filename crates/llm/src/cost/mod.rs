//! What answers used, and what that costs.
//!
//! All arithmetic is exact and in whole numbers: a price is in millionths of a dollar per million
//! tokens, which is 10⁻¹² dollar per token, and so is a cost. It saturates.
//!
//! # Example
//!
//! ```
//! use tower_spillway_llm::{Price, PriceTable, Usage};
//!
//! let prices = PriceTable::new("2026-09-01")?
//!     .with("claude-opus-5", Price::per_million("5", "25")?.cached("0.50")?)
//!     .with("gemini-2.5-pro", Price::per_million("1.25", "10")?);
//!
//! let answer = br#"{"choices":[{}],"usage":{"prompt_tokens":1200,"completion_tokens":300,
//!     "total_tokens":1500,"prompt_tokens_details":{"cached_tokens":1000}}}"#;
//! let usage = Usage::of_answer(answer).unwrap();
//! assert_eq!(usage.to_string(), "1200 in (1000 cached), 300 out");
//!
//! let cost = prices.cost("claude-opus-5", &usage).unwrap();
//! assert_eq!(cost.to_string(), "$0.009");
//! assert_eq!(cost.nano_dollars(), 9_000_000);
//! assert_eq!(prices.date(), "2026-09-01");
//! # Ok::<(), tower_spillway_core::InvalidConfig>(())
//! ```

mod price;
mod usage;

pub use self::{
    price::{Cost, Price, PriceTable},
    usage::Usage,
};
