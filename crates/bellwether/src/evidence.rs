//! What a verdict rests on, for a person.

use bellwether_health::{Evidence, Verdict};
use bellwether_terminal::{columns, cut, printable, wrap};

/// The longest value that is shown whole.
const LONGEST: usize = 100;

/// The rule of a verdict: `builtin apps/Deployment`.
pub(crate) fn rule(verdict: &Verdict) -> String {
    let source = format!("{:?}", verdict.rule.source).to_lowercase();
    if source == verdict.rule.id { source } else { format!("{source} {}", printable(&verdict.rule.id)) }
}

/// The fields that are there, with their values, a line each and lined up.
pub(crate) fn found(evidence: &[Evidence]) -> Vec<String> {
    let fields: Vec<_> =
        evidence.iter().filter_map(|field| Some((printable(&field.path), field.value.as_ref()?))).collect();
    let width = fields.iter().map(|(path, _)| columns(path)).max().unwrap_or(0);
    fields
        .iter()
        .map(|(path, value)| {
            let padding = " ".repeat(width - columns(path));
            // Written as JSON, so that a word, a number and nothing look different.
            let value = serde_json::to_string(value).unwrap_or_else(|_| value.to_string());
            format!("{path}{padding}  {}", cut(&printable(&value), LONGEST))
        })
        .collect()
}

/// The fields that were looked for and are not there, on lines of this width.
pub(crate) fn absent(evidence: &[Evidence], width: usize) -> Vec<String> {
    let fields: Vec<_> =
        evidence.iter().filter(|field| field.value.is_none()).map(|field| printable(&field.path)).collect();
    wrap(&fields.join(", "), width)
}
