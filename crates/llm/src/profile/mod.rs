//! Makes a chat request fit one target.
//!
//! A body that one vendor takes is a 400 at the next: fields are unknown there, a temperature is too
//! high, a conversation holds another vendor's tool calls or thoughts. A [`TargetProfile`] says what
//! one target takes, and rewrites a request for it; in a failover it belongs into `Target::prepare`.
//!
//! | | [`anthropic_compat`](TargetProfile::anthropic_compat) | [`gemini_compat`](TargetProfile::gemini_compat) |
//! |---|---|---|
//! | fields | all: unknown ones are ignored | the known ones |
//! | sampling parameters | dropped: models since Opus 4.7 reject them; kept with [`sampling`](TargetProfile::sampling), temperature at most 1 | kept |
//! | `n` | 1 | 1 to 8 |
//! | an answer begun by the caller (prefill) | rejected: the model is asked to go on | taken |
//! | tool calls of other vendors | kept | as text: they have no thought signature |
//! | thoughts of other vendors | dropped | dropped |
//! | context | 200,000 tokens | 1,048,576 tokens |
//!
//! Sources: Anthropic's OpenAI SDK compatibility page; ai.google.dev/gemini-api/docs/openai;
//! RooCodeInc/Roo-Code issue 12162; router-for-me/CLIProxyAPI issue 5319; diegosouzapw/OmniRoute
//! pull 9448.
//!
//! # Example
//!
//! ```
//! use http::Request;
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use tower_spillway_llm::TargetProfile;
//!
//! let gemini = TargetProfile::gemini_compat("gemini-2.5-pro");
//! let chat = br#"{"model":"claude-opus-5","messages":[{"role":"user","content":"hi"}],
//!     "logit_bias":{"50256":-100}}"#;
//! assert_eq!(
//!     gemini.rewrite_bytes(&Bytes::from_static(chat)),
//!     r#"{"model":"gemini-2.5-pro","messages":[{"role":"user","content":"hi"}]}"#,
//! );
//!
//! // A whole request: its length is set anew.
//! let mut request = Request::post("/v1/chat/completions")
//!     .header("content-length", "55")
//!     .body(Full::<Bytes>::from(r#"{"model":"x","messages":[{"role":"user","content":""}]}"#))?;
//! gemini.prepare(&mut request)?;
//! assert_eq!(request.headers()["content-length"], "68");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```

mod fields;
mod history;
mod prepare;
mod target;

pub(crate) use self::fields::Name;
pub use self::{fields::Fields, prepare::NotInMemory, target::TargetProfile};
