//! One row of a table.

use std::{borrow::Cow, fmt, ops::RangeInclusive, time::Duration};

use tower_spillway_core::Class;

use super::Answer;

type Text = Cow<'static, str>;

/// Rows that one switch moves together: see [`Rules::subclass`](super::Rules::subclass).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Subclass {
    /// The key, or what it may do. TargetDown.
    Auth,
    /// Too long for this model. NotHere while a target with a larger context is configured, else
    /// CallerFault.
    ContextLength,
    /// The content was turned away. CallerFault.
    ContentPolicy,
    /// The model is gone, or never was. TargetDown.
    ModelNotFound,
}

/// What a person must do before a target can serve again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// The key is wrong, expired, or may not do this.
    Key,
    /// Credit or a payment is missing.
    Credit,
    /// A quota or spend limit is used up.
    Quota,
    /// The model is gone, unknown, or not for this account.
    Model,
    /// What answers is not the vendor's API, or it does not serve this place.
    Address,
}

impl Remedy {
    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Credit => "credit",
            Self::Quota => "quota",
            Self::Model => "model",
            Self::Address => "address",
        }
    }

    /// What to do, as one sentence.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Key => "check the API key of this target and what it is allowed to do",
            Self::Credit => "add credit or fix the payment of this vendor account",
            Self::Quota => "raise the quota or spend limit of this account, or wait for its reset",
            Self::Model => {
                "check the model name of this target: it is gone, unknown or not enabled"
            }
            Self::Address => {
                "check the base URL of this target and whether the vendor serves this network"
            }
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row: when it holds, and what then.
///
/// Conditions of one kind are alternatives; those of different kinds must all hold. A row without
/// any holds always.
#[derive(Clone)]
pub struct Rule {
    name: Text,
    statuses: Vec<RangeInclusive<u16>>,
    codes: Vec<Text>,
    kinds: Vec<Text>,
    messages: Vec<Text>,
    quotas: Vec<Text>,
    tests: Vec<fn(&Answer<'_>) -> bool>,
    pub(super) class: Class,
    pub(super) subclass: Option<Subclass>,
    pub(super) remedy: Option<Remedy>,
    pub(super) unprocessed: Option<bool>,
    pub(super) believed_from: Option<Duration>,
    pub(super) by_status: bool,
}

impl Rule {
    /// A row that gives a class. Its name is the reason in records and logs.
    pub fn new(name: impl Into<Cow<'static, str>>, class: Class) -> Self {
        Self {
            name: name.into(),
            statuses: Vec::new(),
            codes: Vec::new(),
            kinds: Vec::new(),
            messages: Vec::new(),
            quotas: Vec::new(),
            tests: Vec::new(),
            class,
            subclass: None,
            remedy: None,
            unprocessed: None,
            believed_from: None,
            by_status: false,
        }
    }

    /// Of this status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        self.statuses(status..=status)
    }

    /// Of a status in this range.
    #[must_use]
    pub fn statuses(mut self, statuses: RangeInclusive<u16>) -> Self {
        self.statuses.push(statuses);
        self
    }

    /// With one of these codes: see [`Said::has_code`](crate::Said::has_code).
    #[must_use]
    pub fn codes<T: Into<Cow<'static, str>>>(mut self, codes: impl IntoIterator<Item = T>) -> Self {
        self.codes.extend(codes.into_iter().map(Into::into));
        self
    }

    /// Of one of these types: see [`Said::has_kind`](crate::Said::has_kind).
    #[must_use]
    pub fn kinds<T: Into<Cow<'static, str>>>(mut self, kinds: impl IntoIterator<Item = T>) -> Self {
        self.kinds.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// Whose message contains one of these phrases, in any case.
    #[must_use]
    pub fn messages<T: Into<Cow<'static, str>>>(
        mut self,
        phrases: impl IntoIterator<Item = T>,
    ) -> Self {
        self.messages.extend(phrases.into_iter().map(Into::into));
        self
    }

    /// With an exhausted quota whose name contains one of these words.
    #[must_use]
    pub fn quotas<T: Into<Cow<'static, str>>>(
        mut self,
        words: impl IntoIterator<Item = T>,
    ) -> Self {
        self.quotas.extend(words.into_iter().map(Into::into));
        self
    }

    /// That passes this test; several tests must all pass.
    #[must_use]
    pub fn when(mut self, test: fn(&Answer<'_>) -> bool) -> Self {
        self.tests.push(test);
        self
    }

    /// Moves with this switch.
    #[must_use]
    pub fn subclass(mut self, subclass: Subclass) -> Self {
        self.subclass = Some(subclass);
        self
    }

    /// What a person must do; said in one warning.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(remedy);
        self
    }

    /// Whether the request was not processed for sure. By default only what is Transient may have
    /// been.
    #[must_use]
    pub fn unprocessed(mut self, yes: bool) -> Self {
        self.unprocessed = Some(yes);
        self
    }

    /// The vendor's waits are believed from this length on; shorter ones are known to be false.
    /// [`Duration::MAX`] believes none.
    #[must_use]
    pub fn believe_hints_from(mut self, shortest: Duration) -> Self {
        self.believed_from = Some(shortest);
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The class, unless a switch moves it.
    pub fn class(&self) -> Class {
        self.class
    }

    pub(super) fn reason(&self) -> Cow<'static, str> {
        self.name.clone()
    }

    /// A row that knows nothing but a status: `x-should-retry: true` overrides it.
    pub(super) fn by_status(mut self) -> Self {
        self.by_status = true;
        self
    }

    /// Whether the row holds, taking `status` for the answer's.
    pub(super) fn holds(&self, status: u16, answer: &Answer<'_>) -> bool {
        fn any<T>(list: &[T], test: impl FnMut(&T) -> bool) -> bool {
            list.is_empty() || list.iter().any(test)
        }
        let said = answer.said();
        any(&self.statuses, |range| range.contains(&status))
            && any(&self.codes, |code| said.has_code(code))
            && any(&self.kinds, |kind| said.has_kind(kind))
            && any(&self.messages, |phrase| said.says(phrase))
            && any(&self.quotas, |word| said.has_quota(word))
            && self.tests.iter().all(|test| test(answer))
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("name", &self.name)
            .field("class", &self.class)
            .field("subclass", &self.subclass)
            .field("remedy", &self.remedy)
            .finish_non_exhaustive()
    }
}
