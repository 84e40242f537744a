//! Tables of values whose columns the user chose: none is more important than the others.

use crate::{
    screen::Screen,
    text::{blocks, columns, cut, printable},
};

/// The number of spaces between columns.
const GAP: usize = 2;

/// Columns are never cut to less.
const MIN_WIDTH: usize = 6;

/// Shorter bars would all look alike.
const MIN_BAR: usize = 8;

/// Longer bars would separate the columns beside them.
const MAX_BAR: usize = 24;

/// A table with headers, of which numbers are aligned at the right.
#[derive(Debug)]
pub struct Grid {
    headers: Vec<String>,
    rows: Vec<Vec<GridCell>>,
    /// The column whose numbers have bars.
    bars: Option<usize>,
}

/// A value.
#[derive(Clone, Debug)]
pub struct GridCell {
    pub text: String,
    pub is_number: bool,
}

impl Grid {
    pub fn new(headers: impl IntoIterator<Item = String>) -> Self {
        Self { headers: headers.into_iter().collect(), rows: Vec::new(), bars: None }
    }

    /// Draws a bar after each number of this column, the longest for the largest, if the screen has room for bars.
    #[must_use]
    pub fn with_bars(self, column: Option<usize>) -> Self {
        Self { bars: column, ..self }
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
        let bars = self.bars.zip(screen.width.and_then(|screen| width_of_bars(&widths, screen)));
        // A column of numbers has its header at the right, too.
        let is_number =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).any(|cell| cell.is_number);
        let numbers: Vec<_> = (0..self.headers.len()).map(is_number).collect();
        let headers = self.headers.iter().zip(&numbers);
        let headers: Vec<_> =
            headers.map(|(text, is_number)| GridCell { text: text.clone(), is_number: *is_number }).collect();
        let mut text = String::new();
        let of_rows = bars.map(|(column, width)| self.bars(column, width)).unwrap_or_default();
        let mut of_rows = [String::new()].into_iter().chain(of_rows);
        for row in [&headers].into_iter().chain(&self.rows) {
            let line = text.len();
            let bar = of_rows.next().unwrap_or_default();
            for (column, ((cell, width), is_right)) in row.iter().zip(&widths).zip(&numbers).enumerate() {
                let shown = cut(&cell.text, *width);
                let pad = width.saturating_sub(columns(&shown));
                let (before, after) = if *is_right { (pad, 0) } else { (0, pad) };
                text.extend(std::iter::repeat_n(' ', before));
                text.push_str(&shown);
                text.extend(std::iter::repeat_n(' ', after + GAP));
                if let Some((_, width)) = bars.filter(|(counted, _)| *counted == column) {
                    text.push_str(&bar);
                    text.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(&bar)) + GAP));
                }
            }
            text.truncate(line + text[line..].trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }

    /// A bar for each row, at most this wide. Only of 0 it is empty.
    fn bars(&self, column: usize, width: usize) -> Vec<String> {
        let number =
            |row: &Vec<GridCell>| row.get(column).and_then(|cell| cell.text.parse().ok()).unwrap_or(0_usize);
        let largest = self.rows.iter().map(number).max().unwrap_or(0).max(1);
        let bar = |row| blocks(number(row).saturating_mul(2 * width).div_ceil(largest));
        self.rows.iter().map(bar).collect()
    }
}

/// What the columns leave of the screen.
fn width_of_bars(widths: &[usize], screen: usize) -> Option<usize> {
    let columns = widths.iter().sum::<usize>() + GAP * widths.len();
    let room = screen.saturating_sub(columns);
    (room >= MIN_BAR).then_some(room.min(MAX_BAR))
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
    use rstest::rstest;

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

    #[rstest]
    #[case::as_wide_as_there_is_room(
        26,
        &["1000", "555", "1", "0"],
        &["PHASE  COUNT             X", "a       1000  █████████  1", "a        555  █████      1", "a          1  ▌          1", "a          0             1"]
    )]
    #[case::no_room(24, &["2", "1"], &["PHASE  COUNT  X", "a          2  1", "a          1  1"])]
    #[case::nothing_counted(26, &["0"], &["PHASE  COUNT             X", "a          0             1"])]
    fn bars(#[case] width: usize, #[case] counts: &[&str], #[case] lines: &[&str]) {
        let mut grid = Grid::new(["PHASE".to_owned(), "COUNT".to_owned(), "X".to_owned()]).with_bars(Some(1));
        for count in counts {
            grid.push(vec![text("a"), number(count), number("1")]);
        }
        let printed = grid.print(Screen { color: false, width: Some(width) });
        assert_eq!(printed.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn bars_are_not_longer_than_readable() {
        let mut grid = Grid::new(["COUNT".to_owned()]).with_bars(Some(0));
        grid.push(vec![number("7")]);
        let printed = grid.print(Screen { color: false, width: Some(200) });
        assert_eq!(printed.chars().filter(|char| *char == '█').count(), MAX_BAR);
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
