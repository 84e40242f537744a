//! A part of the terminal that is redrawn in place. Only changed lines are written.

use std::{
    fmt::Write as _,
    io::{self, Write as _, stdout},
};

use terminal_size::terminal_size_of;

use crate::screen::Screen;

#[derive(Debug, Default)]
pub struct Canvas {
    lines: Vec<String>,
    size: Option<(u16, u16)>,
    is_begun: bool,
}

const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
/// The terminal clips long lines, so that each line takes one row.
const NO_WRAP: &str = "\u{1b}[?7l";
const WRAP: &str = "\u{1b}[?7h";
const CLEAR_LINE: &str = "\u{1b}[2K";
const CLEAR_BELOW: &str = "\u{1b}[J";
const DOWN: &str = "\u{1b}[B";

impl Canvas {
    /// Replaces what was drawn before.
    pub fn draw(&mut self, text: &str) -> io::Result<()> {
        let size = terminal_size_of(stdout()).map(|(width, height)| (width.0, height.0));
        let height = size.map_or(usize::MAX, |(_, height)| usize::from(height));
        let lines = fit(text, height);
        let is_resized = self.size != size && self.is_begun;
        let frame = frame(&self.lines, &lines, is_resized);
        let (before, after) = if self.is_begun { ("", "") } else { (HIDE_CURSOR, NO_WRAP) };
        self.lines = lines;
        self.size = size;
        self.is_begun = true;
        write(&format!("{before}{after}{frame}"))
    }

    /// The number of lines that fit on the terminal now. `None` if standard output is not a terminal.
    pub fn height() -> Option<usize> {
        terminal_size_of(stdout()).map(|(_, height)| max_lines(usize::from(height.0)))
    }

    /// The screen with its current width: the window may have been resized.
    pub fn screen(screen: Screen) -> Screen {
        Screen {
            width: terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0)).or(screen.width),
            ..screen
        }
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        if self.is_begun {
            // Nothing to report to if the terminal is closed.
            let _ = write(&format!("{WRAP}{SHOW_CURSOR}"));
        }
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// The cursor needs a line of its own below the drawn lines.
fn max_lines(height: usize) -> usize {
    height.saturating_sub(1).max(1)
}

/// The lines that fit, and a last line with the number of those that do not.
fn fit(text: &str, height: usize) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let most = max_lines(height);
    if lines.len() > most {
        let more = lines.len() - most + 1;
        lines.truncate(most - 1);
        lines.push(format!("… and {more} more lines"));
    }
    lines
}

/// The terminal output that replaces the lines `before` with the lines `after`; `all` rewrites unchanged
/// lines too.
fn frame(before: &[String], after: &[String], all: bool) -> String {
    let mut frame = String::new();
    if !before.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(frame, "\r\u{1b}[{}A", before.len());
    }
    if all {
        frame.push_str(CLEAR_BELOW);
    }
    for (index, line) in after.iter().enumerate() {
        if !all && before.get(index) == Some(line) {
            frame.push_str(DOWN);
        } else {
            let _ = write!(frame, "\r{CLEAR_LINE}{line}\r\n");
        }
    }
    if before.len() > after.len() {
        frame.push_str(CLEAR_BELOW);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        fit(text, 100)
    }

    #[test]
    fn unchanged_lines_are_not_rewritten() {
        let (before, after) = (lines("a\nb\nc"), lines("a\nB\nc"));
        assert_eq!(frame(&before, &after, false), "\r\u{1b}[3A\u{1b}[B\r\u{1b}[2KB\r\n\u{1b}[B");
        assert_eq!(frame(&before, &before, false), "\r\u{1b}[3A\u{1b}[B\u{1b}[B\u{1b}[B");
    }

    #[test]
    fn removed_lines_are_cleared() {
        assert_eq!(frame(&lines("a\nb"), &lines("a"), false), "\r\u{1b}[2A\u{1b}[B\u{1b}[J");
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        assert_eq!(fit("a\nb\nc\nd", 4), ["a", "b", "… and 2 more lines"]);
        assert_eq!(fit("a\nb\nc", 4), ["a", "b", "c"]);
    }
}
