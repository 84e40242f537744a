//! The capabilities of standard output.

use std::{
    borrow::Cow,
    io::{IsTerminal as _, stdout},
};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use terminal_size::terminal_size_of;

/// The capabilities of standard output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Whether to write colors. Respects `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE`.
    pub color: bool,
    /// The number of columns. `None` for files and pipes, where lines may have any length.
    pub width: Option<usize>,
}

impl Screen {
    pub fn of_stdout() -> Self {
        let stdout = stdout();
        Self {
            color: AutoStream::choice(&stdout) != ColorChoice::Never,
            width: stdout
                .is_terminal()
                .then(|| terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0)))
                .flatten(),
        }
    }

    /// The same screen without a width limit.
    #[must_use]
    pub fn without_end(self) -> Self {
        Self { width: None, ..self }
    }

    /// The width for prose: the width of the screen, between 40 and 100 columns.
    pub fn page(self) -> usize {
        self.width.map_or(100, |width| width.clamp(40, 100))
    }

    /// The text in this style, if colors are on.
    pub fn paint(self, text: &str, style: Style) -> Cow<'_, str> {
        if self.color && !style.is_plain() {
            Cow::Owned(format!("{style}{text}{style:#}"))
        } else {
            Cow::Borrowed(text)
        }
    }
}
