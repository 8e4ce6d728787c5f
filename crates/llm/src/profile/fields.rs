//! Fields at the top of a request.

use std::ops::RangeInclusive;

use serde_json::{Map, Number, Value};

/// Gives a field another name, in its place at the end; the other wins where both are there.
pub(super) fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.shift_remove(from) {
        fields.entry(to).or_insert(value);
    }
}

/// Brings a number into a range. A whole number stays one.
pub(super) fn clamp(value: &mut Value, range: &RangeInclusive<f64>) {
    let Some(number) = value.as_f64() else {
        return;
    };
    if range.contains(&number) {
        return;
    }
    let bound = match number < *range.start() {
        true => *range.start(),
        false => *range.end(),
    };
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    let whole = (bound.fract() == 0.0 && bound.abs() < 1e15).then_some(bound as i64);
    let number = match whole {
        Some(whole) if !value.is_f64() => Some(Number::from(whole)),
        _ => Number::from_f64(bound),
    };
    if let Some(number) = number {
        *value = Value::Number(number);
    }
}
