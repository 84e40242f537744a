//! All about one group: a sentence, the causes with their evidence, then the rest.

use std::fmt::Write as _;

use bellwether_api::DependencyStatus;
use bellwether_engine::{
    Condition, Detail, Group, Member, NamespacedName, ReportedConditions, StandsFor,
    condition_types::{ADOPTED, DEPENDENCY_CYCLE, ERROR, HEALTH_CHECK_VALID, RESOLVED},
    ready,
};
use bellwether_health::{Evidence, Source};
use bellwether_model::{ConditionStatus, State, Value};
use bellwether_terminal::{
    Cell, ROOM_FOR_BARS, Screen, Table, bar, columns, cut, first_items, how_long, printable, sign, style,
    wrap,
};
use jiff::Timestamp;

use super::{rollup, short_title, title};
use crate::{
    observe::Flags,
    owner_tree::{Cause, Node, causes, in_full, is_bad},
};

/// One group for a person.
pub struct SingleGroup<'g> {
    pub group: &'g Group,
    pub family: &'g [Node],
    /// Whether all members are listed.
    pub all: bool,
    pub wide: bool,
    pub now: Timestamp,
    /// How to look at the same place once more.
    pub flags: Flags,
}

/// So many causes a person can be expected to read.
const MOST_CAUSES: usize = 5;

/// So many fields show what a verdict rests on.
const MOST_FIELDS: usize = 3;

/// How far the lines of a cause are indented.
const INDENT: &str = "       ";

