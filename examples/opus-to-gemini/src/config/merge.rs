//! A file over the figures of its profile.

use toml::{Table, Value};

/// What `own` says; where it says nothing, what `base` says. Lists are taken whole.
pub(super) fn over(mut base: Table, own: Table) -> Table {
    // A target's breaker starts from the target's own figures, else from the file's.
    let common = match own.get("breaker") {
        Some(Value::Table(breaker)) => {
            let mut common = table(base.get("breaker"));
            merge(&mut common, breaker.clone());
            common
        }
        _ => table(base.get("breaker")),
    };
    if let Some(Value::Table(targets)) = own.get("targets") {
        let with_breaker = targets.iter().filter(|(_, t)| t.get("breaker").is_some());
        for (name, _) in with_breaker {
            let known = base.get_mut("targets").and_then(|t| t.as_table_mut());
            if let Some(Value::Table(target)) = known.map(|k| {
                k.entry(name.as_str())
                    .or_insert_with(|| Value::Table(Table::new()))
            }) {
                target
                    .entry("breaker")
                    .or_insert_with(|| Value::Table(common.clone()));
            }
        }
    }
    merge(&mut base, own);
    base
}

fn table(value: Option<&Value>) -> Table {
    value.and_then(Value::as_table).cloned().unwrap_or_default()
}

fn merge(base: &mut Table, own: Table) {
    for (key, value) in own {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(own)) => merge(base, own),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
