//! How a group is at this moment, for whoever asks: a person at a terminal, a page, a program.

use bellwether_api::{DependencyStatus, ObjectCounts, RollupHealth};
use bellwether_conditions::Statement;
use bellwether_health::{Rule, Verdict};
use bellwether_model::{ConditionStatus, State};
use jiff::Timestamp;

use crate::{
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING, RESOLVED, UPGRADEABLE},
    event::Unreadable,
    id::{Kind, Name},
};

/// Objects that belong together, and how they are as one.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is: an Application, a Rollup.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// What kind of application it is, as its user calls it.
    pub type_: Option<String>,
    /// The version of it, as its user calls it.
    pub version: Option<String>,
    /// How it is: as its worst member that keeps it from being ready.
    pub state: State,
    /// Since when, as far as anybody knows.
    pub since: Option<Timestamp>,
    /// The shortest answer, which only a Rollup has.
    pub health: Option<RollupHealth>,
    /// What its conditions mean together, where that needs a sentence: a Rollup's.
    pub meaning: Option<String>,
    /// Its conditions; of an Application, Ready before all others; of a Rollup, Available.
    pub conditions: Vec<Condition>,
    /// How many members are in which state.
    pub counts: ObjectCounts,
    /// How far along the members are on average.
    pub progress: Option<u8>,
    /// The members, the worst first, then by kind and name. All of them.
    pub members: Vec<Member>,
    /// The Applications that it needs.
    pub dependencies: Vec<DependencyStatus>,
}

/// A condition of a group.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Its type.
    pub kind: &'static str,
    /// What it says.
    pub says: Statement,
    /// Since when it has its status, as far as anybody knows.
    pub since: Option<Timestamp>,
    /// If there is a turn for the worse that it does not tell yet, because that has to last: until when. What it would tell
    /// is in its message.
    pub held_until: Option<Timestamp>,
}

/// How a group is as one, without its members: however many they are, it costs no more than its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// Whether all is well with it.
    pub healthy: bool,
    /// How it is: as its worst member that keeps it from being well.
    pub state: State,
    /// Since when it is well or not, as far as anybody knows.
    pub since: Option<Timestamp>,
    /// Its conditions with what they say; of an Application, Ready before all others.
    pub conditions: Vec<(&'static str, Statement)>,
    /// What they mean together, in a sentence, where the kind has one for it.
    pub meaning: Option<String>,
}

/// What can be said of a group that somebody names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Insight {
    /// It is there.
    Known(Box<Summary>),
    /// There is no such group.
    Absent,
    /// Nobody can tell: the cluster has been silent for too long.
    Silent {
        /// Since when.
        since: Timestamp,
    },
    /// Nobody can tell: these kinds have not been listed yet, or cannot be read.
    Unknown(Vec<(Kind, Option<Unreadable>)>),
}

impl Insight {
    /// Nobody can tell before these kinds have been listed.
    pub(crate) fn waits_for(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self::Unknown(kinds.into_iter().map(|kind| (kind, None)).collect())
    }
}

/// A member of a group, or what should be one and is not there.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its kind.
    pub kind: Kind,
    /// Its name, or what it has instead.
    pub name: Name,
    /// What there should be.
    pub stands_for: StandsFor,
    /// Its identity, if it is there.
    pub uid: Option<Box<str>>,
    /// How it is.
    pub state: State,
    /// How far along.
    pub progress: u8,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a line.
    pub message: String,
    /// Since when, as far as anybody knows.
    pub since: Option<Timestamp>,
    /// The rule that judged it, if it is there.
    pub rule: Option<Rule>,
    /// What its operator says of it, if it is a component of a Rollup.
    pub operator: Option<OperatorSays>,
}

/// What is meant by a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// An object, whether it is there or not.
    Object,
    /// The objects of a selector that matches nothing or cannot be looked for. Its name is the text of the selector.
    Selector,
    /// Nobody can tell, because nobody understands what is written. Its name is the place in the spec.
    Entry,
}