impl SingleGroup<'_> {
    /// The page. Whoever knows tells on which fields the verdict on an object rests.
    pub fn print(&self, screen: Screen, evidence: &dyn Fn(&Node) -> Vec<Evidence>) -> String {
        let mut text = headline(self.group, self.now, screen);
        text.push_str(&rollup::meaning(self.group, screen));
        text.push('\n');
        let because = rollup::because(self.group, self.wide, screen);
        if !because.is_empty() {
            let _ = writeln!(text, "{because}");
        }
        let causes = causes(self.family);
        text.push_str(&self.causes(&causes, MOST_CAUSES, screen, evidence));
        if causes.len() > MOST_CAUSES {
            let hint = if self.all { "" } else { " (--all lists all members)" };
            let _ = writeln!(text, "     and {} more{hint}", causes.len() - MOST_CAUSES);
        }
        if !causes.is_empty() {
            text.push('\n');
        }
        self.remarks(&mut text, screen);
        if self.all && !self.group.members.is_empty() {
            if !text.ends_with("\n\n") {
                text.push('\n');
            }
            text.push_str(&self.members(screen));
            if !causes.is_empty() {
                text.push('\n');
            }
        }
        self.next(&mut text, causes.first(), screen);
        text
    }

    /// The first so many of what is wrong, each with what it rests on.
    pub fn causes(
        &self,
        causes: &[Cause<'_>],
        most: usize,
        screen: Screen,
        evidence: &dyn Fn(&Node) -> Vec<Evidence>,
    ) -> String {
        let mut text = String::new();
        for (index, cause) in causes.iter().take(most).enumerate() {
            self.cause(&mut text, index + 1, cause, screen, evidence);
        }
        text
    }

    fn cause(
        &self,
        text: &mut String,
        number: usize,
        cause: &Cause<'_>,
        screen: Screen,
        evidence: &dyn Fn(&Node) -> Vec<Evidence>,
    ) {
        let node = cause.node;
        let more = if cause.more > 0 { format!(" (and {} more)", cause.more) } else { String::new() };
        let long = node.since.map(|since| format!(" for {}", how_long(since, self.now))).unwrap_or_default();
        let state = format!("{} {}", sign(Some(node.state)), node.state.name());
        let home = &self.group.name.namespace;
        let what = printable(&in_full(&node.kind, &node.name, node.stands_for, home)).into_owned();
        let (reason, mut message) =
            (printable(&node.reason).into_owned(), printable(&node.message).into_owned());
        let beside = 2 + columns(&state) + columns(&long);
        // Names may be longer than a screen is wide; the state must be seen all the same.
        let head = format!("  {number}  {what}{more}");
        let head =
            screen.width.map_or(head.clone(), |width| cut(&head, width.saturating_sub(beside)).into_owned());
        let room = screen.width.map_or(usize::MAX, |width| width.saturating_sub(columns(&head) + beside));
        let reason = if 2 + columns(&reason) <= room {
            format!("  {reason}")
        } else {
            message = format!("{reason}: {message}");
            String::new()
        };
        let _ = writeln!(text, "{head}  {}{long}{reason}", screen.paint(&state, style(Some(node.state))));
        for line in wrap(&message, screen.page() - INDENT.len()) {
            let _ = writeln!(text, "{INDENT}{line}");
        }
        let mut facts = Vec::new();
        if let Some(blocks) = cause.blocks {
            let what = in_full(&blocks.kind, &blocks.name, blocks.stands_for, home);
            facts.push(format!("blocks {what}: {}", blocks.message));
        }
        facts.extend(cause.blocks.unwrap_or(node).operator.map(rollup::operator));
        if let Some(rule) = &node.rule
            && rule.source != Source::None
        {
            facts.push(format!("rule {}/{}", format!("{:?}", rule.source).to_lowercase(), rule.id));
        }
        if !facts.is_empty() {
            line(text, &facts.join(" · "), screen);
        }
        for field in told(node, &evidence(node)) {
            line(text, &field, screen);
        }
    }

    /// What is to be said besides.
    fn remarks(&self, text: &mut String, screen: Screen) {
        let group = self.group;
        for Condition { type_, statement: says, .. } in &group.conditions {
            let is_remarkable = match *type_ {
                RESOLVED | HEALTH_CHECK_VALID | ADOPTED => says.status != ConditionStatus::True,
                DEPENDENCY_CYCLE | ERROR => says.status == ConditionStatus::True,
                _ => false,
            };
            if is_remarkable {
                let message =
                    if self.wide { says.message.as_ref().into() } else { first_items(&says.message) };
                let remark = format!("{type_} is {:?}: {message}", says.status);
                for line in wrap(&printable(&remark), screen.page() - 2) {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
        let fine = group.members.iter().filter(|member| !is_bad(member.state)).count();
        let mut remarks = Vec::new();
        if fine > 0 && fine < group.members.len() {
            let (members, are) = (members(group, fine), if fine == 1 { "is" } else { "are" });
            let hint = if self.all { "" } else { " (--all lists them)" };
            remarks.push(format!("{fine} {members} {are} fine{hint}."));
        } else if fine > 0 && !self.all && group.state == State::Ready {
            remarks.push(format!("{} ready (--all lists them).", ready(group)));
        }
        remarks.extend(group.dependencies().iter().map(needs));
        if !remarks.is_empty() {
            let _ = writeln!(text, "  {}", remarks.join(" "));
        }
    }

    fn members(&self, screen: Screen) -> String {
        let mut headers = match self.group.detail {
            Detail::Application { .. } => vec!["MEMBER", "STATE", "FOR", "PROGRESS"],
            // Components are judged by what their operators say, and nobody says how far along they are.
            Detail::Rollup { .. } => {
                vec!["COMPONENT", "STATE", "FOR", "AVAILABLE", "PROGRESSING", "DEGRADED", "UPGRADEABLE"]
            }
        };
        headers.extend(self.wide.then_some(["REASON", "RULE"]).into_iter().flatten());
        headers.push("WHY");
        let mut table = Table::new(headers);
        for member in &self.group.members {
            table.push(self.member(member, screen), Vec::new());
        }
        table.print(screen)
    }

    fn member(&self, member: &Member, screen: Screen) -> Vec<Cell> {
        let state = Some(member.state);
        let text = |text: &str| Cell::from(printable(text).into_owned());
        let mut cells = vec![
            text(&match member.operator {
                Some(_) => in_full(&member.kind, &member.name, member.stands_for, ""),
                None => format!("{}/{}", member.kind.kind, member.name.name),
            }),
            Cell::styled(format!("{} {}", sign(state), member.state.name()), style(state)),
            member.since.map(|since| how_long(since, self.now)).unwrap_or_default().into(),
        ];
        if let Some(ReportedConditions { available, progressing, degraded, upgradeable }) = member.operator {
            // A narrow screen needs its room for the reasons: a column without anything in it is left out.
            let has_room = screen.width.is_none_or(|width| width >= ROOM_FOR_BARS);
            let statuses = [Some(available), Some(progressing), Some(degraded), upgradeable];
            let statuses = statuses.map(|status| status.filter(|_| has_room));
            cells.extend(statuses.map(|status| text(status.map_or("", ConditionStatus::name))));
        } else {
            let progress = Some(member.progress).filter(|_| member.state != State::Unknown);
            cells.push(bar(progress).into());
        }
        if self.wide {
            cells.push(text(&member.reason));
            let rule = member.rule.as_ref();
            let rule =
                rule.map(|rule| format!("{}/{}", format!("{:?}", rule.source).to_lowercase(), rule.id));
            cells.push(text(&rule.unwrap_or_default()));
        }
        cells.push(text(&member.message));
        cells
    }

    /// Where to look next.
    fn next(&self, text: &mut String, first: Option<&Cause<'_>>, screen: Screen) {
        let Some(Cause { node, .. }) = first else { return };
        let in_namespace = |name: &NamespacedName| match &*name.namespace {
            "" => String::new(),
            namespace => format!(" -n {namespace}"),
        };
        let name = &self.group.name;
        let called = short_title(self.group);
        let mut next = vec![format!("bellwether tree {called}{}{}", in_namespace(name), self.flags.own)];
        let is_there = node.state != State::Missing && node.stands_for == StandsFor::Object;
        if let Some(flags) = self.flags.kubectl.as_ref().filter(|_| is_there) {
            let kind = &node.kind;
            let is_known = ["", "apps", "batch"].contains(&&*kind.group);
            let kind = if is_known { kind.kind.to_lowercase() } else { kind.to_string().to_lowercase() };
            let (object, place) = (&node.name.name, in_namespace(&node.name));
            next.push(format!("kubectl{place} describe {kind} {object}{flags}"));
        }
        let next = printable(&format!("Next: {}", next.join(" · "))).into_owned();
        for line in wrap(&next, screen.page().max(columns("Next: ")) - 2) {
            let _ = writeln!(text, "  {line}");
        }
    }
}

/// What is known of an Application that another one needs, in a sentence.
pub fn needs(dependency: &DependencyStatus) -> String {
    let how = match (dependency.installed, dependency.ready) {
        (false, _) => "not there",
        (true, ConditionStatus::True) => "ready",
        (true, ConditionStatus::False) => "not ready",
        (true, ConditionStatus::Unknown) => "unknown",
    };
    format!("Needs {}: {how}.", printable(&dependency.name))
}

fn line(text: &mut String, line: &str, screen: Screen) {
    let line = format!("{INDENT}{}", printable(line));
    let _ = writeln!(text, "{}", screen.width.map_or(line.as_str().into(), |width| cut(&line, width)));
}

/// The fields that show best what a verdict rests on: those whose values its words speak of, then those of the status.
fn told(node: &Node, evidence: &[Evidence]) -> Vec<String> {
    let is_spoken_of = |text: &str| !text.is_empty() && (node.reason == text || node.message.contains(text));
    let mut fields = Vec::new();
    for field in evidence.iter().filter(|field| !field.path.starts_with("metadata")) {
        let (value, text) = match &field.value {
            // A condition: whether it is so, and why.
            Some(condition @ Value::Map(_)) => {
                let text = |name: &str| condition.get(name).and_then(Value::as_text);
                let (Some(status), reason) = (text("status"), text("reason").unwrap_or_default()) else {
                    continue;
                };
                (format!("{status} {reason}").trim_end().to_owned(), reason)
            }
            Some(value @ Value::Text(text)) => (serde_json::to_string(value).unwrap_or_default(), &**text),
            Some(value @ (Value::Bool(_) | Value::Int(_) | Value::Float(_))) => {
                (serde_json::to_string(value).unwrap_or_default(), "")
            }
            Some(Value::Null | Value::List(_)) | None => continue,
        };
        fields.push((
            !is_spoken_of(text),
            !field.path.starts_with("status"),
            format!("{} = {value}", field.path),
        ));
    }
    fields.sort_by_key(|(silent, elsewhere, _)| (*silent, *elsewhere));
    fields.into_iter().take(MOST_FIELDS).map(|(_, _, text)| text).collect()
}

/// What the members of a group are called.
fn members(group: &Group, count: usize) -> &'static str {
    match (&group.detail, count) {
        (Detail::Application { .. }, 1) => "member",
        (Detail::Application { .. }, _) => "members",
        (Detail::Rollup { .. }, 1) => "component",
        (Detail::Rollup { .. }, _) => "components",
    }
}

/// How a group is, in a sentence.
pub fn headline(group: &Group, now: Timestamp, screen: Screen) -> String {
    let (is, has_been) = match group.state {
        State::Failed => ("is failing", "has been failing"),
        State::Missing => ("is incomplete", "has been incomplete"),
        State::InProgress => ("is on its way", "has been on its way"),
        State::Unknown => ("cannot be judged", "has not been judged"),
        State::Terminating => ("is being deleted", "is being deleted"),
        State::Suspended => ("is suspended", "has been suspended"),
        State::Ready => ("is ready", "has been ready"),
    };
    let is = match group.since {
        Some(since) if group.state != State::Terminating => {
            let minute = since.strftime("%Y-%m-%d %H:%M");
            format!("{has_been} for {} (since {minute} UTC)", how_long(since, now))
        }
        _ => is.to_owned(),
    };
    let bad = group.members.iter().filter(|member| is_bad(member.state)).count();
    let total = group.members.len();
    let ready = group.members.iter().filter(|member| member.state == State::Ready).count();
    let tail = match (group.state, total) {
        (State::Ready, 0) => String::new(),
        // What is held back for a while, or suspended, keeps nothing from being ready.
        (State::Ready, total) if ready < total => {
            let are = if total - ready == 1 { "is" } else { "are" };
            format!(", but {} of {total} {} {are} not.", total - ready, members(group, total))
        }
        (State::Ready, 1) => format!(": its one {} is.", members(group, 1)),
        (State::Ready, total) => format!(": all {total} {} are.", members(group, total)),
        // A kind that cannot be read, or a health check, is no member.
        _ if bad == 0 => {
            format!(": {}.", group.deciding().map_or("", |says| &says.message).trim_end_matches('.'))
        }
        (_, 1) => format!(": its one {} is not ready.", members(group, 1)),
        _ => {
            let are = if bad == 1 { "is" } else { "are" };
            format!(": {bad} of {total} {} {are} not ready.", members(group, total))
        }
    };
    let tail = if tail.is_empty() { ".".to_owned() } else { tail };
    // Each word has its colour, so that each line has.
    let is: Vec<_> = is.split(' ').map(|word| screen.paint(word, style(Some(group.state)))).collect();
    let text = format!("{} {}{}", printable(&title(group)), is.join(" "), printable(&tail));
    wrap(&text, screen.width.unwrap_or(usize::MAX)).join("\n") + "\n"
}
