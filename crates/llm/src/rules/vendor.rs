//! Whose answers they are.

use std::{error::Error, fmt, str::FromStr};

use super::{Rule, vendors};

/// Whose answers a target gives: which table reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vendor {
    /// Anthropic's own API.
    Anthropic,
    /// Anthropic's OpenAI-compatible endpoint.
    AnthropicCompat,
    /// OpenAI.
    OpenAi,
    /// Azure OpenAI.
    Azure,
    /// Gemini's own API, Code Assist included.
    Gemini,
    /// Gemini's OpenAI-compatible endpoint.
    GeminiCompat,
    /// Vertex AI.
    Vertex,
    /// Amazon Bedrock.
    Bedrock,
    /// Groq.
    Groq,
    /// Mistral.
    Mistral,
    /// DeepSeek.
    DeepSeek,
    /// OpenRouter.
    OpenRouter,
    /// Cloudflare's edge, in front of a server of no vendor here.
    Cloudflare,
    /// One gateway in front of many vendors: all tables, one after the other.
    Gateway,
}

const NAMES: [(Vendor, &str); 14] = [
    (Vendor::Anthropic, "anthropic"),
    (Vendor::AnthropicCompat, "anthropic-openai-compat"),
    (Vendor::OpenAi, "openai"),
    (Vendor::Azure, "azure-openai"),
    (Vendor::Gemini, "gemini"),
    (Vendor::GeminiCompat, "gemini-openai-compat"),
    (Vendor::Vertex, "vertex"),
    (Vendor::Bedrock, "bedrock"),
    (Vendor::Groq, "groq"),
    (Vendor::Mistral, "mistral"),
    (Vendor::DeepSeek, "deepseek"),
    (Vendor::OpenRouter, "openrouter"),
    (Vendor::Cloudflare, "cloudflare"),
    (Vendor::Gateway, "gateway"),
];

impl Vendor {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(vendor, _)| vendor)
    }

    /// The name in configuration, logs and metrics.
    pub fn as_str(self) -> &'static str {
        NAMES
            .iter()
            .find(|(vendor, _)| *vendor == self)
            .map_or("gateway", |(_, name)| name)
    }

    /// Its own rows, then those of the edge in front of it.
    pub(super) fn rules(self) -> Vec<Rule> {
        use vendors as v;
        let mut rows = match self {
            Self::Anthropic => v::anthropic::rules(),
            Self::AnthropicCompat => v::anthropic_compat::rules(),
            Self::OpenAi => v::openai::rules(),
            Self::Azure => v::azure::rules(),
            Self::Gemini => v::gemini::rules(),
            Self::GeminiCompat => v::gemini_compat::rules(),
            Self::Vertex => v::vertex::rules(),
            Self::Bedrock => v::bedrock::rules(),
            Self::Groq => v::groq::rules(),
            Self::Mistral => v::mistral::rules(),
            Self::DeepSeek => v::deepseek::rules(),
            Self::OpenRouter => v::openrouter::rules(),
            Self::Cloudflare => Vec::new(),
            Self::Gateway => [
                v::openrouter::rules(),
                v::anthropic::rules(),
                v::anthropic_compat::rules(),
                v::gemini::rules(),
                v::vertex::rules(),
                v::openai::rules(),
                v::azure::rules(),
                v::bedrock::rules(),
                v::groq::rules(),
                v::mistral::rules(),
                v::deepseek::rules(),
            ]
            .concat(),
        };
        rows.extend(v::cloudflare::rules());
        rows
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Vendor {
    type Err = UnknownVendor;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(vendor, _)| *vendor)
            .ok_or(UnknownVendor(()))
    }
}

/// No vendor of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVendor(());

impl fmt::Display for UnknownVendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("vendor must be one of")?;
        for (n, vendor) in Vendor::all().enumerate() {
            write!(f, "{} {vendor}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Error for UnknownVendor {}