/// What an operator says of a component in its conditions, or what has to be assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorSays {
    /// It works.
    pub available: ConditionStatus,
    /// It is being changed.
    pub progressing: ConditionStatus,
    /// It does not work completely.
    pub degraded: ConditionStatus,
    /// It may be upgraded, if anybody wants to know and it says anything of that.
    pub upgradeable: Option<ConditionStatus>,
}

/// What a group has to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The kind of the group.
    pub kind: Kind,
    /// Its name.
    pub group: Name,
    /// What it is to the object.
    pub relation: Relation,
}

/// What a group is to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It counts and owns it.
    Owner,
    /// It counts it, and will own it.
    OwnerToBe,
    /// It counts it.
    Counts,
    /// Its selector matches, and its spec does not speak of the kind.
    OtherKinds,
    /// Its selector does not match.
    NotSelected,
    /// Its selector matches, and the object is somebody else's by its annotation, or is not handed over by one, or is the
    /// Application itself.
    NotAMember,
    /// It is a Rollup that names it as a component.
    Names,
    /// It is a Rollup that selects it as a component.
    Selects,
}

impl Summary {
    /// What a condition of it says, if there is one of that type.
    pub fn condition(&self, kind: &str) -> Option<&Statement> {
        self.conditions.iter().find(|(other, _)| *other == kind).map(|(_, says)| says)
    }
}

/// The conditions of a Rollup from the one that decides first on, each with its status as long as all is well.
const OF_ROLLUPS: [(&str, ConditionStatus); 5] = [
    (AVAILABLE, ConditionStatus::True),
    (DEGRADED, ConditionStatus::False),
    (PROGRESSING, ConditionStatus::False),
    (UPGRADEABLE, ConditionStatus::True),
    (RESOLVED, ConditionStatus::True),
];

impl Group {
    /// Whether it is a Rollup.
    pub fn is_rollup(&self) -> bool {
        self.kind.is_rollup()
    }

    /// The verdict on its object, as the group was evaluated and not as its stored status says.
    pub fn verdict(&self, stored: &Verdict) -> Option<Verdict> {
        let says = self.deciding()?;
        Some(Verdict {
            state: self.state,
            progress: self.progress.unwrap_or_default(),
            reason: says.reason.to_string().into(),
            message: says.message.to_string().into(),
            since: self.since,
            later: None,
            ..stored.clone()
        })
    }

    /// What the condition says that decides: of an Application Ready, of a Rollup the first that is not as it should be.
    pub fn deciding(&self) -> Option<&Statement> {
        // Whether it may be upgraded says nothing of how it is.
        let mut bad = self
            .of_rollup()
            .filter(|(condition, fine)| !fine && condition.kind != UPGRADEABLE)
            .map(|(bad, _)| bad);
        bad.next().or(self.conditions.first()).map(|condition| &condition.says)
    }

    /// The conditions of a Rollup that somebody needs to be told of, those that decide first: what is not as it should be,
    /// what would not be if nothing were held back, and that nobody is at work where nothing works. Of anything else, none.
    pub fn remarkable(&self) -> impl Iterator<Item = &Condition> {
        let is = |kind: &str, status: ConditionStatus| {
            self.conditions.iter().any(|condition| condition.kind == kind && condition.says.status == status)
        };
        let is_broken = is(AVAILABLE, ConditionStatus::False) && is(DEGRADED, ConditionStatus::True);
        let is_remarkable = move |(condition, fine): &(&Condition, bool)| {
            !fine || condition.held_until.is_some() || is_broken && condition.kind == PROGRESSING
        };
        self.of_rollup().filter(is_remarkable).map(|(condition, _)| condition)
    }

    /// The first of those whose turn for the worse is held back.
    pub fn held_back(&self) -> Option<&Condition> {
        self.remarkable().find(|condition| condition.held_until.is_some())
    }

