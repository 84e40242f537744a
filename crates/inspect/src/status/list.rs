//! Many groups: a line each, the worst first.

use std::fmt::Write as _;

use bellwether_engine::{Condition, Detail, Group, Member, condition_types, ready};
use bellwether_health::Source;
use bellwether_model::{ConditionStatus, State};
use bellwether_terminal::{
    Cell, MANY, ROOM_FOR_BARS, Screen, Table, WORST_FIRST, bar, how_long, in_words, percent, printable, rank,
    sign, style, wrap,
};
use jiff::Timestamp;

use super::short_title;
use crate::{
    observe::Flags,
    owner_tree::{in_full, is_bad},
};

/// On narrower screens, how many are ready has to say how far along they are.
const ROOM_FOR_PERCENT: usize = 70;

/// Groups for a person.
pub struct List {
    pub groups: Vec<Group>,
    pub wide: bool,
    /// Whether what is ready has rows too, however much it is.
    pub all: bool,
    pub now: Timestamp,
    /// How to look at the same place once more.
    pub flags: Flags,
}

impl List {
    /// The table, and at its end what it comes to.
    pub fn print(mut self, screen: Screen, whereabouts: &str) -> String {
        if self.groups.is_empty() {
            return format!(
                "No Applications {whereabouts}.\nMake one of objects that exist: bellwether adopt NAME KIND/NAME…\n"
            );
        }
        // The worst first, then those that have been so for the longest.
        self.groups.sort_by_key(|group| (rank(Some(group.state)), group.since.unwrap_or(Timestamp::MAX)));
        let summary = wrap(&self.summary(), screen.width.unwrap_or(usize::MAX)).join("\n") + "\n";
        if self.hides() {
            self.groups.retain(|group| group.state != State::Ready);
        }
        let table = self.table(screen);
        if table.is_empty() { summary } else { format!("{}\n{summary}", table.print(screen)) }
    }

    fn hides(&self) -> bool {
        !self.all && self.groups.iter().filter(|group| group.state == State::Ready).count() > MANY
    }

    fn table(&self, screen: Screen) -> Table {
        let bars = screen.width.is_none_or(|width| width >= ROOM_FOR_BARS);
        let mut headers = vec!["NAMESPACE", "NAME", "API"];
        headers.extend(self.wide.then_some(["TYPE", "VERSION"]).into_iter().flatten());
        headers.extend(["STATE", "FOR", "READY", if bars { "PROGRESS" } else { "DONE" }]);
        headers.extend(self.wide.then_some("REASON"));
        headers.push("WHY");
        let mut table = Table::new(headers);
        // Where all are of the same API, nobody needs to be told.
        let is_mixed = self
            .groups
            .iter()
            .any(|group| Some(&group.kind.group) != self.groups.first().map(|first| &first.kind.group));
        for group in &self.groups {
            let text = |text: &str| Cell::from(printable(text).into_owned());
            let state = Some(group.state);
            let mut cells = vec![
                text(&group.name.namespace),
                text(&short_title(group)),
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
            cells.push(match screen.width {
                None | Some(ROOM_FOR_BARS..) => bar(progress).into(),
                Some(ROOM_FOR_PERCENT..) => percent(progress).into(),
                Some(_) => Cell::default(),
            });
            if self.wide {
                cells.push(text(group.deciding().map_or("", |says| &says.reason)));
            }
            cells.push(why(group).into());
            table.push(cells, Vec::new());
        }
        table
    }

    fn summary(&self) -> String {
        let mut parts: Vec<_> = WORST_FIRST
            .iter()
            .flatten()
            .filter_map(|state| {
                let count = self.groups.iter().filter(|group| group.state == *state).count();
                (count > 0).then(|| format!("{count} {}", in_words(state.name())))
            })
            .collect();
        if self.hides()
            && let Some(ready) = parts.last_mut()
        {
            ready.push_str(" (--all lists them)");
        }
        let mut summary = format!("{}.", parts.join(", "));
        // The components of Rollups are judged by their operators, whatever we know of their kinds.
        let objects =
            || self.groups.iter().filter(|group| !group.is_rollup()).flat_map(|group| &group.members);
        let mut without = objects().filter(|member| has_no_rule(member));
        if let Some(first) = without.next() {
            let (all, without) = (objects().count(), 1 + without.count());
            let have = if without == 1 { "has" } else { "have" };
            let _ = write!(
                summary,
                " {} of {all} objects judged; {without} {have} no rule (bellwether explain {}/{} -n {}{}).",
                all - without,
                printable(&first.kind.to_string()),
                printable(&first.name.name),
                printable(&first.name.namespace),
                printable(&self.flags.own),
            );
        }
        summary
    }
}

fn has_no_rule(member: &Member) -> bool {
    member.state == State::Unknown && member.rule.as_ref().is_some_and(|rule| rule.source == Source::None)
}

/// Why it is as it is: the first cause in words.
pub fn why(group: &Group) -> String {
    match group.state {
        State::Ready => return but(group),
        State::Terminating => return "it is being deleted".to_owned(),
        _ => {}
    }
    // An Application of app.k8s.io says in one condition that another one knows why.
    let is_error = |condition: &&Condition| {
        condition.type_ == condition_types::ERROR && condition.statement.status == ConditionStatus::True
    };
    if let Some(error) = group.conditions.iter().find(is_error) {
        return printable(&error.statement.message).into_owned();
    }
    let mut bad = group.members.iter().filter(|member| is_bad(member.state));
    let Some(first) = bad.next().filter(|member| member.state == group.state) else {
        return printable(group.deciding().map_or("", |says| &says.message)).into_owned();
    };
    because_of(group, first, bad.count())
}

/// What somebody should know of a group that is ready all the same. Only of Rollups, there may be such a thing.
fn but(group: &Group) -> String {
    if let Detail::Application { .. } = group.detail {
        return String::new();
    }
    if let Some(Condition { type_, statement: says, held_until, .. }) = group.remarkable().next() {
        let is = if held_until.is_some() { String::new() } else { format!("{type_} is {:?}: ", says.status) };
        return printable(&format!("{is}{}", says.message)).into_owned();
    }
    let mut bad = group.members.iter().filter(|member| is_bad(member.state));
    bad.next().map(|first| because_of(group, first, bad.count())).unwrap_or_default()
}

/// A member, what is said of it, and how many more there are.
fn because_of(group: &Group, first: &Member, more: usize) -> String {
    let what = in_full(&first.kind, &first.name, first.stands_for, &group.name.namespace);
    let mut why = format!("{what}: {}", first.message);
    if more > 0 {
        let _ = write!(why, " (and {more} more)");
    }
    printable(&why).into_owned()
}
