use std::{borrow::Cow, ops::RangeInclusive};

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use tower_spillway_core::InvalidConfig;

use super::{Fields, history};

type Text = Cow<'static, str>;

/// What one target takes, and how a request is made to fit. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct TargetProfile {
    model: Option<Text>,
    context: Option<u64>,
    known: Option<Vec<Text>>,
    dropped: Vec<Text>,
    renamed: Vec<(Text, Text)>,
    clamped: Vec<(Text, RangeInclusive<f64>)>,
    max_tokens: Option<u64>,
    most_tokens: Option<u64>,
    prefill: bool,
    tools_as_text: bool,
    drop_thinking: bool,
    keep_google: bool,
}

/// Parameters of sampling.
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

/// What Gemini's endpoint knows; another name is a 400.
const GEMINI: [&str; 15] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "parallel_tool_calls",
    "reasoning_effort",
    "response_format",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];

impl Default for TargetProfile {
    /// Takes everything as it is.
    fn default() -> Self {
        Self {
            model: None,
            context: None,
            known: None,
            dropped: Vec::new(),
            renamed: Vec::new(),
            clamped: Vec::new(),
            max_tokens: None,
            most_tokens: None,
            prefill: true,
            tools_as_text: false,
            drop_thinking: false,
            keep_google: true,
        }
    }
}

impl TargetProfile {
    /// Takes everything as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// A model at Anthropic's OpenAI-compatible endpoint.
    pub fn anthropic_compat(model: impl Into<Cow<'static, str>>) -> Self {
        Self {
            context: Some(200_000),
            clamped: vec![("n".into(), 1.0..=1.0)],
            prefill: false,
            drop_thinking: true,
            keep_google: false,
            ..Self::default()
        }
        .model(model)
        .drop_fields(SAMPLING)
    }

    /// A model at Gemini's OpenAI-compatible endpoint.
    pub fn gemini_compat(model: impl Into<Cow<'static, str>>) -> Self {
        Self {
            context: Some(1_048_576),
            known: Some(GEMINI.into_iter().map(Into::into).collect()),
            clamped: vec![("n".into(), 1.0..=8.0), ("temperature".into(), 0.0..=2.0)],
            tools_as_text: true,
            drop_thinking: true,
            ..Self::default()
        }
        .model(model)
    }

    /// The model that is asked for here, whatever the caller named.
    #[must_use]
    pub fn model(mut self, model: impl Into<Cow<'static, str>>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// How many tokens fit, prompt and answer together; for
    /// [`larger_context_than`](Self::larger_context_than).
    #[must_use]
    pub fn context(mut self, tokens: u64) -> Self {
        self.context = Some(tokens);
        self
    }

    /// Takes only these fields; the others are dropped.
    #[must_use]
    pub fn only_fields<T: Into<Cow<'static, str>>>(
        mut self,
        fields: impl IntoIterator<Item = T>,
    ) -> Self {
        self.known = Some(fields.into_iter().map(Into::into).collect());
        self
    }

