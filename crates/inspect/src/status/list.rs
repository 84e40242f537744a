//! The list of groups: a row each, the worst first.

use std::{collections::BTreeSet, fmt::Write as _};

use bellwether_engine::{Condition, Detail, Group, Member, condition_types, ready};
use bellwether_health::Source;
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{
    Cell, MANY, ROOM_FOR_BARS, Screen, Table, WORST_FIRST, bar, how_long, in_words, printable, rank, sign,
    style, wrap,
};
use jiff::Timestamp;

use super::{next_commands, single::namespace_flag};
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
}

impl List<'_> {
    /// A table and a summary.
    pub fn print(mut self, screen: Screen) -> String {
        if self.groups.is_empty() {
            let of_type = self.type_.map(|type_| format!(" of type {type_}")).unwrap_or_default();
            let found = printable(&format!("No Applications{of_type} found {}.", self.place)).into_owned();
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
        if table.is_empty() { summary } else { format!("{}\n{summary}", table.print(screen)) }
    }

    fn hides_ready(&self) -> bool {
        !self.all && self.groups.iter().filter(|group| group.state == State::Ready).count() > MANY
    }

    fn table(&self, screen: Screen) -> Table {
        let mut headers = vec!["NAMESPACE", "NAME", "APIGROUP"];
        headers.extend(self.wide.then_some(["TYPE", "VERSION"]).into_iter().flatten());
        headers.extend(["STATE", "FOR", "READY", "PROGRESS"]);
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
                    Detail::Rollup { .. } => (None, None),
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
            if self.wide {
                cells.push(text(group.deciding_condition().map_or("", |statement| &statement.reason)));
            }
            cells.push(why(group).into());
            table.push(cells, Vec::new());
        }
        table
    }

    fn summary(&self, screen: Screen) -> String {
        let mut parts: Vec<_> = WORST_FIRST
            .iter()
            .flatten()
            .filter_map(|state| {
                let count = self.groups.iter().filter(|group| group.state == *state).count();
                (count > 0).then(|| format!("{count} {}", in_words(state.name())))
            })
            .collect();
        if self.hides_ready()
            && let Some(ready) = parts.last_mut()
        {
            ready.push_str(" (use --all to list them)");
        }
        let mut summary = format!("{}.", parts.join(", "));
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
                " {} of {all} objects assessed; no rule for {without} ({}).",
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

/// In the column beside the namespace. Rollups are cluster-scoped, and `rollup/name` is what `bellwether
/// status` takes.
fn row_name(group: &Group) -> String {
    let name = &group.name.name;
    if group.is_rollup() { format!("rollup/{name}") } else { name.to_string() }
}

fn has_no_rule(member: &Member) -> bool {
    member.state == State::Unknown && member.rule.as_ref().is_some_and(|rule| rule.source == Source::None)
}

/// The first cause of the state of a group, as `Kind/name: Reason: message`.
pub fn why(group: &Group) -> String {
    match group.state {
        State::Ready => return ready_with_remark(group),
        State::Terminating => return "being deleted".to_owned(),
        _ => {}
    }
    // In app.k8s.io, the message of Ready only refers to Error.
    let is_error = |condition: &&Condition| {
        condition.type_ == condition_types::ERROR && condition.statement.status == ConditionStatus::True
    };
    if let Some(error) = group.conditions.iter().find(is_error) {
        return printable(&error.statement.message).into_owned();
    }
    let mut bad = group.members.iter().filter(|member| is_bad(member.state));
    let Some(first) = bad.next().filter(|member| member.state == group.state) else {
        return printable(group.deciding_condition().map_or("", |statement| &statement.message)).into_owned();
    };
    member_and_more(group, first, bad.count())
}

/// A Rollup may be Ready while a degradation is held back or a component is not ready. Empty for
/// Applications.
fn ready_with_remark(group: &Group) -> String {
    if let Detail::Application { .. } = group.detail {
        return String::new();
    }
    if let Some(Condition { type_, statement, held_until, .. }) = group.notable_conditions().next() {
        let status = match held_until {
            Some(_) => String::new(),
            None => format!("{type_}={}: ", statement.status.name()),
        };
        return printable(&format!("{status}{}", statement.message)).into_owned();
    }
    let mut bad = group.members.iter().filter(|member| is_bad(member.state));
    bad.next().map(|first| member_and_more(group, first, bad.count())).unwrap_or_default()
}

fn member_and_more(group: &Group, first: &Member, more: usize) -> String {
    let name = ObjectNames::of_members(group).of_member(first);
    let mut why = format!("{name}: {}", reason_and_message(first.state, &first.reason, &first.message));
    if more > 0 {
        let _ = write!(why, " (and {more} more)");
    }
    printable(&why).into_owned()
}
