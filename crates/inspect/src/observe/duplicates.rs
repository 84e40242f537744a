//! Objects that are in the files more than once with different content: the user learns which one is used.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_engine::{GroupKind, NamespacedName, ResourceVersion};
use bellwether_input::{ObjectLocation, Texts};
use bellwether_model::{Object, Plan, Value};
use bellwether_terminal::first_few;

struct Duplicate {
    version: ResourceVersion,
    /// File and line.
    location: String,
    fields: Value<'static>,
}

/// Empty for a manifest that no API server has stored.
pub(super) fn version(object: &Object<'_>) -> ResourceVersion {
    ResourceVersion::new(object.at("metadata.resourceVersion").and_then(Value::as_text).unwrap_or_default())
}

/// The newer of two objects is used, and the later one if their versions cannot be compared.
pub(super) fn replaces(later: &ResourceVersion, earlier: &ResourceVersion) -> bool {
    !later.is_before(earlier)
}

/// A sentence for each duplicate object.
pub(super) fn notes(
    texts: &Texts,
    duplicates: &BTreeSet<(GroupKind, NamespacedName)>,
    identity_of: &(dyn Fn(&Object<'_>) -> Option<(GroupKind, NamespacedName)> + Sync),
) -> Vec<String> {
    if duplicates.is_empty() {
        return Vec::new();
    }
    let read = |object: &Object<'_>, location: &ObjectLocation<'_>| {
        let identity = identity_of(object).filter(|identity| duplicates.contains(identity))?;
        let copy = Duplicate {
            version: version(object),
            location: location.to_string(),
            fields: object.fields().to_static(),
        };
        Some((identity, copy))
    };
    let mut copies: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (identity, copy) in texts.read_with_locations(&Plan::whole(), &read).into_iter().flatten().flatten() {
        copies.entry(identity).or_default().push(copy);
    }
    let mut conflicts: Vec<_> =
        copies.iter().filter_map(|((kind, name), all)| Some((kind, name, conflict(all)?))).collect();
    // Applications, Rollups and HealthRules first: all other output depends on them.
    conflicts.sort_by_key(|(kind, ..)| !kind.is_bellwether());
    first_few(
        conflicts
            .iter()
            .map(|(kind, name, conflict)| format!("duplicate {} {name} {conflict}", kind.kind))
            .collect(),
    )
}

/// Which copy is used, if copies differ and none is known to be the newest.
fn conflict(copies: &[Duplicate]) -> Option<String> {
    let used = copies
        .iter()
        .reduce(|first, copy| if replaces(&copy.version, &first.version) { copy } else { first })?;
    let is_rival = |copy: &&Duplicate| !copy.version.is_before(&used.version) && copy.fields != used.fields;
    let rivals: Vec<_> = copies.iter().filter(is_rival).map(|copy| copy.location.as_str()).collect();
    let location = &used.location;
    (!rivals.is_empty()).then(|| {
        format!(
            "in {} and {location} with different content; using {location} (read last)",
            rivals.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Each copy with its resourceVersion and content; the locations of the rivals, and of the copy that is
    /// used.
    #[rstest]
    #[case::same_content(&[("", "a"), ("", "a")], None)]
    #[case::newer_first(&[("7", "a"), ("5", "b")], None)]
    #[case::newer_last(&[("5", "a"), ("7", "b")], None)]
    #[case::without_versions(&[("", "a"), ("", "b")], Some(("0", "1")))]
    #[case::same_version(&[("5", "a"), ("5", "b")], Some(("0", "1")))]
    #[case::manifest_after_dump(&[("5", "a"), ("", "b")], Some(("0", "1")))]
    #[case::first_equals_last(&[("", "a"), ("", "b"), ("", "a")], Some(("1", "2")))]
    #[case::three(&[("", "a"), ("", "b"), ("", "c")], Some(("0, 1", "2")))]
    #[case::oldest_is_not_a_rival(&[("3", "a"), ("5", "b"), ("5", "c")], Some(("1", "2")))]
    fn which_copy_is_used(#[case] copies: &[(&str, &str)], #[case] expected: Option<(&str, &str)>) {
        let copy = |(index, (version, content)): (usize, &(&str, &str))| Duplicate {
            version: ResourceVersion::new(version),
            location: index.to_string(),
            fields: Value::Text((*content).to_owned().into()),
        };
        let copies: Vec<_> = copies.iter().enumerate().map(copy).collect();
        let expected = expected.map(|(rivals, used)| {
            format!("in {rivals} and {used} with different content; using {used} (read last)")
        });
        assert_eq!(conflict(&copies), expected);
    }
}
