//! Tables with aligned columns. The last column takes the remaining width.

use anstyle::Style;

use crate::{
    screen::Screen,
    text::{columns, cut, cut_middle},
};

#[derive(Debug)]
pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    cells: Vec<Cell>,
    below: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn styled(text: String, style: Style) -> Self {
        Self { text, style }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, style: Style::new() }
    }
}

/// The minimum width of the last column, even if the screen is too narrow.
const LEAST: usize = 20;

/// A column wider than this holds names, and shrinks if the screen is too narrow.
const MAX_WORD_WIDTH: usize = 14;

/// The minimum width of a column of names.
const MIN_NAME_WIDTH: usize = 12;

/// The number of spaces between columns.
const GAP: usize = 2;

/// The indentation of the lines below a row.
pub const BELOW: usize = 4;

impl Table {
    pub fn new(headers: Vec<&'static str>) -> Self {
        Self { headers, rows: Vec::new() }
    }

    /// Adds a row with one cell for each header, and lines to print below it.
    pub fn push(&mut self, cells: Vec<Cell>, below: Vec<String>) {
        self.rows.push(Row { cells, below });
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table. A column that is empty in all rows is omitted.
    pub fn print(&self, screen: Screen) -> String {
        let mut widths: Vec<_> = self
            .headers
            .iter()
            .enumerate()
            .map(|(column, header)| {
                let widest = self.rows.iter().map(|row| columns(&row.cells[column].text)).max().unwrap_or(0);
                if widest == 0 { 0 } else { widest.max(columns(header)) }
            })
            .collect();
        if let Some(screen) = screen.width {
            make_room(&mut widths, screen);
        }
        let headers: Vec<_> = self.headers.iter().map(|header| Cell::from((*header).to_owned())).collect();
        let mut text = String::new();
        print_cells(&mut text, &headers, &widths, screen);
        for row in &self.rows {
            print_cells(&mut text, &row.cells, &widths, screen);
            for line in &row.below {
                let line = format!("{:BELOW$}{line}", "");
                text.push_str(&screen.width.map_or(line.as_str().into(), |width| cut(&line, width)));
                text.push('\n');
            }
        }
        text
    }
}

/// Shrinks the widest columns of names until the last column has its minimum width.
fn make_room(widths: &mut [usize], screen: usize) {
    let Some((last, others)) = widths.split_last_mut() else { return };
    let used: usize = others.iter().filter(|width| **width > 0).map(|width| width + GAP).sum();
    let mut lacking = (used + LEAST.min(*last)).saturating_sub(screen);
    let mut names: Vec<_> = others.iter_mut().filter(|width| **width > MAX_WORD_WIDTH).collect();
    while lacking > 0
        && let Some(widest) = names.iter_mut().max().filter(|width| ***width > MIN_NAME_WIDTH)
    {
        **widest -= 1;
        lacking -= 1;
    }
}

fn print_cells(text: &mut String, cells: &[Cell], widths: &[usize], screen: Screen) {
    let line = text.len();
    let mut used = 0;
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate().filter(|(_, (_, width))| **width > 0)
    {
        let shown = match screen.width {
            Some(screen) if column + 1 == widths.len() => {
                cut(&cell.text, screen.saturating_sub(used).max(LEAST))
            }
            _ => cut_middle(&cell.text, *width),
        };
        text.push_str(&screen.paint(&shown, cell.style));
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(&shown)) + GAP));
        used += width + GAP;
    }
    text.truncate(line + text[line..].trim_end_matches(' ').len());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec!["NAME", "STATE", "WHY"]);
        let red = AnsiColor::Red.on_default();
        let why = "a sentence that is longer than many a screen".to_owned();
        table.push(
            vec!["寸法".to_owned().into(), Cell::styled("Failed".into(), red), why.into()],
            vec!["below".into()],
        );
        table.push(
            vec!["long-name".to_owned().into(), "Ready".to_owned().into(), Cell::default()],
            Vec::new(),
        );
        table
    }

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_spaces() {
        let text = table().print(Screen { color: false, width: None });
        assert_eq!(
            text,
            "NAME       STATE   WHY\n\
             寸法       Failed  a sentence that is longer than many a screen\n    \
             below\n\
             long-name  Ready\n"
        );
    }

    #[test]
    fn an_empty_column_is_omitted() {
        let mut table = Table::new(vec!["NAME", "STATE", "WHY"]);
        table.push(vec!["web".to_owned().into(), Cell::default(), "because".to_owned().into()], Vec::new());
        let text = table.print(Screen { color: false, width: None });
        assert_eq!(text, "NAME  WHY\nweb   because\n");
    }

    #[test]
    fn the_last_column_is_truncated_to_the_screen() {
        let text = table().print(Screen { color: false, width: Some(45) });
        assert_eq!(text.lines().nth(1), Some("寸法       Failed  a sentence that is longer…"));
        let text = table().print(Screen { color: false, width: Some(5) });
        assert_eq!(
            text.lines().nth(1),
            Some("寸法       Failed  a sentence that is…"),
            "with a minimum width"
        );
    }

    #[test]
    fn long_names_shrink_for_the_last_column() {
        let mut table = Table::new(vec!["NAMESPACE", "NAME", "STATE", "WHY"]);
        let name = format!("{}-x2k", "a".repeat(249));
        let cells = ["shop", &name, "◐ InProgress", "1 of 3 replicas is ready"];
        table.push(cells.map(|text| text.to_owned().into()).into(), Vec::new());
        let text = table.print(Screen { color: false, width: Some(60) });
        assert_eq!(text.lines().nth(1), Some("shop       aaaaaa…aa-x2k  ◐ InProgress  1 of 3 replicas is…"));
        assert!(
            table.print(Screen { color: false, width: None }).contains(&name),
            "a pipe has no width limit"
        );
    }

    #[test]
    fn colors_do_not_count_as_columns() {
        let text = table().print(Screen { color: true, width: None });
        assert!(text.contains("寸法       \u{1b}[31mFailed\u{1b}[0m  a sentence"), "{text:?}");
    }
}
