//! Messages of a Rollup, as far as the oracle can know them.

use serde_json::{Value, json};

use super::components::ReportedCondition;

/// Maximum length of a message in bytes.
const BUDGET: usize = 1024;

/// The message of a component, or its reason if the message is empty. None if the oracle does not know it.
pub(super) fn words(condition: &ReportedCondition) -> Option<String> {
    let message = condition.message.as_ref()?;
    Some(if message.is_empty() { condition.reason.clone() } else { message.clone() })
}

/// Joins items to one message: as many as fit, then how many more there are. If some items are unknown,
/// returns the array of items for [`said_as`]. Null if not even the first fits.
pub(super) fn joined(items: &[Option<String>]) -> Value {
    let Some(known) = items.iter().cloned().collect::<Option<Vec<String>>>() else {
        let first = items.first().and_then(Option::as_ref).map_or(0, String::len);
        let has_room = first + and_more(items.len() - 1).len() <= BUDGET;
        return if has_room { json!(items) } else { Value::Null };
    };
    let message = (1..=known.len()).rev().find_map(|shown| {
        let message = known[..shown].join("; ") + &and_more(known.len() - shown);
        Some(message).filter(|message| message.len() <= BUDGET)
    });
    json!(message)
}

fn and_more(rest: usize) -> String {
    if rest > 0 { format!("; and {rest} more") } else { String::new() }
}

/// A message in the form of the expected one, so that both can be compared. If only some items are known,
/// returns `expected` if the message has these items in their order.
pub(super) fn said_as(expected: &Value, said: &Value) -> Value {
    match expected {
        Value::Null => Value::Null,
        Value::Array(items) if tells(said.as_str().unwrap_or_default(), items) => expected.clone(),
        _ => said.clone(),
    }
}

fn tells(message: &str, items: &[Value]) -> bool {
    let more = |(text, more): (_, &str)| Some((text, more.strip_suffix(" more")?.parse().ok()?));
    let (mut rest, more) = message.rsplit_once("; and ").and_then(more).unwrap_or((message, 0));
    let Some(shown) = items.len().checked_sub(more).filter(|shown| *shown > 0) else { return false };
    items[..shown].iter().filter_map(Value::as_str).all(|item| {
        let after = rest.split_once(item).map(|(_, after)| after);
        rest = after.unwrap_or_default();
        after.is_some()
    })
}

/// The sentence for three known statuses, or what is known and what is not.
pub(super) fn meaning(triple: &[Value; 3]) -> String {
    let is = |status: &str| -> Vec<&str> {
        let names = ["available", "progressing", "degraded"].into_iter().zip(triple);
        names.filter(|(_, it)| **it == status).map(|(name, _)| name).collect()
    };
    let (yes, no, unknown) = (is("True"), is("False"), is("Unknown"));
    let sentence = match *yes {
        _ if !unknown.is_empty() => {
            let known = yes.iter().map(|it| (*it).to_owned()).chain(no.iter().map(|it| format!("not {it}")));
            let known: Vec<_> = known.collect();
            let or = match *unknown {
                [one] => one.to_owned(),
                [one, other] => format!("{one} or {other}"),
                _ => return "Unknown whether the component is available, progressing or degraded".to_owned(),
            };
            return format!("Component is {}; unknown whether it is {or}", known.join(" and "));
        }
        ["available"] => "Component is 100% healthy and the Operator is idle",
        ["available", "progressing"] => "Component is functional but, either upgrading or healing",
        ["available", "progressing", "degraded"] => {
            "Component is functioning below capacity and an upgrade or heal is in progress"
        }
        ["degraded"] => {
            "Component and operator are in a failed state that requires human intervention.  Failed upgrade or failed heal"
        }
        ["progressing", "degraded"] => "Component is in a failed state and an operator is healing",
        ["progressing"] => "Operator is deploying the component",
        ["available", "degraded"] => "Component is functioning below capacity and the Operator is idle",
        _ => "Component is not available and the Operator is idle",
    };
    sentence.to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::all("x is bad; y cannot be read; z is worse", true)]
    #[case::cut("x is bad; y cannot be read; and 1 more", true)]
    #[case::one_is_missing("x is bad; y cannot be read", false)]
    #[case::another_order("z is worse; y cannot be read; x is bad", false)]
    #[case::none_is_left("and so on; and 3 more", false)]
    #[case::more_than_there_are("x is bad; and 7 more", false)]
    fn message_has_the_known_items(#[case] message: &str, #[case] is_right: bool) {
        let items = joined(&[Some("x is bad".to_owned()), None, Some("z is worse".to_owned())]);
        assert_eq!(said_as(&items, &json!(message)) == items, is_right);
    }

    #[rstest]
    #[case::room(1012, true)]
    #[case::no_room(1013, false)]
    fn no_message_is_expected_if_the_first_item_does_not_fit(
        #[case] length: usize,
        #[case] is_expected: bool,
    ) {
        let items = joined(&[Some("x".repeat(length)), None]);
        assert_eq!(items.is_array(), is_expected);
    }
}
