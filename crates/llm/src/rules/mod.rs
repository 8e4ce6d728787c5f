//! What a vendor's answer means, as data.
//!
//! A [`Rule`] is one row: when it holds, and what then. [`Rules`] are asked from the top; the first
//! row that holds decides. The user's own rows come first, then the vendor's (its codes, then its
//! words), then those of the edge in front of it, then the statuses. A status alone never decides
//! where the body says more; a type alone never does.
//!
//! | vendor | table |
//! |---|---|
//! | Anthropic, its OpenAI-compatible endpoint | `vendors/anthropic.rs` |
//! | OpenAI | `vendors/openai.rs` |
//! | Azure | `vendors/azure.rs` |
//! | Gemini, its OpenAI-compatible endpoint | `vendors/gemini.rs` |
//! | Vertex | `vendors/vertex.rs` |
//! | Bedrock, Groq, Mistral, DeepSeek, OpenRouter | `vendors/….rs` |
//! | Cloudflare, the edge in front of many | `vendors/cloudflare.rs` |
//! | statuses | `statuses.rs` |
//!
//! # Example
//!
//! ```
//! use tower_spillway_core::Class;
//! use tower_spillway_llm::{Answer, Remedy, Rule, Rules, Subclass, Vendor};
//!
//! let rules = Rules::of(Vendor::OpenAi)
//!     // A gateway's own code, seen nowhere else.
//!     .with(Rule::new("gateway_stream_timeout", Class::Transient).codes(["gateway_stream_timeout"]))
//!     // Filtered prompts may be tried on the next target.
//!     .subclass(Subclass::ContentPolicy, Class::NotHere);
//!
//! let verdict = rules.judge(&Answer::new(400, br#"{"error":{"code":"gateway_stream_timeout"}}"#));
//! assert_eq!(verdict.class(), Class::Transient);
//! let verdict = rules.judge(&Answer::new(400, br#"{"error":{"code":"content_filter"}}"#));
//! assert_eq!(verdict.class(), Class::NotHere);
//! let verdict = rules.judge(&Answer::new(429, br#"{"error":{"code":"insufficient_quota"}}"#));
//! assert_eq!(verdict.class(), Class::TargetDown);
//! assert_eq!(verdict.remedy(), Some(Remedy::Credit));
//! ```

mod answer;
mod judge;
mod rule;
mod ruling;
mod statuses;
mod table;
mod vendor;
mod vendors;

pub use self::{
    answer::Answer,
    rule::{Remedy, Rule, Subclass},
    ruling::Ruling,
    table::Rules,
    vendor::{UnknownVendor, Vendor},
};
