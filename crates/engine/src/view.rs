//! How a group is at this moment, for whoever asks: a person at a terminal, a page, a program.

use bellwether_api::{DependencyStatus, ObjectCounts, RollupHealth};
use bellwether_conditions::Statement;
use bellwether_health::{Rule, Verdict};
use bellwether_model::{ConditionStatus, State};
use jiff::Timestamp;

use crate::{
    event::Unreadable,
    id::{GroupKind, NamespacedName},
};

/// Objects that belong together, and how they are as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What it is: an Application, a Rollup.
    pub kind: GroupKind,
    /// Its name.
    pub name: NamespacedName,
    /// How it is: as its worst member that keeps it from being ready.
    pub state: State,
    /// Since when, as far as anybody knows.
    pub since: Option<Timestamp>,
    /// Its conditions; of an Application, Ready before all others; of a Rollup, Available.
    pub conditions: Vec<Condition>,
    /// How many members are in which state.
    pub counts: ObjectCounts,
    /// How far along the members are on average.
    pub progress: Option<u8>,
    /// The members, the worst first, then by kind and name. All of them.
    pub members: Vec<Member>,
    /// What only groups of its kind have.
    pub detail: Detail,
}

/// What only groups of one kind have.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// Of an Application, in either API.
    Application {
        /// What kind of application it is, as its user calls it.
        type_: Option<String>,
        /// The version of it, as its user calls it.
        version: Option<String>,
        /// The Applications that it needs.
        dependencies: Vec<DependencyStatus>,
    },
    /// Of a Rollup.
    Rollup {
        /// The shortest answer.
        health: RollupHealth,
        /// What its conditions mean together, in a sentence.
        meaning: String,
    },
}

/// A condition of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Its type.
    pub type_: &'static str,
    /// What it says.
    pub statement: Statement,
    /// Since when it has its status, as far as anybody knows.
    pub since: Option<Timestamp>,
    /// If there is a turn for the worse that it does not tell yet, because that has to last: until when. What it would tell
    /// is in its message.
    pub held_until: Option<Timestamp>,
}

/// How a group is as one, without its members: however many they are, it costs no more than its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSummary {
    /// What it is.
    pub kind: GroupKind,
    /// Its name.
    pub name: NamespacedName,
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
pub enum GroupStatus {
    /// It is there.
    Known(Box<StatusSummary>),
    /// There is no such group.
    NotFound,
    /// Nobody can tell: the cluster has been silent for too long.
    Silent {
        /// Since when.
        since: Timestamp,
    },
    /// Nobody can tell: these kinds have not been listed yet, or cannot be read.
    Unknown(Vec<(GroupKind, Option<Unreadable>)>),
}

impl GroupStatus {
    /// Nobody can tell before these kinds have been listed.
    pub(crate) fn waiting_for(kinds: impl IntoIterator<Item = GroupKind>) -> Self {
        Self::Unknown(kinds.into_iter().map(|kind| (kind, None)).collect())
    }

    /// The group is not among those that are kept: there is none, unless its kind cannot be read.
    pub(crate) fn absent_or_unreadable(kind: &GroupKind, unreadable: Option<Unreadable>) -> Self {
        match unreadable {
            None | Some(Unreadable::NotServed) => Self::NotFound,
            unreadable => Self::Unknown(vec![(kind.clone(), unreadable)]),
        }
    }
}

/// A member of a group, or what should be one and is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its kind.
    pub kind: GroupKind,
    /// Its name, or what it has instead.
    pub name: NamespacedName,
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
    pub operator: Option<ReportedConditions>,
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
pub struct ReportedConditions {
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
    pub kind: GroupKind,
    /// Its name.
    pub group: NamespacedName,
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

impl StatusSummary {
    /// What a condition of it says, if there is one of that type.
    pub fn condition(&self, type_: &str) -> Option<&Statement> {
        self.conditions.iter().find(|(other, _)| *other == type_).map(|(_, statement)| statement)
    }
}

impl Group {
    /// Whether it is a Rollup.
    pub fn is_rollup(&self) -> bool {
        matches!(self.detail, Detail::Rollup { .. })
    }

    /// The Applications that it needs.
    pub fn dependencies(&self) -> &[DependencyStatus] {
        match &self.detail {
            Detail::Application { dependencies, .. } => dependencies,
            Detail::Rollup { .. } => &[],
        }
    }

    /// What its conditions mean together, where the kind has a sentence for it.
    pub fn meaning(&self) -> Option<&str> {
        match &self.detail {
            Detail::Application { .. } => None,
            Detail::Rollup { meaning, .. } => Some(meaning),
        }
    }

    /// The verdict on its object, as the group was evaluated and not as its stored status says.
    pub fn verdict(&self, stored: &Verdict) -> Option<Verdict> {
        let statement = self.deciding()?;
        Some(Verdict {
            state: self.state,
            progress: self.progress.unwrap_or_default(),
            reason: statement.reason.to_string().into(),
            message: statement.message.to_string().into(),
            since: self.since,
            later: None,
            ..stored.clone()
        })
    }
}
