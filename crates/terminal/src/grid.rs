//! Tables of values whose columns the user chose: none is more important than the others.

use crate::{
    screen::Screen,
    text::{columns, cut, printable},
};

/// The number of spaces between columns.
const GAP: usize = 2;

/// Columns are never cut to less.
const MIN_WIDTH: usize = 6;

/// A table with headers, of which numbers are aligned at the right.
#[derive(Debug)]
pub struct Grid {
    headers: Vec<String>,
    rows: Vec<Vec<GridCell>>,
}

/// A value.
#[derive(Clone, Debug)]
pub struct GridCell {
    pub text: String,
    pub is_number: bool,
}

impl Grid {
    pub fn new(headers: impl IntoIterator<Item = String>) -> Self {
        Self { headers: headers.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row with one cell for each header.
    pub fn push(&mut self, cells: Vec<GridCell>) {
        let printable = |cell: GridCell| GridCell { text: printable(&cell.text).into_owned(), ..cell };
        self.rows.push(cells.into_iter().map(printable).collect());
    }

    /// Renders the table. If it is wider than the screen, the widest columns are cut.
    pub fn print(&self, screen: Screen) -> String {
        let widest = |column: usize| {
            let of_cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(&cell.text));
            of_cells.chain([columns(&self.headers[column])]).max().unwrap_or(0)
        };
        let mut widths: Vec<_> = (0..self.headers.len()).map(widest).collect();
        if let Some(screen) = screen.width {
            fit(&mut widths, screen);
        }
        // A column of numbers has its header at the right, too.
        let is_number =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).any(|cell| cell.is_number);
        let numbers: Vec<_> = (0..self.headers.len()).map(is_number).collect();
        let headers = self.headers.iter().zip(&numbers);
        let headers: Vec<_> =
            headers.map(|(text, is_number)| GridCell { text: text.clone(), is_number: *is_number }).collect();
        let mut text = String::new();
        for row in [&headers].into_iter().chain(&self.rows) {
            let line = text.len();
            for ((cell, width), is_right) in row.iter().zip(&widths).zip(&numbers) {
                let shown = cut(&cell.text, *width);
                let pad = width.saturating_sub(columns(&shown));
                let (before, after) = if *is_right { (pad, 0) } else { (0, pad) };
                text.extend(std::iter::repeat_n(' ', before));
                text.push_str(&shown);
                text.extend(std::iter::repeat_n(' ', after + GAP));
            }
            text.truncate(line + text[line..].trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }
}

fn fit(widths: &mut [usize], screen: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    let mut lacking = (widths.iter().sum::<usize>() + gaps).saturating_sub(screen);
    while lacking > 0
        && let Some(widest) = widths.iter_mut().max().filter(|width| **width > MIN_WIDTH)
    {
        *widest -= 1;
        lacking -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> GridCell {
        GridCell { text: text.to_owned(), is_number: false }
    }

    fn number(text: &str) -> GridCell {
        GridCell { text: text.to_owned(), is_number: true }
    }

    #[test]
    fn numbers_are_aligned_at_the_right() {
        let mut grid = Grid::new(["PHASE".to_owned(), "COUNT".to_owned(), "X".to_owned()]);
        grid.push(vec![text("Running"), number("12"), text("\u{1b}a")]);
        grid.push(vec![text("寸"), text("<none>"), text("")]);
        assert_eq!(
            grid.print(Screen { color: false, width: None }),
            "PHASE     COUNT  X\nRunning      12  \u{fffd}a\n寸       <none>\n"
        );
    }

    #[test]
    fn the_widest_columns_are_cut() {
        let mut grid = Grid::new(["NAME".to_owned(), "STATUS".to_owned(), "N".to_owned()]);
        grid.push(vec![text("east"), text(&"x".repeat(90)), number("1")]);
        let printed = grid.print(Screen { color: false, width: Some(40) });
        assert_eq!(printed, format!("NAME  STATUS{}  N\neast  {}…  1\n", " ".repeat(25), "x".repeat(30)));
        assert!(printed.lines().all(|line| columns(line) == 40), "{printed}");
    }
}
