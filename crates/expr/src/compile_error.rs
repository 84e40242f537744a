//! Compile errors.

use std::fmt;

/// A compile error: the place, the cause, and often a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Line and column of the source, or a path into a tree.
    pub place: Place,
    /// The cause, in one sentence.
    pub text: String,
    /// What to write instead, where that is obvious.
    pub hint: Option<String>,
}

/// A place in the source of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A place in text.
    Text {
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
    },
    /// A line of text, counted from 1, where the column is unknown.
    Line(usize),
    /// A path into a tree, such as `args[1].path`; empty for the root.
    Tree(String),
}

impl Place {
    /// Converts a byte offset into line and column.
    pub(crate) fn in_text(text: &str, at: u32) -> Self {
        let at = (at as usize).min(text.len());
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::Text {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { line, column } => write!(f, "line {line}, column {column}"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Tree(path) => f.write_str(path),
        }
    }
}

/// `place: text; hint`, in one line.
impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tree(path) if path.is_empty() => {}
            place => write!(f, "{place}: ")?,
        }
        f.write_str(&self.text)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CompileError {}

/// An error at a byte offset, before line and column are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorAt {
    pub(crate) at: u32,
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

impl ErrorAt {
    pub(crate) fn new(at: u32, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    pub(crate) fn in_text(self, text: &str) -> CompileError {
        CompileError { place: Place::in_text(text, self.at), text: self.text, hint: self.hint }
    }
}

/// The known word with the smallest edit distance, if that is small enough for a typo.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        _ => 2,
    };
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *candidate != word)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Damerau-Levenshtein distance; `usize::MAX` for words that are too different or too long.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if left.len().abs_diff(right.len()) > 2 || left.len() > 64 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=right.len()).collect::<Vec<_>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut cost = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                cost = cost.min(rows[i - 1][j - 1] + 1);
            }
            row.push(cost);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("stauts", Some("status"))]
    #[case("Status", Some("status"))]
    #[case("sepc", Some("spec"))]
    #[case("metadta", Some("metadata"))]
    #[case("phase", None)]
    #[case("status", None)]
    #[case("it", None)]
    fn the_nearest_word(#[case] word: &str, #[case] meant: Option<&str>) {
        assert_eq!(nearest(word, ["metadata", "spec", "status"]), meant);
    }

    #[rstest]
    #[case("abc", 0, 1, 1)]
    #[case("abc", 2, 1, 3)]
    #[case("abc", 3, 1, 4)]
    #[case("é = 1", 3, 1, 3)]
    #[case("a\nbc", 3, 2, 2)]
    #[case("a\n", 2, 2, 1)]
    #[case("", 0, 1, 1)]
    fn places_in_text(#[case] text: &str, #[case] at: u32, #[case] line: usize, #[case] column: usize) {
        assert_eq!(Place::in_text(text, at), Place::Text { line, column });
    }
}
