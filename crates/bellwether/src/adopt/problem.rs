//! Why objects cannot be adopted.

/// An error with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) text: String,
    /// Invalid or unreadable input has another exit code.
    pub(super) is_input: bool,
}

impl Problem {
    /// The input is invalid, or could not be read.
    pub(super) fn input(text: String) -> Self {
        Self { text, is_input: true }
    }

    /// The objects or the API server do not allow the change.
    pub(super) fn refusal(text: String) -> Self {
        Self { text, is_input: false }
    }
}
