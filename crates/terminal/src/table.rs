//! Tables with aligned columns. The last column takes the remaining width.

use std::borrow::Cow;

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
    /// Instead of the text where that has little room.
    short: Option<String>,
    /// Follows the text, and stays if the text is cut.
    tail: String,
}

impl Cell {
    pub fn styled(text: String, style: Style) -> Self {
        Self { text, style, ..Self::default() }
    }

    /// For the last column. `short` is printed alone where the text has little room; `tail` follows the text,
    /// and stays if that is cut.
    pub fn message(text: String, short: String, tail: String) -> Self {
        Self { text, short: Some(short), tail, ..Self::default() }
    }

    fn columns(&self) -> usize {
        columns(&self.text) + columns(&self.tail)
    }

    /// In at most `most` columns.
    fn within(&self, most: usize) -> Cow<'_, str> {
        let Self { text, tail, .. } = self;
        match most.checked_sub(columns(tail)) {
            _ if tail.is_empty() => cut(text, most),
            Some(room) if room >= MIN_MESSAGE => Cow::Owned(format!("{}{tail}", cut(text, room))),
            _ => cut(text, most),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// With less room, the last column is printed below each row.
const MIN_MESSAGE: usize = 20;

/// With less room, messages that do not fit are replaced by short ones.
const ROOM_FOR_MESSAGES: usize = 50;

/// A column wider than this holds names. Names are cut only if a row does not fit on the screen without them.
const MAX_WORD_WIDTH: usize = 14;

/// The minimum width of a column of names.
const MIN_NAME_WIDTH: usize = 12;

/// The number of spaces between columns.
const GAP: usize = 2;

/// The indentation of the lines below a row.
pub const BELOW: usize = 4;

/// Where the last column is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastColumn {
    Whole,
    /// Cut to this width.
    Cut(usize),
    /// The short messages, cut to this width.
    Short(usize),
    /// On a line below each row, cut to this width.
    Below(usize),
}

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
                let widest = self.rows.iter().map(|row| row.cells[column].columns()).max().unwrap_or(0);
                if widest == 0 { 0 } else { widest.max(columns(header)) }
            })
            .collect();
        let last = screen.width.map_or(LastColumn::Whole, |screen| fit(&mut widths, screen));
        let headers: Vec<_> = self.headers.iter().map(|header| Cell::from((*header).to_owned())).collect();
        let mut text = String::new();
        let is_below = matches!(last, LastColumn::Below(_));
        let header = if is_below { LastColumn::Below(0) } else { LastColumn::Whole };
        print_cells(&mut text, &headers, &widths, header, screen);
        for row in &self.rows {
            print_cells(&mut text, &row.cells, &widths, last, screen);
            for line in &row.below {
                let line = format!("{:BELOW$}{line}", "");
                text.push_str(&screen.width.map_or(line.as_str().into(), |width| cut(&line, width)));
                text.push('\n');
            }
        }
        text
    }
}

/// Decides where the last column is printed. Shrinks the widest columns of names only if the others do not
/// fit on the screen without it.
fn fit(widths: &mut [usize], screen: usize) -> LastColumn {
    let Some((last, others)) = widths.split_last_mut() else { return LastColumn::Whole };
    let used: usize = others.iter().filter(|width| **width > 0).map(|width| width + GAP).sum();
    match screen.saturating_sub(used) {
        room if room >= *last && used <= screen + GAP => return LastColumn::Whole,
        room if room >= ROOM_FOR_MESSAGES => return LastColumn::Cut(room),
        room if room >= MIN_MESSAGE => return LastColumn::Short(room),
        _ => {}
    }
    let mut lacking = used.saturating_sub(screen + GAP);
    let mut names: Vec<_> = others.iter_mut().filter(|width| **width > MAX_WORD_WIDTH).collect();
    while lacking > 0
        && let Some(widest) = names.iter_mut().max().filter(|width| ***width > MIN_NAME_WIDTH)
    {
        **widest -= 1;
        lacking -= 1;
    }
    LastColumn::Below(screen.saturating_sub(BELOW).max(MIN_MESSAGE))
}