    /// Takes these fields too, where only known ones are taken, or where they were dropped.
    #[must_use]
    pub fn keep_fields<T: Into<Cow<'static, str>>>(
        mut self,
        fields: impl IntoIterator<Item = T>,
    ) -> Self {
        for field in fields {
            let field = field.into();
            self.dropped.retain(|dropped| *dropped != field);
            if let Some(known) = &mut self.known {
                known.push(field);
            }
        }
        self
    }

    /// Drops these fields.
    #[must_use]
    pub fn drop_fields<T: Into<Cow<'static, str>>>(
        mut self,
        fields: impl IntoIterator<Item = T>,
    ) -> Self {
        self.dropped.extend(fields.into_iter().map(Into::into));
        self
    }

    /// Gives a field another name, unless the request has one of that name: the old one is then
    /// dropped.
    #[must_use]
    pub fn rename(
        mut self,
        from: impl Into<Cow<'static, str>>,
        to: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.renamed.push((from.into(), to.into()));
        self
    }

    /// Brings a number into a range.
    ///
    /// # Errors
    ///
    /// The range must be finite and not empty.
    pub fn clamp(
        mut self,
        field: impl Into<Cow<'static, str>>,
        range: RangeInclusive<f64>,
    ) -> Result<Self, InvalidConfig> {
        let finite = range.start().is_finite() && range.end().is_finite();
        if !finite || range.is_empty() {
            return Err(InvalidConfig::new(
                "clamp",
                "a finite range that is not empty",
            ));
        }
        let field = field.into();
        self.clamped.retain(|(clamped, _)| *clamped != field);
        self.clamped.push((field, range));
        Ok(self)
    }

    /// Whether sampling parameters (`temperature`, `top_p`, `top_k`) are kept; a temperature above
    /// 1 becomes 1. For Claude models before Opus 4.7.
    #[must_use]
    pub fn sampling(mut self, yes: bool) -> Self {
        self.dropped.retain(|field| !SAMPLING.contains(&&**field));
        self.clamped.retain(|(field, _)| *field != "temperature");
        match yes {
            true => self.clamped.push(("temperature".into(), 0.0..=1.0)),
            false => self.dropped.extend(SAMPLING.map(Into::into)),
        }
        self
    }

    /// The longest answer, in tokens, where the request names none.
    #[must_use]
    pub fn default_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// The longest answer that may be asked for, in tokens; more becomes this.
    #[must_use]
    pub fn cap_max_tokens(mut self, tokens: u64) -> Self {
        self.most_tokens = Some(tokens);
        self
    }

    /// Whether a conversation may end with the assistant's own words, which the answer goes on
    /// from. Where not, a user's "Please continue." is added.
    #[must_use]
    pub fn prefill(mut self, yes: bool) -> Self {
        self.prefill = yes;
        self
    }

    /// Whether tool calls that this target did not make, and their results, become text.
    ///
    /// A call is its own if it carries Google's thought signature; of several calls of one message
    /// only the first has it.
    #[must_use]
    pub fn foreign_tools_as_text(mut self, yes: bool) -> Self {
        self.tools_as_text = yes;
        self
    }

    /// Whether thoughts (blocks of type `thinking`, fields like `reasoning_content`) are dropped
    /// from the conversation.
    #[must_use]
    pub fn drop_thinking(mut self, yes: bool) -> Self {
        self.drop_thinking = yes;
        self
    }

    /// Whether Google's own fields in messages (`extra_content`) are kept.
    #[must_use]
    pub fn keep_extra_content(mut self, yes: bool) -> Self {
        self.keep_google = yes;
        self
    }

    /// The model, if set.
    pub fn model_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// How many tokens fit, if known.
    pub fn context_tokens(&self) -> Option<u64> {
        self.context
    }

    /// Whether more fits here than there: what
    /// [`Rules::larger_context_elsewhere`](crate::Rules::larger_context_elsewhere) of the other
    /// target wants to know.
    pub fn larger_context_than(&self, other: &Self) -> bool {
        matches!((self.context, other.context), (Some(here), Some(there)) if here > there)
    }

    /// Rewrites a chat request in place.
    ///
    /// # Errors
    ///
    /// There is something to rewrite in its messages, and they are nested too deeply to be read.
    pub fn rewrite(&self, chat: &mut Fields<'_>) -> Result<(), serde_json::Error> {
        for (from, to) in &self.renamed {
            chat.rename(from, to);
        }
        chat.retain(|name| {
            let known = self.known.as_ref();
            let known = known.is_none_or(|known| known.iter().any(|k| k == name));
            known && !self.dropped.iter().any(|dropped| dropped == name)
        });
        if let Some(model) = &self.model {
            chat.set("model", &**model);
        }
        for (field, range) in &self.clamped {
            chat.clamp(field, range);
        }
        self.limit_answer(chat);
        if self.tools_as_text || self.drop_thinking || !self.prefill {
            chat.replace("messages", |messages| self.messages(messages))?;
        }
        Ok(())
    }

    /// The messages made to fit; `None` if they do.
    fn messages(&self, messages: &RawValue) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        if !history::may_hold_others(messages, self.prefill) {
            return Ok(None);
        }
        let mut messages: Vec<Value> = serde_json::from_str(messages.get())?;
        // Before thoughts go, since they hold the signatures of a target's own calls.
        if self.tools_as_text {
            history::foreign_tools_as_text(&mut messages);
        }
        if self.drop_thinking {
            history::drop_thinking(&mut messages, self.keep_google);
        }
        if !self.prefill {
            history::end_with_user(&mut messages);
        }
        to_raw_value(&messages).map(Some)
    }

    fn limit_answer(&self, chat: &mut Fields<'_>) {
        const NAMES: [&str; 2] = ["max_completion_tokens", "max_tokens"];
        // Of the two names for one limit, the newer.
        if NAMES.iter().all(|name| chat.is_set(name)) {
            chat.remove("max_tokens");
        }
        let set = NAMES.into_iter().find(|name| chat.is_set(name));
        match (set, self.most_tokens) {
            (Some(name), Some(most)) => chat.cap(name, most),
            (None, most) => {
                let wanted = self.max_tokens.map(|n| n.min(most.unwrap_or(u64::MAX)));
                if let Some(wanted) = wanted {
                    chat.set("max_tokens", wanted);
                }
            }
            (Some(_), None) => {}
        }
    }
}
