//! The rule and the fields behind a verdict, as text.

use std::{borrow::Cow, cmp::Reverse};

use bellwether_health::{Evidence, Verdict};
use bellwether_terminal::{columns, cut, printable, wrap};

/// Longer values are cut.
const MAX_VALUE: usize = 100;

/// Between a path and its value.
const GAP: usize = 2;

/// `builtin/apps/Deployment`
pub(crate) fn rule(verdict: &Verdict) -> String {
    let source = format!("{:?}", verdict.rule.source).to_lowercase();
    if source == verdict.rule.id { source } else { format!("{source}/{}", printable(&verdict.rule.id)) }
}

/// The fields that exist, as aligned lines of path and value. A value that does not fit beside its path is
/// below it.
pub(crate) fn found(evidence: &[Evidence], room: usize) -> Vec<String> {
    let fields = evidence.iter().filter_map(|field| {
        let value = field.value.as_ref()?;
        // As JSON, a string, a number and null look different.
        let value = serde_json::to_string(value).unwrap_or_else(|_| value.to_string());
        Some((printable(&field.path), cut(&printable(&value), MAX_VALUE).into_owned()))
    });
    let fields: Vec<_> = fields.collect();
    let fits = |(path, value): &(Cow<'_, str>, String), width: usize| {
        columns(path) <= width && width.saturating_add(GAP + columns(value)) <= room
    };
    // The width with the most values beside their paths.
    let widths = fields.iter().map(|(path, _)| columns(path));
    let beside = |width: &usize| fields.iter().filter(|field| fits(field, *width)).count();
    let width = widths.max_by_key(|width| (beside(width), Reverse(*width))).unwrap_or(0);
    let mut lines = Vec::new();
    for field in &fields {
        let (path, value) = field;
        if fits(field, width) {
            lines.push(format!("{path}{}{value}", " ".repeat(width + GAP - columns(path))));
        } else {
            lines.push(path.clone().into_owned());
            let below = wrap(value, room.saturating_sub(GAP)).into_iter();
            lines.extend(below.map(|line| format!("{:GAP$}{line}", "")));
        }
    }
    lines
}

/// The fields that the rule reads and the object does not have, wrapped to a width.
pub(crate) fn absent(evidence: &[Evidence], width: usize) -> Vec<String> {
    let fields: Vec<_> =
        evidence.iter().filter(|field| field.value.is_none()).map(|field| printable(&field.path)).collect();
    wrap(&fields.join(", "), width)
}

#[cfg(test)]
mod tests {
    use bellwether_model::Value;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::wide(100, &[
        r#"status.phase                                         "Running""#,
        r#"status.containerStatuses[app].state.waiting.reason   "CrashLoopBackOff""#,
        r#"status.containerStatuses[app].state.waiting.message  "back-off 5m0s""#,
    ])]
    #[case::narrow(64, &[
        r#"status.phase  "Running""#,
        "status.containerStatuses[app].state.waiting.reason",
        r#"  "CrashLoopBackOff""#,
        "status.containerStatuses[app].state.waiting.message",
        r#"  "back-off 5m0s""#,
    ])]
    #[case::very_narrow(14, &[
        "status.phase",
        r#"  "Running""#,
        "status.containerStatuses[app].state.waiting.reason",
        r#"  "CrashLoopBackOff""#,
        "status.containerStatuses[app].state.waiting.message",
        r#"  "back-off"#,
        r#"  5m0s""#,
    ])]
    fn values_stay_readable(#[case] room: usize, #[case] expected: &[&str]) {
        let field = |path: &str, value: &'static str| Evidence {
            path: path.to_owned(),
            value: Some(Value::Text(value.into())),
        };
        let evidence = [
            field("status.phase", "Running"),
            field("status.containerStatuses[app].state.waiting.reason", "CrashLoopBackOff"),
            field("status.containerStatuses[app].state.waiting.message", "back-off 5m0s"),
        ];
        assert_eq!(found(&evidence, room), expected);
    }
}