fn print_cells(text: &mut String, cells: &[Cell], widths: &[usize], last: LastColumn, screen: Screen) {
    let line = text.len();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate().filter(|(_, (_, width))| **width > 0)
    {
        let shown = match last {
            _ if column + 1 < widths.len() => cut_middle(&cell.text, *width),
            LastColumn::Whole => format!("{}{}", cell.text, cell.tail).into(),
            LastColumn::Cut(room) => cell.within(room),
            LastColumn::Short(room) => match &cell.short {
                Some(short) => cut(short, room),
                None => cell.within(room),
            },
            LastColumn::Below(room) => {
                end_line(text, line);
                if cell.columns() > 0 && room > 0 {
                    text.extend(std::iter::repeat_n(' ', BELOW));
                    text.push_str(&screen.paint(&cell.within(room), cell.style));
                    text.push('\n');
                }
                return;
            }
        };
        text.push_str(&screen.paint(&shown, cell.style));
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(&shown)) + GAP));
    }
    end_line(text, line);
}

/// Ends the line that starts at this offset, without trailing spaces.
fn end_line(text: &mut String, start: usize) {
    text.truncate(start + text[start..].trim_end_matches(' ').len());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;
    use rstest::rstest;

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
    }

    #[test]
    fn the_last_column_moves_below_if_it_has_no_room() {
        let text = table().print(Screen { color: false, width: Some(30) });
        assert_eq!(
            text,
            "NAME       STATE\n\
             寸法       Failed\n    \
             a sentence that is longer…\n    \
             below\n\
             long-name  Ready\n"
        );
    }

    /// A name is copied, a message is read.
    #[test]
    fn names_are_cut_only_if_a_row_does_not_fit() {
        let mut table = Table::new(vec!["NAMESPACE", "NAME", "STATE", "WHY"]);
        let name = format!("{}-x2k", "a".repeat(30));
        let cells = ["shop", &name, "◐ InProgress", "1 of 3 replicas ready"];
        table.push(cells.map(|text| text.to_owned().into()).into(), Vec::new());
        let text = table.print(Screen { color: false, width: Some(60) });
        assert_eq!(text.lines().nth(1), Some(&*format!("shop       {name}  ◐ InProgress")));
        let text = table.print(Screen { color: false, width: Some(40) });
        assert_eq!(text.lines().nth(1), Some("shop       aaaaaaa…aaa-x2k  ◐ InProgress"));
        assert_eq!(text.lines().nth(2), Some("    1 of 3 replicas ready"));
    }

    #[rstest]
    #[case::whole(80, "web   Deployment/web: Deadline: 1 of 3 replicas updated (and 2 more)")]
    #[case::cut(60, "web   Deployment/web: Deadline: 1 of 3 replica… (and 2 more)")]
    #[case::short(40, "web   Deadline (Deployment/web)")]
    #[case::short_and_cut(30, "web   Deadline (Deployment/we…")]
    fn messages(#[case] width: usize, #[case] expected: &str) {
        let mut table = Table::new(vec!["NAME", "WHY"]);
        let why = Cell::message(
            "Deployment/web: Deadline: 1 of 3 replicas updated".to_owned(),
            "Deadline (Deployment/web)".to_owned(),
            " (and 2 more)".to_owned(),
        );
        table.push(vec!["web".to_owned().into(), why], Vec::new());
        let text = table.print(Screen { color: false, width: Some(width) });
        assert_eq!(text.lines().nth(1), Some(expected));
    }

    #[test]
    fn colors_do_not_count_as_columns() {
        let text = table().print(Screen { color: true, width: None });
        assert!(text.contains("寸法       \u{1b}[31mFailed\u{1b}[0m  a sentence"), "{text:?}");
    }
}
