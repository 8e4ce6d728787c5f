//! The reference stack: chat calls to Claude Opus that go on to Gemini when they must.
//!
//! | module | what it holds |
//! |---|---|
//! | [`pipeline`] | the stack: a tower service over chat requests in OpenAI's shape |
//! | [`chat`] | one chat through it: the answer, or what went wrong, and the record |
//! | [`batch`] | a file of prompts, worked off through outages and restarts |
//! | [`config`] | what a file can set: targets, chains, policies, prices |
//! | [`keys`] | the vendors' keys, from the environment and from files |
//! | [`gateway`] | the stack as a server |
//! | [`fake`] | two fake vendors on loopback, to try and test without keys or network |
//! | [`demo`] | an incident, played against the stack |
//!
//! # Example
//!
//! ```
//! use opus_to_gemini::{
//!     chat::{Chat, ask},
//!     fake::{Behaviour, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
//!     pipeline::{Pipeline, Upstream},
//! };
//! use tower_spillway_core::Chance;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Stand-ins; leave out the two `url` lines for the real ones.
//! let fakes = Fakes::start(&Chance::seeded(1)).await?;
//! let pipeline = Pipeline::builder()
//!     .target(Upstream::opus(FAKE_ANTHROPIC_KEY).url(fakes.anthropic.url()))
//!     .target(Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()))
//!     .build()?;
//!
//! fakes.anthropic.set(Behaviour::Fail { status: 529 });
//! let asked = ask(&pipeline, &Chat::new("Hello")).await;
//!
//! assert!(asked.answer?.text.contains("gemini-2.5-pro"));
//! let reason = asked.report.fallback_reason.unwrap();
//! assert_eq!(reason.to_string(), "opus: transient (other_target_first)");
//! # Ok(())
//! # }
//! ```

pub mod batch;
pub mod chat;
pub mod config;
pub mod demo;
pub mod fake;
pub mod gateway;
pub mod keys;
pub mod pipeline;
