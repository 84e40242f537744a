//! The rule and the fields behind a verdict, as text.

use bellwether_health::{Evidence, Verdict};
use bellwether_terminal::{columns, cut, printable, wrap};

/// Longer values are cut.
const MAX_VALUE: usize = 100;

/// `builtin/apps/Deployment`
pub(crate) fn rule(verdict: &Verdict) -> String {
    let source = format!("{:?}", verdict.rule.source).to_lowercase();
    if source == verdict.rule.id { source } else { format!("{source}/{}", printable(&verdict.rule.id)) }
}

/// The fields that exist, as aligned lines of path and value.
pub(crate) fn found(evidence: &[Evidence]) -> Vec<String> {
    let fields: Vec<_> =
        evidence.iter().filter_map(|field| Some((printable(&field.path), field.value.as_ref()?))).collect();
    let width = fields.iter().map(|(path, _)| columns(path)).max().unwrap_or(0);
    fields
        .iter()
        .map(|(path, value)| {
            let padding = " ".repeat(width - columns(path));
            // As JSON, a string, a number and null look different.
            let value = serde_json::to_string(value).unwrap_or_else(|_| value.to_string());
            format!("{path}{padding}  {}", cut(&printable(&value), MAX_VALUE))
        })
        .collect()
}

/// The fields that the rule reads and the object does not have, wrapped to a width.
pub(crate) fn absent(evidence: &[Evidence], width: usize) -> Vec<String> {
    let fields: Vec<_> =
        evidence.iter().filter(|field| field.value.is_none()).map(|field| printable(&field.path)).collect();
    wrap(&fields.join(", "), width)
}
