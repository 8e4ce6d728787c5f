//! Gemini's OpenAI-compatible endpoint: the same errors, in an array of one or without it.
//!
//! Sources: dcdpr/jp pull 1061, AtomicBot-ai/atomic-agent issue 106.

use super::gemini;
use crate::Rule;

pub(in crate::rules) fn rules() -> Vec<Rule> {
    gemini::rules()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Rules, Vendor};

    #[test]
    fn every_row_in_an_array_of_one() {
        let rules_here = Rules::of(Vendor::GeminiCompat).larger_context_elsewhere(true);
        for (row, status, body, class) in &gemini::tests::CASES {
            let wrapped = match body.starts_with('{') {
                true => format!("[{body}]"),
                false => (*body).to_owned(),
            };
            let verdict = rules_here.judge(&Answer::new(*status, wrapped.as_bytes()));
            assert_eq!((verdict.reason(), verdict.class()), (Some(*row), *class));
        }
        assert_eq!(rules().len(), gemini::tests::CASES.len());
    }
}
