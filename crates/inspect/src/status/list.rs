//! The list of groups: a row each, the worst first.

use std::{collections::BTreeSet, fmt::Write as _};

use bellwether_engine::{Condition, Detail, Group, Member, condition_types, ready};
use bellwether_health::Source;
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{
    Cell, MANY, ROOM_FOR_BARS, Screen, Table, bar, columns, how_long, printable, rank, sign, style, wrap,
};
use jiff::Timestamp;

use super::{clusters, counts, next_commands, single::namespace_flag};
use crate::{
    observe::Flags,
    owner_tree::{ObjectNames, is_bad, reason_and_message},
    shell::program,
};

pub struct List<'p> {
    pub groups: Vec<Group>,
    pub wide: bool,
    /// List Ready groups even if there are many.
    pub all: bool,
    pub now: Timestamp,
    pub flags: Flags,
    /// The type that the user filters by.
    pub type_: Option<&'p str>,
    /// `in namespace shop`
    pub place: &'p str,
    /// BindingPolicies are listed, too.
    pub has_clusters: bool,
}

impl List<'_> {
    /// A table and a summary.
    pub fn print(mut self, screen: Screen) -> String {
        if self.groups.is_empty() {
            // Rollups have no type.
            let groups = match self.type_ {
                Some(type_) => format!("Applications of type {type_}"),
                None if self.has_clusters => "Applications, Rollups or BindingPolicies".to_owned(),
                None => "Applications or Rollups".to_owned(),
            };
            let found = printable(&format!("No {groups} found {}.", self.place)).into_owned();
            return format!(
                "{found}\nCreate one from existing objects: {} adopt NAME KIND/NAME…\n",
                program()
            );
        }
        // The worst first, then the longest in that state.
        self.groups.sort_by_key(|group| (rank(Some(group.state)), group.since.unwrap_or(Timestamp::MAX)));
        let summary = self.summary(screen);
        if self.hides_ready() {
            self.groups.retain(|group| group.state != State::Ready);
        }
        let table = self.table(screen);
        if table.is_empty() {
            return summary;
        }
        let silent = clusters::silent(&self.groups, self.now, screen);
        let gap = if silent.is_empty() { "" } else { "\n" };
        format!("{}{gap}{silent}\n{summary}", table.print(screen))
    }

    fn hides_ready(&self) -> bool {
        !self.all && self.groups.iter().filter(|group| group.state == State::Ready).count() > MANY
    }

    fn table(&self, screen: Screen) -> Table {
        let mut headers = vec!["NAMESPACE", "NAME", "APIGROUP"];
        headers.extend(self.wide.then_some(["TYPE", "VERSION"]).into_iter().flatten());
        headers.extend(["STATE", "FOR", "READY", "PROGRESS", "CLUSTERS"]);
        headers.extend(self.wide.then_some("REASON"));
        headers.push("WHY");
        let mut table = Table::new(headers);
        let is_mixed = self
            .groups
            .iter()
            .any(|group| Some(&group.kind.group) != self.groups.first().map(|first| &first.kind.group));
        for group in &self.groups {
            let text = |text: &str| Cell::from(printable(text).into_owned());
            let state = Some(group.state);
            let mut cells = vec![
                text(&group.name.namespace),
                text(&row_name(group)),
                text(if is_mixed { &group.kind.group } else { "" }),
            ];
            if self.wide {
                let (type_, version) = match &group.detail {
                    Detail::Application { type_, version, .. } => (type_.as_deref(), version.as_deref()),
                    Detail::Rollup { .. } | Detail::BindingPolicy { .. } => (None, None),
                };
                cells.push(text(type_.unwrap_or_default()));
                cells.push(text(version.unwrap_or_default()));
            }
            cells.push(Cell::styled(format!("{} {}", sign(state), group.state.name()), style(state)));
            cells.push(group.since.map(|since| how_long(since, self.now)).unwrap_or_default().into());
            cells.push(ready(group).into());
            let progress = group.progress.filter(|_| group.state != State::Unknown);
            // On a narrow screen, the reasons need the room. A table leaves out a column without content.
            let has_room = screen.width.is_none_or(|width| width >= ROOM_FOR_BARS);
            cells.push(if has_room { bar(progress).into() } else { Cell::default() });
            cells.push(clusters::fraction(group).into());
            if self.wide {
                cells.push(text(group.deciding_condition().map_or("", |statement| &statement.reason)));
            }
            let reason = if self.wide { group.deciding_condition().map(|it| &*it.reason) } else { None };
            cells.push(Why::of(group).cell(reason));
            table.push(cells, Vec::new());
        }
        table
    }

    fn summary(&self, screen: Screen) -> String {
        let states = counts(self.groups.iter().map(|group| group.state), |_| "");
        // Ready is the last state.
        let hint = if self.hides_ready() { " (use --all to list them)" } else { "" };
        let mut summary = format!("{states}{hint}.");
        // No rule assesses the components of Rollups: their operators report conditions.
        let members =
            || self.groups.iter().filter(|group| !group.is_rollup()).flat_map(|group| &group.members);
        let without_rule: Vec<_> = members().filter(|member| has_no_rule(member)).collect();
        let mut next = String::new();
        if let Some(first) = without_rule.first() {
            let (all, without) = (members().count(), without_rule.len());
            let kinds: BTreeSet<_> = without_rule.iter().map(|member| member.kind.to_string()).collect();
            let kinds: Vec<_> = kinds.into_iter().collect();
            let _ = write!(
                summary,
                " {} of {all} members assessed; no rule for {without} ({}).",
                all - without,
                printable(&kinds.join(", "))
            );
            let object = format!("{}/{}", first.kind.to_string().to_lowercase(), first.name.name);
            let namespace = namespace_flag(&first.name);
            let command = format!("{} explain {object}{namespace}{}", program(), self.flags.own);
            next = next_commands("", &[command]);
        }
        format!("{}\n{next}", wrap(&summary, screen.width.unwrap_or(usize::MAX)).join("\n"))
    }
}

