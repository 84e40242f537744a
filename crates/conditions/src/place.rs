//! Writes conditions into a status that other controllers write, too.

/// The stored conditions with `ours` merged in.
///
/// Ours replace stored conditions of the same type in place; new types are appended in the given order. A
/// stored type that is `owned` and not in `ours` is removed. Conditions of other controllers keep their
/// content and position, duplicates included.
pub fn put_in_place<C: Clone>(
    stored: &[C],
    ours: impl IntoIterator<Item = C>,
    type_: impl Fn(&C) -> &str,
    owned: impl Fn(&str) -> bool,
) -> Vec<C> {
    let mut ours: Vec<Option<C>> = ours.into_iter().map(Some).collect();
    let own_types: Vec<String> = ours.iter().flatten().map(|condition| type_(condition).to_owned()).collect();
    let mut placed: Vec<C> = stored
        .iter()
        .filter_map(|condition| match own_types.iter().position(|other| other == type_(condition)) {
            // A duplicate finds ours taken already, and is dropped.
            Some(index) => ours[index].take(),
            None => (!owned(type_(condition))).then(|| condition.clone()),
        })
        .collect();
    placed.extend(ours.into_iter().flatten());
    placed
}

/// True if a stored condition or status describes a newer generation than ours. Then our statement is stale
/// and must not be written.
///
/// `stored` has the `observedGeneration` of our stored conditions, and of the status if it has one.
pub fn has_newer_generation(stored: impl IntoIterator<Item = Option<i64>>, generation: Option<i64>) -> bool {
    generation.is_some_and(|generation| stored.into_iter().flatten().any(|observed| observed > generation))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    type Pair = (&'static str, &'static str);

    #[rstest]
    #[case::first(&[], &[("Ready", "new"), ("Settled", "new")], &[("Ready", "new"), ("Settled", "new")])]
    #[case::in_place(
        &[("Theirs", "a"), ("Ready", "old"), ("Other", "b")],
        &[("Ready", "new")],
        &[("Theirs", "a"), ("Ready", "new"), ("Other", "b")]
    )]
    #[case::appended(
        &[("Settled", "old"), ("Theirs", "a")],
        &[("Ready", "new"), ("Settled", "new"), ("Installed", "new")],
        &[("Settled", "new"), ("Theirs", "a"), ("Ready", "new"), ("Installed", "new")]
    )]
    #[case::dropped(&[("Ready", "old"), ("Settled", "old"), ("Theirs", "a")], &[("Ready", "new")], &[("Ready", "new"), ("Theirs", "a")])]
    #[case::ours_twice(&[("Ready", "old"), ("Theirs", "a"), ("Ready", "older")], &[("Ready", "new")], &[("Ready", "new"), ("Theirs", "a")])]
    #[case::theirs_twice(&[("Theirs", "a"), ("Theirs", "b")], &[], &[("Theirs", "a"), ("Theirs", "b")])]
    #[case::a_type_of_the_moment(&[("Programmed", "old")], &[("Programmed", "new")], &[("Programmed", "new")])]
    fn places(#[case] stored: &[Pair], #[case] ours: &[Pair], #[case] expected: &[Pair]) {
        let owned = |type_: &str| ["Ready", "Settled", "Installed"].contains(&type_);
        let placed = put_in_place(stored, ours.iter().copied(), |(type_, _)| type_, owned);
        assert_eq!(placed, expected);
        let again = put_in_place(&placed, ours.iter().copied(), |(type_, _)| type_, owned);
        assert_eq!(again, expected, "writing the same again changes nothing");
    }

    #[rstest]
    #[case::nothing_stored(&[], Some(3), false)]
    #[case::older(&[Some(2), None], Some(3), false)]
    #[case::same(&[Some(3)], Some(3), false)]
    #[case::one_is_newer(&[Some(2), Some(4)], Some(3), true)]
    #[case::no_generation(&[Some(4)], None, false)]
    fn newer_generations(
        #[case] stored: &[Option<i64>],
        #[case] generation: Option<i64>,
        #[case] newer: bool,
    ) {
        assert_eq!(has_newer_generation(stored.iter().copied(), generation), newer);
    }
}
