//! Merges the counted contributions of all sources into one statement.

use std::borrow::Cow;

use bellwether_model::text::{legal_reason, one_line};

use crate::{
    condition::Statement,
    consensus::Consensus,
    legal::MAX_MESSAGE,
    message::message,
    policy::{Choice, Class, Policy, WhenFine},
    tally::Tally,
};

/// The text of a source, for the merged message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText<'a> {
    /// As messages name it.
    pub name: Cow<'a, str>,
    /// Any text; the merged reason is made legal.
    pub reason: Cow<'a, str>,
    /// If empty, the message names the reason instead.
    pub message: Cow<'a, str>,
}

/// The statement that the worst class of the tally decides.
///
/// `text_of` is called only for the sources that the result quotes. `consensus` is read for what the policy
/// wants to be shared.
pub fn merge<'a, K: Ord + Clone>(
    policy: &Policy,
    tally: &Tally<K>,
    consensus: &Consensus,
    text_of: impl Fn(&K) -> SourceText<'a>,
) -> Statement {
    statement(tally.worst(), policy, tally, Some(consensus), text_of)
}

/// The same for a given class, usually that of [`damp`](crate::damp). Without a [`Consensus`],
/// [`Choice::Common`] yields the policy's reason, and [`WhenFine::Agreed`] an empty message.
///
/// A message about issues or unknown sources lists all issues first, then all unknown sources.
pub fn merge_as<'a, K: Ord + Clone>(
    class: Option<Class>,
    policy: &Policy,
    tally: &Tally<K>,
    text_of: impl Fn(&K) -> SourceText<'a>,
) -> Statement {
    statement(class, policy, tally, None, text_of)
}

fn statement<'a, K: Ord + Clone>(
    class: Option<Class>,
    policy: &Policy,
    tally: &Tally<K>,
    consensus: Option<&Consensus>,
    text_of: impl Fn(&K) -> SourceText<'a>,
) -> Statement {
    let Some(class) = class else { return policy.empty.clone() };
    let chosen = match policy.choice {
        Choice::Fixed => None,
        Choice::Common => consensus.and_then(|consensus| consensus.reason(class)).map(Cow::Borrowed),
        Choice::Recent => tally.latest(class).map(|key| text_of(key).reason),
    };
    let chosen = chosen.filter(|reason| !reason.trim().is_empty());
    let reason = chosen.as_deref().unwrap_or(policy.reasons.of(class));
    Statement {
        status: policy.status(class),
        reason: Cow::Owned(legal_reason(reason).into_owned()),
        message: message_for(class, policy, tally, consensus, text_of),
    }
}