/// In the column beside the namespace. Rollups and BindingPolicies are cluster-scoped, and `rollup/name` is what
/// `bellwether status` takes.
fn row_name(group: &Group) -> String {
    let name = &group.name.name;
    match group.detail {
        Detail::Application { .. } => name.to_string(),
        Detail::Rollup { .. } => format!("rollup/{name}"),
        Detail::BindingPolicy { .. } => format!("policy/{name}"),
    }
}

fn has_no_rule(member: &Member) -> bool {
    member.state == State::Unknown && member.rule.as_ref().is_some_and(|rule| rule.source == Source::None)
}

/// The first cause of the state of a group, as `Kind/name: Reason: message (and 2 more)`.
pub fn why(group: &Group) -> String {
    Why::of(group).text()
}

/// The first cause of the state of a group.
#[derive(Debug)]
pub(super) enum Why<'g> {
    /// A sentence that names the object, if it is about one.
    Sentence(String),
    Member {
        /// `Kind/name`
        name: String,
        member: &'g Member,
        /// How many more members are not ready.
        more: usize,
    },
}

impl<'g> Why<'g> {
    pub(super) fn of(group: &'g Group) -> Self {
        match group.state {
            State::Ready => return Self::of_ready(group),
            _ if group.deleting => return Self::Sentence("being deleted".to_owned()),
            _ => {}
        }
        // In app.k8s.io, the message of Ready only refers to Error.
        let is_error = |condition: &&Condition| {
            condition.type_ == condition_types::ERROR && condition.statement.status == ConditionStatus::True
        };
        if let Some(error) = group.conditions.iter().find(is_error) {
            return Self::Sentence(error.statement.message.to_string());
        }
        if let Some(why) = clusters::why_empty(group) {
            return Self::Sentence(why.to_owned());
        }
        let deciding = || group.deciding_condition().map(|it| it.message.to_string()).unwrap_or_default();
        Self::first_bad(group, |first| first.state == group.state)
            .unwrap_or_else(|| Self::Sentence(deciding()))
    }

    /// A Rollup may be Ready while a degradation is held back or a component is not ready. Empty for other
    /// groups.
    fn of_ready(group: &'g Group) -> Self {
        if let Detail::Application { .. } | Detail::BindingPolicy { .. } = group.detail {
            return Self::Sentence(String::new());
        }
        if let Some(Condition { type_, statement, held_until, .. }) = group.notable_conditions().next() {
            let status = match held_until {
                Some(_) => String::new(),
                None => format!("{type_}={}: ", statement.status.name()),
            };
            return Self::Sentence(format!("{status}{}", statement.message));
        }
        Self::first_bad(group, |_| true).unwrap_or_else(|| Self::Sentence(String::new()))
    }

    /// The first member that is not ready, if it is the cause.
    fn first_bad(group: &'g Group, is_cause: impl Fn(&Member) -> bool) -> Option<Self> {
        let mut bad = group.members.iter().filter(|member| is_bad(member.state));
        let member = bad.next().filter(|first| is_cause(first))?;
        let name = ObjectNames::of_members(group).of_member(member);
        Some(Self::Member { name, member, more: bad.count() })
    }

    /// What it is about: without the numbers of a message, which change all the time.
    pub(super) fn topic(&self) -> String {
        match self {
            Self::Sentence(sentence) => sentence.replace(|character: char| character.is_ascii_digit(), ""),
            Self::Member { name, member, more } => format!("{name}: {}{}", member.reason, and_more(*more)),
        }
    }

    pub(super) fn text(&self) -> String {
        let text = match self {
            Self::Sentence(sentence) => sentence.clone(),
            Self::Member { name, member, more } => {
                let Member { state, reason, message, .. } = member;
                format!("{name}: {}{}", reason_and_message(*state, reason, message), and_more(*more))
            }
        };
        printable(&text).into_owned()
    }

    /// `reason` is in another column. On a narrow screen, the cause is before the object, as in
    /// `ProgressDeadlineExceeded (Deployment/web)`.
    fn cell(&self, reason: Option<&str>) -> Cell {
        let Self::Member { name, member, more } = self else { return self.text().into() };
        let Member { state, reason: own, message, .. } = member;
        let why = match reason {
            Some(reason) if reason == own && !message.is_empty() => message.as_str().into(),
            _ => reason_and_message(*state, own, message),
        };
        let is_long = *state == State::Failed || columns(message) > MAX_SHORT;
        let short = if is_long && !own.is_empty() { own } else { message };
        let printable = |text: String| printable(&text).into_owned();
        Cell::message(
            printable(format!("{name}: {why}")),
            printable(format!("{short} ({name})")),
            and_more(*more),
        )
    }
}

/// Of a message, in columns. Where there is little room, the reason stands for a longer one.
const MAX_SHORT: usize = 24;

/// ` (and 2 more)`
fn and_more(count: usize) -> String {
    if count > 0 { format!(" (and {count} more)") } else { String::new() }
}
