//! Messages that name many sources within a byte budget.

use bellwether_model::text::{one_line, shorten};

use crate::legal::MAX_MESSAGE;

const SEPARATOR: &str = "; ";

/// Joins items into one message: `name text; name text; and 3 more`.
///
/// The message has at most `budget` bytes, and never more than Kubernetes accepts. Items are not cut, except
/// a first one that does not fit. `total` is the number of items, which may be more than the iterator yields.
/// Items are taken until one does not fit, so a message about 100,000 items costs no more than one about ten.
/// Line breaks and other control characters become spaces.
///
/// ```
/// let items = [("web", "1 of 3 ready"), ("database", "no volume"), ("cache", "no image")];
/// assert_eq!(bellwether_conditions::message(items, 3, 40), "web 1 of 3 ready; and 2 more");
/// ```
pub fn message<N: AsRef<str>, T: AsRef<str>>(
    items: impl IntoIterator<Item = (N, T)>,
    total: usize,
    budget: usize,
) -> String {
    let budget = budget.min(MAX_MESSAGE);
    let mut line = String::new();
    let (mut given, mut first) = (0, 0);
    // The longest prefix that leaves room for "and N more", and how many items it shows.
    let mut whole = None;
    for (name, text) in items.into_iter().take(total) {
        if given > 0 {
            line.push_str(SEPARATOR);
        }
        push_item(&mut line, name.as_ref(), text.as_ref());
        given += 1;
        if given == 1 {
            first = line.len();
        }
        if line.len() + and_more(total - given).len() <= budget {
            whole = Some((line.len(), given));
        }
        if line.len() + SEPARATOR.len() >= budget {
            break;
        }
    }
    let (length, shown) = whole.unwrap_or((first, given.min(1)));
    line.truncate(length);
    let ending = and_more(total - shown);
    match budget.checked_sub(ending.len()) {
        // At least one character of the cut item and the ellipsis have to fit.
        Some(room) if whole.is_some() || room > 2 * '…'.len_utf8() => {
            shorten(&mut line, room);
            line.push_str(if shown == 0 { ending.trim_start_matches(SEPARATOR) } else { &ending });
        }
        _ => shorten(&mut line, budget),
    }
    line
}

fn and_more(rest: usize) -> String {
    if rest == 0 { String::new() } else { format!("{SEPARATOR}and {rest} more") }
}

