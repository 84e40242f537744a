//! Truncated, wrapped and printable text.

use std::borrow::Cow;

use anstream::adapter::strip_str;
use jiff::Timestamp;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Replaces control characters and bidirectional marks, so that untrusted text cannot control the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(
            text.chars().map(|character| if is_unsafe(character) { '\u{fffd}' } else { character }).collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The width of a text in terminal columns.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Truncates a text to `most` columns, with `…` at the end.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if columns(text) <= most {
        return Cow::Borrowed(text);
    }
    let mut room = most.saturating_sub(1);
    let end = text.char_indices().find(|(_, character)| {
        let width = character.width().unwrap_or(0);
        let fits = width <= room;
        room = room.saturating_sub(width);
        !fits
    });
    let end = end.map_or(text.len(), |(index, _)| index);
    Cow::Owned(format!("{}…", text[..end].trim_end()))
}

/// The maximum width of a message with several items, in columns.
const MAX_ITEMS: usize = 200;

/// The first items of a message with many: `a is late; b is late; and more`. The number of the rest is
/// unknown, because items may contain semicolons.
pub fn first_items(message: &str) -> Cow<'_, str> {
    if columns(message) <= MAX_ITEMS {
        return Cow::Borrowed(message);
    }
    let ends = || message.match_indices("; ").map(|(end, _)| &message[..end]);
    // The first item is never truncated.
    match ends().take_while(|shown| columns(shown) <= MAX_ITEMS).last().or_else(|| ends().next()) {
        Some(shown) => Cow::Owned(format!("{shown}; and more")),
        None => Cow::Borrowed(message),
    }
}

/// The maximum number of notes of one type.
const MAX_NOTES: usize = 5;

/// The first notes, and a last one with the number of the rest.
pub fn first_few(mut notes: Vec<String>) -> Vec<String> {
    let more = notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    notes.extend((more > 0).then(|| format!("and {more} more like these")));
    notes
}

/// Truncates a text to `most` columns, with `…` in the middle.
pub fn cut_middle(text: &str, most: usize) -> Cow<'_, str> {
    if columns(text) <= most {
        return Cow::Borrowed(text);
    }
    let room = most.saturating_sub(1);
    let fitting = |characters: &mut dyn Iterator<Item = char>, mut room: usize| {
        let fits = |character: &char| {
            let width = character.width().unwrap_or(0);
            let fits = width <= room;
            room = room.saturating_sub(width);
            fits
        };
        characters.take_while(fits).collect::<Vec<_>>()
    };
    let beginning = fitting(&mut text.chars(), room.div_ceil(2));
    let end = fitting(&mut text.chars().rev(), room / 2);
    Cow::Owned(beginning.into_iter().chain(['…']).chain(end.into_iter().rev()).collect())
}

/// The time since, in the largest fitting unit: `38s`, `4m`, `6d`.
pub fn how_long(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Progress in percent; empty if unknown.
pub fn percent(done: Option<u8>) -> String {
    done.map(|done| format!("{done:>3}%")).unwrap_or_default()
}

/// Progress as a bar and in percent.
pub fn bar(done: Option<u8>) -> String {
    const CELLS: usize = 9;
    let halves = usize::from(done.unwrap_or(0)) * 2 * CELLS / 100;
    let mut bar = blocks(halves);
    let dots = CELLS.saturating_sub(halves.div_ceil(2));
    bar.push_str(&"·".repeat(dots));
    format!("{bar} {}", percent(done)).trim_end().to_owned()
}

/// A line as long as this many halves of a column.
pub(crate) fn blocks(halves: usize) -> String {
    let mut blocks = "█".repeat(halves / 2);
    if halves % 2 == 1 {
        blocks.push('▌');
    }
    blocks
}

/// Wraps a text at `width` columns. Words may contain color codes.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if visible_width(line) + 1 + visible_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The width of a text without its color codes, in columns.
fn visible_width(text: &str) -> usize {
    if text.contains('\u{1b}') { columns(&strip_str(text).to_string()) } else { columns(text) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("web", "web")]
    #[case("\u{1b}[31mred\u{7}", "\u{fffd}[31mred\u{fffd}")]
    #[case("a\nb\tc", "a\u{fffd}b\u{fffd}c")]
    #[case("evil\u{202e}lmth.exe", "evil\u{fffd}lmth.exe")]
    #[case("Größe 寸法", "Größe 寸法")]
    fn control_characters_are_replaced(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(printable(text), shown);
    }

    #[rstest]
    #[case("as it is", 8, "as it is")]
    #[case("one too many", 11, "one too ma…")]
    #[case("a space goes", 8, "a space…")]
    #[case("寸法寸法", 5, "寸法…")]
    #[case("寸法寸法", 4, "寸…")]
    #[case("any", 0, "…")]
    fn truncates(#[case] text: &str, #[case] most: usize, #[case] shown: &str) {
        assert_eq!(cut(text, most), shown);
    }

    #[rstest]
    #[case("as it is", 8, "as it is")]
    #[case("checkout-7d9f-x2k", 9, "chec…-x2k")]
    #[case("checkout-7d9f-x2k", 8, "chec…x2k")]
    #[case("寸法寸法", 6, "寸…法")]
    #[case("any", 0, "…")]
    fn truncates_in_the_middle(#[case] text: &str, #[case] most: usize, #[case] shown: &str) {
        assert_eq!(cut_middle(text, most), shown);
    }

    #[test]
    fn few_items_of_many() {
        let item = "a thing does not do what it should";
        let some = [item; 3].join("; ");
        assert_eq!(first_items(&some), some);
        let many = format!("{}; and 16 more", [item; 30].join("; "));
        assert_eq!(first_items(&many), format!("{}; and more", [item; 5].join("; ")));
        let long = item.repeat(10);
        assert_eq!(first_items(&long), long);
        assert_eq!(first_items(&format!("{long}; {long}; {long}")), format!("{long}; and more"));
    }

    #[rstest]
    #[case(-5, "0s")]
    #[case(59, "59s")]
    #[case(60, "1m")]
    #[case(3_599, "59m")]
    #[case(3_600, "1h")]
    #[case(172_799, "47h")]
    #[case(172_800, "2d")]
    #[case(400 * 86_400, "400d")]
    fn durations(#[case] seconds: i64, #[case] shown: &str) {
        let now = Timestamp::UNIX_EPOCH;
        let since = Timestamp::from_second(-seconds).expect("a time");
        assert_eq!(how_long(since, now), shown);
    }

    #[rstest]
    #[case(Some(0), "·········   0%")]
    #[case(Some(5), "·········   5%")]
    #[case(Some(6), "▌········   6%")]
    #[case(Some(50), "████▌····  50%")]
    #[case(Some(99), "████████▌  99%")]
    #[case(Some(100), "█████████ 100%")]
    #[case(None, "·········")]
    fn bars(#[case] percent: Option<u8>, #[case] shown: &str) {
        assert_eq!(bar(percent), shown);
    }

    #[test]
    fn wraps() {
        assert_eq!(wrap("one two  three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("\u{1b}[31mone\u{1b}[0m two three", 9), ["\u{1b}[31mone\u{1b}[0m two", "three"]);
    }
}