fn message_for<'a, K: Ord + Clone>(
    class: Class,
    policy: &Policy,
    tally: &Tally<K>,
    consensus: Option<&Consensus>,
    text_of: impl Fn(&K) -> SourceText<'a>,
) -> Cow<'static, str> {
    if class == Class::Fine {
        return match &policy.when_fine {
            WhenFine::Text(text) => text.clone(),
            WhenFine::Agreed => {
                let agreed = consensus.and_then(|consensus| consensus.message(class)).unwrap_or_default();
                Cow::Owned(one_line(agreed.trim(), policy.budget.min(MAX_MESSAGE)).into_owned())
            }
        };
    }
    let named = [Class::Issue, Class::Unknown];
    let items = named.into_iter().flat_map(|class| tally.keys(class)).map(|key| {
        let text = text_of(key);
        (text.name, if text.message.trim().is_empty() { text.reason } else { text.message })
    });
    let total = named.into_iter().map(|class| tally.count(class)).sum();
    Cow::Owned(message(items, total, policy.budget))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bellwether_model::ConditionStatus::{self, False, True, Unknown};
    use jiff::Timestamp;
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::{
        policy::{Polarity, Reasons},
        source::{Contribution, Reported, Source, normalise},
    };

    /// Sources by name, with the tally and consensus over them.
    #[derive(Clone, Default)]
    struct Group {
        sources: BTreeMap<&'static str, Contribution<'static>>,
        tally: Tally<&'static str>,
        consensus: Consensus,
    }

    impl Group {
        fn set(&mut self, name: &'static str, contribution: Contribution<'static>) {
            self.remove(name);
            self.tally.set(name, contribution.class, contribution.since);
            self.consensus.add(contribution.class, &contribution.reason, &contribution.message);
            self.sources.insert(name, contribution);
        }

        fn remove(&mut self, name: &'static str) {
            if let Some(contribution) = self.sources.remove(name) {
                self.tally.remove(&name);
                self.consensus.remove(contribution.class, &contribution.reason, &contribution.message);
            }
        }

        fn merge(&self, policy: &Policy) -> Statement {
            merge(policy, &self.tally, &self.consensus, |name| {
                let contribution = &self.sources[name];
                SourceText {
                    name: (*name).into(),
                    reason: (&*contribution.reason).into(),
                    message: (&*contribution.message).into(),
                }
            })
        }
    }

    /// Name, status, reason, message and transition time in seconds.
    type Row = (&'static str, &'static str, &'static str, &'static str, i64);

    fn contribution(policy: &Policy, (_, status, reason, message, since): Row) -> Contribution<'static> {
        let conditions = [Reported {
            type_: "T",
            status,
            reason,
            message,
            last_transition_time: Timestamp::from_second(since).ok(),
            observed_generation: None,
        }];
        let conditions = if status.is_empty() { &[][..] } else { &conditions[..] };
        normalise(policy, &Source { conditions, ..Source::default() }).into_owned()
    }

    fn merged(policy: &Policy, rows: &[Row]) -> (ConditionStatus, String, String) {
        let mut group = Group::default();
        for row in rows {
            group.set(row.0, contribution(policy, *row));
        }
        let statement = group.merge(policy);
        (statement.status, statement.reason.into(), statement.message.into())
    }

    #[rstest]
    #[case::no_sources(&[], Unknown, "NoSources", "")]
    #[case::all_fine(&[("a", "True", "Up", "works", 1), ("b", "True", "Up", "works", 2)], True, "Up", "works")]
    #[case::fine_with_other_texts(&[("a", "True", "Up", "works", 1), ("b", "True", "On", "runs", 2)], True, "AllAsExpected", "")]
    #[case::fine_on_two_lines(&[("a", "True", "Up", "works\nwell", 1)], True, "Up", "works well")]
    #[case::one_issue(&[("a", "True", "Up", "", 1), ("b", "False", "Down", "is down", 2)], False, "Down", "b is down")]
    #[case::shared_reason(&[("b", "False", "Down", "one", 1), ("a", "False", "Down", "two", 2)], False, "Down", "a two; b one")]
    #[case::several_reasons(&[("a", "False", "Down", "", 1), ("b", "False", "Gone", "", 2)], False, "IssuesReported", "a Down; b Gone")]
    #[case::issues_come_first(
        &[("a", "Unknown", "Lost", "no news", 1), ("b", "False", "Down", "is down", 2)],
        False, "Down", "b is down; a no news"
    )]
    #[case::unknown(&[("a", "Unknown", "Lost", "no news", 1), ("b", "True", "Up", "", 2)], Unknown, "Lost", "a no news")]
    #[case::missing(&[("a", "", "", "", 1), ("b", "True", "Up", "", 2)], Unknown, "NotReported", "a no T condition")]
    #[case::illegal_reason(&[("a", "False", "not so good", "", 1)], False, "NotSoGood", "a not so good")]
    fn by_default(
        #[case] rows: &[Row],
        #[case] status: ConditionStatus,
        #[case] reason: &str,
        #[case] message: &str,
    ) {
        assert_eq!(merged(&Policy::new("T"), rows), (status, reason.to_owned(), message.to_owned()));
    }

    /// One object in many clusters, where Unknown counts as an issue.
    #[rstest]
    #[case::agreed(&[("east", "True", "", "All valid", 1), ("west", "True", "X", "All valid", 1)], True, "AllInstances", "All valid")]
    #[case::bad(
        &[("c1", "False", "", "certificate is expired", 1), ("c2", "True", "", "", 1), ("c3", "Unknown", "Lost", "", 1), ("c4", "", "", "", 1)],
        False, "SomeInstances", "c1 certificate is expired; c3 Lost; c4 no T condition"
    )]
    fn over_clusters(
        #[case] rows: &[Row],
        #[case] status: ConditionStatus,
        #[case] reason: &str,
        #[case] message: &str,
    ) {
        let reasons = Reasons {
            issue: "SomeInstances".into(),
            unknown: "SomeInstances".into(),
            fine: "AllInstances".into(),
        };
        let policy = Policy { unknown: Class::Issue, choice: Choice::Fixed, reasons, ..Policy::new("T") };
        assert_eq!(merged(&policy, rows), (status, reason.to_owned(), message.to_owned()));
    }

    #[rstest]
    #[case::latest_issue(&[("a", "True", "Old", "", 1), ("b", "True", "New", "", 2), ("c", "False", "Fine", "", 9)], True, "New")]
    #[case::ties_by_name(&[("b", "True", "B", "", 2), ("a", "True", "A", "", 2)], True, "A")]
    #[case::all_fine(&[("a", "False", "Old", "", 1), ("b", "False", "New", "", 2)], False, "New")]
    #[case::missing_is_the_oldest(&[("a", "", "", "", 1), ("b", "Unknown", "New", "", 2)], Unknown, "New")]
    #[case::only_missing(&[("a", "", "", "", 1), ("b", "False", "New", "", 2)], Unknown, "InstallInvalid")]
    fn most_recent(#[case] rows: &[Row], #[case] status: ConditionStatus, #[case] reason: &str) {
        let policy = Policy {
            polarity: Polarity::Negative,
            choice: Choice::Recent,
            missing_reason: "InstallInvalid".into(),
            ..Policy::new("T")
        };
        let (found, why, _) = merged(&policy, rows);
        assert_eq!((found, why.as_str()), (status, reason));
    }

    #[test]
    fn the_texts_of_the_policy_are_used() {
        let policy = Policy {
            empty: Statement::new(Unknown, "NoComponents", "nothing is selected"),
            when_fine: WhenFine::Text("All components ready".into()),
            budget: 19,
            ..Policy::new("T")
        };
        assert_eq!(merged(&policy, &[]), (Unknown, "NoComponents".into(), "nothing is selected".into()));
        let fine = merged(&policy, &[("a", "True", "", "what a source says", 1)]);
        assert_eq!(fine, (True, "AllAsExpected".into(), "All components ready".into()));
        let bad =
            merged(&policy, &[("a", "False", "Down", "is down", 1), ("b", "False", "Down", "is down", 1)]);
        assert_eq!(bad, (False, "Down".into(), "a is…; and 1 more".into()));
    }

    #[test]
    fn a_source_without_a_reason_leaves_it_to_the_policy() {
        let policy = Policy { choice: Choice::Recent, ..Policy::new("T") };
        let mut tally = Tally::new();
        tally.set("a", Class::Issue, None);
        let statement = merge(&policy, &tally, &Consensus::new(), |name| SourceText {
            name: (*name).into(),
            reason: " ".into(),
            message: "".into(),
        });
        assert_eq!(statement, Statement::new(False, "IssuesReported", "a"));
    }

    /// While an issue is held back, the message names it, but it does not decide.
    #[test]
    fn another_class_can_decide() {
        let policy = Policy::new("T");
        let mut group = Group::default();
        group.set("a", contribution(&policy, ("a", "False", "Down", "is down", 1)));
        let source_text = |name: &&'static str| {
            let contribution = &group.sources[*name];
            SourceText {
                name: (*name).into(),
                reason: (&*contribution.reason).into(),
                message: (&*contribution.message).into(),
            }
        };
        let unknown = merge_as(Some(Class::Unknown), &policy, &group.tally, source_text);
        assert_eq!(unknown, Statement::new(Unknown, "UnknownReported", "a is down"));
        let fine = merge_as(Some(Class::Fine), &policy, &group.tally, source_text);
        assert_eq!(fine, Statement::new(True, "AllAsExpected", ""));
    }

    fn row() -> impl Strategy<Value = Row> {
        let pick = |texts: &[&'static str]| prop::sample::select(texts.to_vec());
        (
            pick(&["a", "b", "c", "d"]),
            pick(&["True", "False", "Unknown", ""]),
            pick(&["Up", "Down", ""]),
            pick(&["words", "others", ""]),
            0_i64..3,
        )
    }

    /// At most one row per name.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        prop::collection::vec(row(), 0..6).prop_map(|rows| {
            rows.into_iter().map(|row| (row.0, row)).collect::<BTreeMap<_, _>>().into_values().collect()
        })
    }

    fn policy() -> impl Strategy<Value = Policy> {
        let choice = prop::sample::select(vec![Choice::Common, Choice::Fixed, Choice::Recent]);
        let unknown = prop::sample::select(Class::ALL.to_vec());
        (choice, unknown, 10_usize..60).prop_map(|(choice, unknown, budget)| Policy {
            unknown,
            choice,
            budget,
            ..Policy::new("T")
        })
    }

    proptest! {
        #[test]
        fn the_order_of_changes_does_not_matter(
            policy in policy(),
            (rows, shuffled) in rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
            detour in prop::collection::vec((any::<bool>(), row()), 0..10),
        ) {
            let mut group = Group::default();
            for (come, row) in detour {
                if come { group.set(row.0, contribution(&policy, row)) } else { group.remove(row.0) }
            }
            for name in ["a", "b", "c", "d"] {
                if rows.iter().all(|row| row.0 != name) {
                    group.remove(name);
                }
            }
            for row in &shuffled {
                group.set(row.0, contribution(&policy, *row));
            }
            let statement = group.merge(&policy);
            let (status, reason, message) = merged(&policy, &rows);
            prop_assert_eq!((statement.status, &*statement.reason, &*statement.message), (status, &*reason, &*message));
            prop_assert!(message.len() <= policy.budget);
        }
    }
}
