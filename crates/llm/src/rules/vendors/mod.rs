//! One table per vendor.

pub(super) mod anthropic;
pub(super) mod anthropic_compat;
pub(super) mod azure;
pub(super) mod bedrock;
pub(super) mod cloudflare;
pub(super) mod deepseek;
pub(super) mod gemini;
pub(super) mod gemini_compat;
pub(super) mod groq;
pub(super) mod mistral;
pub(super) mod openai;
pub(super) mod openrouter;
pub(super) mod vertex;

#[cfg(test)]
mod tests {
    use tower_spillway_core::Class;

    use super::super::{Answer, Rule, Rules, Vendor};

    /// A row's name, and an answer (status, body) that it decides, with the class.
    pub(super) type Case = (&'static str, u16, &'static str, Class);

    /// Every row decides its case, and every row of the table has one.
    pub(super) fn check(vendor: Vendor, own: &[Rule], cases: &[Case]) {
        let rules = Rules::of(vendor).larger_context_elsewhere(true);
        for (row, status, body, class) in cases {
            let verdict = rules.judge(&Answer::new(*status, body.as_bytes()));
            assert_eq!(verdict.reason(), Some(*row), "{vendor} {status} {body}");
            assert_eq!(verdict.class(), *class, "{vendor} {row}");
            let down = *class == Class::TargetDown;
            assert_eq!(verdict.remedy().is_some(), down, "{vendor} {row}: a remedy");
        }
        for rule in own {
            let tested = cases.iter().any(|(row, ..)| *row == rule.name());
            assert!(tested, "{vendor}: no case for {rule:?}");
        }
    }
}