    /// The conditions of a Rollup in their order, and whether each is as it should be. Of anything else, none.
    fn of_rollup(&self) -> impl Iterator<Item = (&Condition, bool)> {
        let order = if self.is_rollup() { &OF_ROLLUPS[..] } else { &[] };
        order.iter().filter_map(|(kind, fine)| {
            let condition = self.conditions.iter().find(|condition| condition.kind == *kind)?;
            Some((condition, condition.says.status == *fine))
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{
        ConditionStatus::{False, True, Unknown},
        *,
    };

    fn group(kind: Kind, conditions: &[(&'static str, ConditionStatus)]) -> Group {
        let condition = |(kind, status): &(&'static str, ConditionStatus)| Condition {
            kind,
            says: Statement::new(*status, *kind, ""),
            since: None,
            held_until: None,
        };
        Group {
            kind,
            name: Name::new("", "a"),
            type_: None,
            version: None,
            state: State::Unknown,
            since: None,
            health: None,
            meaning: None,
            conditions: conditions.iter().map(condition).collect(),
            counts: ObjectCounts::default(),
            progress: None,
            members: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    #[rstest]
    #[case::all_fine([True, False, False, True], "Available")]
    #[case::not_available([False, True, True, False], "Available")]
    #[case::nobody_knows([Unknown, False, True, True], "Available")]
    #[case::degraded([True, True, True, True], "Degraded")]
    #[case::progressing([True, True, False, False], "Progressing")]
    #[case::not_resolved([True, False, False, False], "Resolved")]
    fn what_decides_of_a_rollup(#[case] statuses: [ConditionStatus; 4], #[case] deciding: &str) {
        let [available, progressing, degraded, resolved] = statuses;
        let rollup = rollup([available, progressing, degraded, False, resolved]);
        assert_eq!(rollup.deciding().map(|says| &*says.reason), Some(deciding));
    }

    fn rollup([available, progressing, degraded, upgradeable, resolved]: [ConditionStatus; 5]) -> Group {
        let conditions = [
            ("Available", available),
            ("Progressing", progressing),
            ("Degraded", degraded),
            ("Upgradeable", upgradeable),
            ("Resolved", resolved),
        ];
        group(Kind::own("Rollup"), &conditions)
    }

    #[rstest]
    #[case::all_fine([True, False, False, True, True], &[])]
    #[case::on_its_way([False, True, True, True, True], &["Available", "Degraded", "Progressing"])]
    #[case::needs_a_human([False, False, True, True, True], &["Available", "Degraded", "Progressing"])]
    #[case::at_rest([True, False, True, True, True], &["Degraded"])]
    #[case::not_to_be_upgraded([True, False, False, False, True], &["Upgradeable"])]
    #[case::not_resolved([True, False, False, Unknown, False], &["Upgradeable", "Resolved"])]
    fn what_is_told_of_a_rollup(#[case] statuses: [ConditionStatus; 5], #[case] told: &[&str]) {
        let rollup = rollup(statuses);
        assert_eq!(rollup.remarkable().map(|condition| condition.kind).collect::<Vec<_>>(), told);
    }

    #[test]
    fn what_is_held_back_is_told_and_does_not_decide() {
        let mut rollup = rollup([True, True, False, True, True]);
        for condition in rollup.conditions.iter_mut().filter(|condition| condition.kind == "Degraded") {
            condition.held_until = Some(Timestamp::UNIX_EPOCH);
        }
        assert_eq!(rollup.held_back().map(|condition| condition.kind), Some("Degraded"));
        assert_eq!(rollup.deciding().map(|says| &*says.reason), Some("Progressing"));
    }

    #[test]
    fn what_decides_of_an_application() {
        let conditions = [("Ready", True), ("Resolved", False), ("Degraded", True)];
        let application = group(Kind::own("Application"), &conditions);
        assert_eq!(application.deciding().map(|says| &*says.reason), Some("Ready"));
    }
}