fn push_item(line: &mut String, name: &str, text: &str) {
    line.push_str(&one_line(name.trim(), MAX_MESSAGE));
    let text = one_line(text.trim(), MAX_MESSAGE);
    if !text.is_empty() {
        line.push(' ');
        line.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(&[], 0, 100, "")]
    #[case::one(&[("a", "is bad")], 1, 100, "a is bad")]
    #[case::all(&[("a", "is bad"), ("b", "too")], 2, 100, "a is bad; b too")]
    #[case::exact(&[("a", "is bad"), ("b", "too")], 2, 15, "a is bad; b too")]
    #[case::no_room_for_the_second(&[("a", "is bad and long"), ("b", "is bad too")], 2, 30, "a is bad and long; and 1 more")]
    #[case::more_than_given(&[("a", "is bad")], 1000, 100, "a is bad; and 999 more")]
    #[case::only_the_number(&[], 5, 100, "and 5 more")]
    #[case::no_text(&[("a", ""), ("b", " \n")], 2, 100, "a; b")]
    #[case::lines(&[("a", " two\r\nlines\u{1b}[31m ")], 1, 100, "a two lines [31m")]
    #[case::spaces_stay(&[("a", "two  spaces")], 1, 100, "a two  spaces")]
    #[case::long_first_alone(&[("a", "is very bad")], 1, 10, "a is ve…")]
    #[case::long_first(&[("a", "is very, very bad"), ("b", "x")], 2, 22, "a is ve…; and 1 more")]
    #[case::between_characters(&[("a", "äääää")], 1, 10, "a ää…")]
    #[case::hardly_any_room(&[("ab", "cd"), ("b", "d")], 2, 4, "a…")]
    #[case::no_room(&[("a", "b")], 1, 0, "")]
    fn messages(
        #[case] items: &[(&str, &str)],
        #[case] total: usize,
        #[case] budget: usize,
        #[case] expected: &str,
    ) {
        assert_eq!(message(items.iter().copied(), total, budget), expected);
    }

    #[test]
    fn short_items_at_the_end_need_no_room_for_counting_them() {
        // "; and 2 more" does not fit after the first item, but both other items do.
        let items = [("a", "xxxxxxxxxx"), ("b", ""), ("c", "")];
        assert_eq!(message(items, 3, 18), "a xxxxxxxxxx; b; c");
    }

    #[test]
    fn kubernetes_limit_is_never_exceeded() {
        let items = (0..10_000).map(|number| (format!("member-{number}"), "is not ready"));
        let message = message(items, 10_000, usize::MAX);
        assert!((32_700..=MAX_MESSAGE).contains(&message.len()), "{}", message.len());
    }

    #[test]
    fn items_that_do_not_fit_are_not_read() {
        let taken = Cell::new(0);
        let items = (0..1_000_000).map(|number| {
            taken.set(taken.get() + 1);
            (format!("member-{number:06}"), "is not ready")
        });
        let message = message(items, 1_000_000, 95);
        assert_eq!(message, "member-000000 is not ready; member-000001 is not ready; and 999998 more");
        assert_eq!(
            taken.get(),
            4,
            "three fit, the fourth does not, and counting takes the room of the third"
        );
    }

    /// With any text.
    fn any_items() -> impl Strategy<Value = Vec<(String, String)>> {
        prop::collection::vec(("[a-zä]{1,8}", "(?s).{0,30}"), 0..12)
    }

    /// Shown unchanged, and without the letters of "more".
    fn plain_items() -> impl Strategy<Value = Vec<(String, String)>> {
        prop::collection::vec(("[a-dä]{1,8}", "([a-dä…]{1,8} ){0,3}[a-dä]"), 0..12)
    }

    /// The shown items, and the number after "and".
    fn read(message: &str) -> (Vec<&str>, usize) {
        let (shown, rest) = match message.strip_suffix(" more").and_then(|start| start.rsplit_once("and ")) {
            Some((shown, rest)) => (shown, rest.parse().unwrap()),
            None => (message, 0),
        };
        (shown.split(SEPARATOR).filter(|item| !item.is_empty()).collect(), rest)
    }

    proptest! {
        #[test]
        fn budgets_are_kept(items in any_items(), more in 0_usize..2000, budget in 0_usize..200) {
            let total = items.len() + more;
            let message = message(items, total, budget);
            prop_assert!(message.len() <= budget, "{message:?}");
            prop_assert!(!message.contains(char::is_control), "{message:?}");
        }

        #[test]
        fn shown_and_not_shown_add_up(items in plain_items(), more in 0_usize..2000, budget in 30_usize..200) {
            let total = items.len() + more;
            let message = message(items.clone(), total, budget);
            let (shown, rest) = read(&message);
            prop_assert_eq!(shown.len() + rest, total);
            for (index, (shown, (name, text))) in shown.iter().zip(&items).enumerate() {
                let whole = format!("{name} {text}");
                let cut = shown.strip_suffix('…').is_some_and(|start| whole.starts_with(start));
                prop_assert!(*shown == whole || index == 0 && shown.len() < whole.len() && cut, "{shown:?} of {whole:?}");
            }
        }

        #[test]
        fn more_room_shows_no_less(items in plain_items(), budget in 30_usize..200) {
            let shown = |budget| read(&message(items.clone(), items.len(), budget)).0.len();
            prop_assert!(shown(budget) <= shown(budget + 1));
        }

        #[test]
        fn all_is_shown_where_all_fits(items in plain_items()) {
            let all = items.iter().map(|(name, text)| format!("{name} {text}")).collect::<Vec<_>>().join(SEPARATOR);
            prop_assert_eq!(message(items.clone(), items.len(), all.len()), all);
        }
    }
}
