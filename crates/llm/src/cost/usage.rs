use std::{fmt, iter::Sum, ops::Add};

use serde_json::Value;

use crate::Fields;

/// Tokens of one answer, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub input: u64,
    /// Tokens of the prompt that were read from a cache.
    pub cached: u64,
    /// Tokens of the answer, thoughts included.
    pub output: u64,
}

impl Usage {
    /// From the bytes of an OpenAI-shaped answer; `None` if it tells none.
    pub fn of_answer(body: &[u8]) -> Option<Self> {
        Self::of_fields(&Fields::read(body).ok()?)
    }

    /// From an OpenAI-shaped answer whose top was read.
    pub fn of_fields(answer: &Fields<'_>) -> Option<Self> {
        Self::of_counts(&serde_json::from_str(answer.get("usage")?).ok()?)
    }

    /// From an OpenAI-shaped answer, or from a chunk of a stream that has a `usage`.
    ///
    /// Gemini counts thoughts in `total_tokens` alone; they are part of the answer here, since they
    /// are billed as such.
    pub fn of_value(answer: &Value) -> Option<Self> {
        Self::of_counts(answer.get("usage")?)
    }

    pub(crate) fn of_counts(usage: &Value) -> Option<Self> {
        let count = |name| usage.get(name).and_then(Value::as_u64);
        let input = count("prompt_tokens")?;
        let told = count("completion_tokens").unwrap_or(0);
        let total = count("total_tokens").unwrap_or(0);
        let details = usage.get("prompt_tokens_details");
        let cached = details.and_then(|d| d.get("cached_tokens")?.as_u64());
        Some(Self {
            input,
            cached: cached.unwrap_or(0).min(input),
            output: told.max(total.saturating_sub(input)),
        })
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in", self.input)?;
        if self.cached > 0 {
            write!(f, " ({} cached)", self.cached)?;
        }
        write!(f, ", {} out", self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thoughts_that_only_the_total_counts_are_output() {
        let answer =
            json!({"usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}});
        assert_eq!(Usage::of_value(&answer).unwrap().output, 30);
    }

    #[test]
    fn what_is_not_told_is_none_or_zero() {
        assert_eq!(Usage::of_value(&json!({"usage": null})), None);
        assert_eq!(
            Usage::of_value(&json!({"usage": {"prompt_tokens": -1}})),
            None
        );
        assert_eq!(Usage::of_answer(b"data: x"), None);
        let lie =
            json!({"usage": {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 9}}});
        let usage = Usage::of_value(&lie).unwrap();
        assert_eq!((usage.cached, usage.output), (3, 0));
    }

    #[test]
    fn sums_saturate() {
        let most = Usage {
            input: u64::MAX,
            cached: 1,
            output: 2,
        };
        let sum: Usage = [most, most].into_iter().sum();
        assert_eq!(
            sum,
            Usage {
                input: u64::MAX,
                cached: 2,
                output: 4
            }
        );
    }
}
