//! What speaks against adopting.

/// One sentence that says why it cannot be done, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) text: String,
    /// Whether what was asked for makes no sense or could not be read, rather than being refused.
    pub(super) is_input: bool,
}

impl Problem {
    /// What was asked for makes no sense, or could not be read.
    pub(super) fn input(text: String) -> Self {
        Self { text, is_input: true }
    }

    /// What was asked for cannot be done as things are.
    pub(super) fn refusal(text: String) -> Self {
        Self { text, is_input: false }
    }
}
