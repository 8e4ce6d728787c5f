//! A class with what came along.

use std::borrow::Cow;

use crate::{Class, hint::Hint};

/// What one outcome means: its [`Class`], the server's [`Hint`], a reason.
///
/// A layer inside (a [`ClassifyLayer`](crate::classify::ClassifyLayer), a vendor table) puts it in
/// the extensions of a response, or around an error with [`Classified`](crate::Classified). It then
/// overrides what the status alone would say, for every layer outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    class: Class,
    hint: Option<Hint>,
    reason: Option<Cow<'static, str>>,
    vendor: bool,
    unprocessed: bool,
    timed_out: bool,
    status: Option<u16>,
}

impl Reading {
    /// A reading with no hint and no reason.
    ///
    /// The server may have processed what came back Transient; it did not process what it refused
    /// in any other way. [`unprocessed`](Self::unprocessed) says otherwise.
    #[inline]
    pub fn new(class: Class) -> Self {
        Self {
            class,
            hint: None,
            reason: None,
            vendor: false,
            unprocessed: !matches!(class, Class::Success | Class::Transient | Class::Cancelled),
            timed_out: false,
            status: None,
        }
    }

    /// Sets what the server said about when to come back.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<Hint>) -> Self {
        self.hint = hint;
        self
    }

    /// Sets a short reason, for instance `"insufficient_quota"`.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Marks it as read from a vendor's own table.
    #[must_use]
    pub fn from_vendor(mut self) -> Self {
        self.vendor = true;
        self
    }

    /// Sets whether the server did not process the request for sure.
    #[must_use]
    pub fn unprocessed(mut self, yes: bool) -> Self {
        self.unprocessed = yes;
        self
    }

    /// Sets whether a time limit ran out.
    #[must_use]
    pub fn timed_out(mut self, yes: bool) -> Self {
        self.timed_out = yes;
        self
    }

    /// Sets the status code, for the record.
    #[must_use]
    pub fn with_status(mut self, status: Option<u16>) -> Self {
        self.status = status;
        self
    }

    /// The class.
    #[inline]
    pub fn class(&self) -> Class {
        self.class
    }

    /// What the server said about when to come back.
    #[inline]
    pub fn hint(&self) -> Option<Hint> {
        self.hint
    }

    /// A short reason.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    pub(crate) fn reason_owned(&self) -> Option<Cow<'static, str>> {
        self.reason.clone()
    }

    /// Whether it comes from a vendor's own table.
    #[inline]
    pub fn is_vendor(&self) -> bool {
        self.vendor
    }

    /// Whether the server did not process the request for sure, so that sending it again cannot
    /// do the work twice.
    #[inline]
    pub fn is_unprocessed(&self) -> bool {
        self.unprocessed
    }

    /// Whether a time limit ran out.
    #[inline]
    pub fn is_timed_out(&self) -> bool {
        self.timed_out
    }

    /// The HTTP status code, if there was one.
    #[inline]
    pub fn status(&self) -> Option<u16> {
        self.status
    }
}

impl From<Class> for Reading {
    fn from(class: Class) -> Self {
        Self::new(class)
    }
}
