//! What standard output can show.

use std::{
    borrow::Cow,
    io::{IsTerminal as _, stdout},
};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use terminal_size::terminal_size_of;

/// What standard output can show.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Whether there are colours. `NO_COLOR` and its relatives have their say.
    pub colours: bool,
    /// How many columns there are; nothing where lines may be of any length, in files and pipes.
    pub width: Option<usize>,
}

impl Screen {
    /// As it is when it is asked for.
    pub fn of_stdout() -> Self {
        let stdout = stdout();
        Self {
            colours: AutoStream::choice(&stdout) != ColorChoice::Never,
            width: stdout
                .is_terminal()
                .then(|| terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0)))
                .flatten(),
        }
    }

    /// The same, with room for lines of any length.
    #[must_use]
    pub fn without_end(self) -> Self {
        Self { width: None, ..self }
    }

    /// The width for sentences: that of a page, unless the screen is narrower.
    pub fn page(self) -> usize {
        self.width.map_or(100, |width| width.clamp(40, 100))
    }

    /// The text in this style, if there are colours.
    pub fn paint(self, text: &str, style: Style) -> Cow<'_, str> {
        if self.colours && !style.is_plain() {
            Cow::Owned(format!("{style}{text}{style:#}"))
        } else {
            Cow::Borrowed(text)
        }
    }
}
