//! The paths of trees: `$.metadata.labels['app.kubernetes.io/name']`, `$.status.conditions[0].type`.

use crate::{compile_error::ErrorAt, path::Step};

pub(crate) fn steps(text: &str) -> Result<Vec<Step>, ErrorAt> {
    let Some(mut rest) = text.trim().strip_prefix('$') else {
        let hint = format!("write $.{}", text.trim().trim_start_matches('.'));
        return Err(ErrorAt::new(0, format!("`{text}` must start with $")).hint(hint));
    };
    let wrong = |what: &str| ErrorAt::new(0, format!("invalid path `{text}`: {what}"));
    let unexpected = |part: &str| wrong(&format!("unexpected `{part}`"));
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = if let Some(inner) = rest.strip_prefix('[') {
            bracketed(inner).ok_or_else(|| {
                let hint = "write a quoted field or an index in brackets: $.a['b/c'][0]";
                unexpected(&format!("[{}", first_part(inner))).hint(hint)
            })?
        } else if let Some(field) = rest.strip_prefix('.') {
            let end = field.find(['.', '[']).unwrap_or(field.len());
            let (name, after) = field.split_at(end);
            match name {
                "" => return Err(wrong("empty field name")),
                "*" => return Err(unexpected("*").hint("to read several values, use CEL: list.map(x, ...)")),
                name if name.contains(['/', '\'', '"', ']', ' ']) => {
                    // Keys of labels and annotations contain dots.
                    let whole =
                        [".labels.", ".annotations."].iter().find_map(|map| Some(text.split_once(map)?.1));
                    let whole = whole.map_or_else(|| format!("{name}{after}"), str::to_owned);
                    return Err(unexpected(name).hint(format!("write ['{whole}']")));
                }
                name => (Step::Field(name.into()), after),
            }
        } else {
            return Err(unexpected(first_part(rest)).hint("write a dot or a bracket after $"));
        };
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

/// Parses what follows a `[`, and returns the step and the rest.
fn bracketed(inner: &str) -> Option<(Step, &str)> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote)?;
            return Some((Step::Field(name.into()), after.strip_prefix(']')?));
        }
    }
    let (index, after) = inner.split_once(']')?;
    let is_number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    Some((Step::Index(index.parse().ok().filter(|_| is_number)?), after))
}

fn first_part(text: &str) -> &str {
    match text.char_indices().nth(20) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn shown(text: &str) -> String {
        match steps(text) {
            Ok(steps) => format!("{steps:?}").replace("Field(", "(").replace("Index(", "("),
            Err(slip) => match slip.hint {
                Some(hint) => format!("{}; {hint}", slip.text),
                None => slip.text,
            },
        }
    }

    #[rstest]
    #[case("$", "[]")]
    #[case("$.status.phase", r#"[("status"), ("phase")]"#)]
    #[case(" $.status ", r#"[("status")]"#)]
    #[case("$.metadata.labels['a/b']", r#"[("metadata"), ("labels"), ("a/b")]"#)]
    #[case(r#"$["a.b"].c"#, r#"[("a.b"), ("c")]"#)]
    #[case("$.list[0][12].x", r#"[("list"), (0), (12), ("x")]"#)]
    #[case("$.größe", r#"[("größe")]"#)]
    #[case("status.phase", "`status.phase` must start with $; write $.status.phase")]
    #[case(".status", "`.status` must start with $; write $.status")]
    #[case("$status", "invalid path `$status`: unexpected `status`; write a dot or a bracket after $")]
    #[case("$..a", "invalid path `$..a`: empty field name")]
    #[case("$.a.", "invalid path `$.a.`: empty field name")]
    #[case(
        "$.a.*",
        "invalid path `$.a.*`: unexpected `*`; to read several values, use CEL: list.map(x, ...)"
    )]
    #[case(
        "$.a[*]",
        "invalid path `$.a[*]`: unexpected `[*]`; write a quoted field or an index in brackets: $.a['b/c'][0]"
    )]
    #[case(
        "$.a[-1]",
        "invalid path `$.a[-1]`: unexpected `[-1]`; write a quoted field or an index in brackets: $.a['b/c'][0]"
    )]
    #[case(
        "$.a['b'",
        "invalid path `$.a['b'`: unexpected `['b'`; write a quoted field or an index in brackets: $.a['b/c'][0]"
    )]
    #[case("$.labels.a/b", "invalid path `$.labels.a/b`: unexpected `a/b`; write ['a/b']")]
    #[case(
        "$.labels.app.kubernetes.io/name",
        "invalid path `$.labels.app.kubernetes.io/name`: unexpected `io/name`; write ['app.kubernetes.io/name']"
    )]
    fn paths(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(shown(text), expected);
    }
}
