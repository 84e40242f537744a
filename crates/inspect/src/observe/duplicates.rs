//! Objects that files have more than once, and that differ: which of them counts should not go without saying.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_engine::{GroupKind, NamespacedName, ResourceVersion};
use bellwether_input::{Spot, Texts};
use bellwether_model::{Object, Plan, Value};
use bellwether_terminal::first_few;

/// One of the places where an object is.
struct Duplicate {
    version: ResourceVersion,
    place: String,
    fields: Value<'static>,
}

/// The version of an object, where an API server has given it one.
pub(super) fn version(object: &Object<'_>) -> ResourceVersion {
    ResourceVersion::new(object.at("metadata.resourceVersion").and_then(Value::as_text).unwrap_or_default())
}

/// Of two that come one after the other, whether the second counts: the newer one, and the last where nobody can tell.
pub(super) fn replaces(second: &ResourceVersion, first: &ResourceVersion) -> bool {
    !second.is_before(first)
}

/// What is to be said of objects that are there more than once, a sentence each. `name` tells who an object is.
pub(super) fn notes(
    texts: &Texts,
    twice: &BTreeSet<(GroupKind, NamespacedName)>,
    name: &(dyn Fn(&Object<'_>) -> Option<(GroupKind, NamespacedName)> + Sync),
) -> Vec<String> {
    if twice.is_empty() {
        return Vec::new();
    }
    let read = |object: &Object<'_>, spot: &Spot<'_>| {
        let who = name(object).filter(|who| twice.contains(who))?;
        let copy = Duplicate {
            version: version(object),
            place: spot.to_string(),
            fields: object.fields().to_static(),
        };
        Some((who, copy))
    };
    let mut copies: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (who, copy) in texts.read_with_spots(&Plan::whole(), &read).into_iter().flatten().flatten() {
        copies.entry(who).or_default().push(copy);
    }
    let mut told: Vec<_> =
        copies.iter().filter_map(|((kind, name), all)| Some((kind, name, tell(all)?))).collect();
    // Our own say what all the others are counted for.
    told.sort_by_key(|(kind, ..)| !kind.is_own());
    first_few(told.iter().map(|(kind, name, what)| format!("{} {name} {what}", kind.kind)).collect())
}

/// Which of several counts, if they differ and none is known to be the newest.
fn tell(copies: &[Duplicate]) -> Option<String> {
    let counts = copies
        .iter()
        .reduce(|first, one| if replaces(&one.version, &first.version) { one } else { first })?;
    let is_rival = |one: &&Duplicate| !one.version.is_before(&counts.version) && one.fields != counts.fields;
    let rivals: Vec<_> = copies.iter().filter(is_rival).map(|one| one.place.as_str()).collect();
    let place = &counts.place;
    (!rivals.is_empty()).then(|| {
        format!("is also in {}, and differs: {place} counts, because it is read last", rivals.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Each with its version and what it says.
    #[rstest]
    #[case::alike(&[("", "a"), ("", "a")], None)]
    #[case::newer_first(&[("7", "a"), ("5", "b")], None)]
    #[case::newer_last(&[("5", "a"), ("7", "b")], None)]
    #[case::without_versions(&[("", "a"), ("", "b")], Some(("0", "1")))]
    #[case::of_one_version(&[("5", "a"), ("5", "b")], Some(("0", "1")))]
    #[case::a_manifest_over_a_dump(&[("5", "a"), ("", "b")], Some(("0", "1")))]
    #[case::the_first_like_the_last(&[("", "a"), ("", "b"), ("", "a")], Some(("1", "2")))]
    #[case::of_three(&[("", "a"), ("", "b"), ("", "c")], Some(("0, 1", "2")))]
    #[case::the_oldest_is_none(&[("3", "a"), ("5", "b"), ("5", "c")], Some(("1", "2")))]
    fn which_one_counts(#[case] copies: &[(&str, &str)], #[case] expected: Option<(&str, &str)>) {
        let copy = |(index, (version, says)): (usize, &(&str, &str))| Duplicate {
            version: ResourceVersion::new(version),
            place: index.to_string(),
            fields: Value::Text((*says).to_owned().into()),
        };
        let copies: Vec<_> = copies.iter().enumerate().map(copy).collect();
        let expected = expected.map(|(others, counts)| {
            format!("is also in {others}, and differs: {counts} counts, because it is read last")
        });
        assert_eq!(tell(&copies), expected);
    }
}
