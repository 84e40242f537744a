//! One group in detail: a heading, the causes with the fields behind them, then the rest.

use std::fmt::Write as _;

use bellwether_api::DependencyStatus;
use bellwether_engine::{
    Condition, Detail, Group, GroupKind, Member, NamespacedName, ReportedConditions,
    condition_types::{ADOPTED, DEPENDENCY_CYCLE, ERROR, HEALTH_CHECK_VALID, RESOLVED},
    ready,
    reasons::unreadable,
};
use bellwether_health::{Evidence, Source};
use bellwether_model::{ConditionStatus, State, Value};
use bellwether_terminal::{
    Cell, ROOM_FOR_BARS, Screen, Table, bar, columns, cut, first_items, how_long, printable, sign, style,
    wrap,
};
use jiff::Timestamp;

use super::{argument, counts, heading, next_commands, rollup};
use crate::{
    observe::Flags,
    owner_tree::{Cause, Node, ObjectNames, causes, is_bad, reason_and_message},
    shell::program,
};

pub struct SingleGroup<'g> {
    pub group: &'g Group,
    pub tree: &'g [Node],
    /// List all members.
    pub all: bool,
    pub wide: bool,
    pub now: Timestamp,
    pub flags: Flags,
    /// A sentence for each kind that the user may not list.
    pub forbidden: &'g [String],
}

const MAX_CAUSES: usize = 5;

/// Of each cause.
const MAX_FIELDS: usize = 3;

/// Of the lines below a cause.
const INDENT: &str = "       ";

impl SingleGroup<'_> {
    /// `evidence` returns the fields that the verdict on an object is based on.
    pub fn print(&self, screen: Screen, evidence: &dyn Fn(&Node) -> Vec<Evidence>) -> String {
        let mut text = headline(self.group, self.now, screen);
        text.push_str(&rollup::meaning(self.group, screen));
        text.push('\n');
        let conditions = rollup::conditions(self.group, self.wide, screen);
        if !conditions.is_empty() {
            let _ = writeln!(text, "{conditions}");
        }
        let causes = causes(self.tree);
        text.push_str(&self.causes(&causes, MAX_CAUSES, screen, evidence));
        if causes.len() > MAX_CAUSES {
            let hint = if self.all { "" } else { " (use --all to list all members)" };
            let _ = writeln!(text, "     and {} more{hint}", causes.len() - MAX_CAUSES);
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
        if let Some(first) = causes.first() {
            text.push_str(&next_commands("  ", &self.next(first.node, evidence)));
        }
        text
    }

    /// The first `max` causes.
    pub fn causes(
        &self,
        causes: &[Cause<'_>],
        max: usize,
        screen: Screen,
        evidence: &dyn Fn(&Node) -> Vec<Evidence>,
    ) -> String {
        let names = ObjectNames::of_nodes(self.group, self.tree);
        let mut text = String::new();
        for (index, cause) in causes.iter().take(max).enumerate() {
            self.cause(&mut text, index + 1, cause, &names, screen);
            let fields = relevant_fields(cause.node, &evidence(cause.node));
            let rule =
                cause.node.rule.as_ref().filter(|rule| rule.source != Source::None && !fields.is_empty());
            for line in rule.map(|rule| format!("rule {}", rule_name(rule))).iter().chain(&fields) {
                push_cut(&mut text, line, screen);
            }
        }
        text
    }

    fn cause(
        &self,
        text: &mut String,
        number: usize,
        cause: &Cause<'_>,
        names: &ObjectNames<'_>,
        screen: Screen,
    ) {
        let node = cause.node;
        let more = if cause.more > 0 { format!(" (and {} more)", cause.more) } else { String::new() };
        let duration =
            node.since.map(|since| format!(" for {}", how_long(since, self.now))).unwrap_or_default();
        let state = format!("{} {}", sign(Some(node.state)), node.state.name());
        let head = format!("  {number}  {}{more}", printable(&names.of_node(node)));
        // A name may be longer than the screen is wide. The state must be visible nevertheless.
        let room = screen.width.map(|width| width.saturating_sub(2 + columns(&state) + columns(&duration)));
        let head = room.map_or(head.clone(), |room| cut(&head, room).into_owned());
        let _ = writeln!(text, "{head}  {}{duration}", screen.paint(&state, style(Some(node.state))));
        for line in wrap(&printable(&node.why()), screen.page() - INDENT.len()) {
            let _ = writeln!(text, "{INDENT}{line}");
        }
        if let Some(blocked) = cause.blocks {
            push_cut(text, &format!("blocks {}: {}", names.of_node(blocked), blocked.why()), screen);
        }
        if let Some(conditions) = cause.blocks.unwrap_or(node).component_conditions {
            push_cut(text, &rollup::reported(conditions), screen);
        }
    }

    /// Conditions other than those that decide, members that are ready, and dependencies.
    fn remarks(&self, text: &mut String, screen: Screen) {
        let group = self.group;
        for Condition { type_, statement, .. } in &group.conditions {
            let is_notable = match *type_ {
                RESOLVED | HEALTH_CHECK_VALID | ADOPTED => statement.status != ConditionStatus::True,
                DEPENDENCY_CYCLE | ERROR => statement.status == ConditionStatus::True,
                _ => false,
            };
            if is_notable {
                // The message of the condition names the rights of the controller. Here, those of the user
                // are missing.
                let is_forbidden = &*statement.reason == unreadable::FORBIDDEN && !self.forbidden.is_empty();
                let message = match (is_forbidden, self.wide) {
                    (true, _) => self.forbidden.join("; ").into(),
                    (false, true) => statement.message.as_ref().into(),
                    (false, false) => first_items(&statement.message),
                };
                let remark = format!("{type_}={} ({}): {message}", statement.status.name(), statement.reason);
                for line in wrap(&printable(&remark), screen.page() - 2) {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
        let healthy = || group.members.iter().map(|member| member.state).filter(|state| !is_bad(*state));
        let count = healthy().count();
        let has_causes = count < group.members.len();
        if count > 0 && (has_causes || !self.all) {
            let hint = match (self.all, count) {
                (true, _) => "",
                (false, 1) => " (use --all to list it)",
                (false, _) => " (use --all to list them)",
            };
            let states = counts(healthy(), |count| members(group, count, has_causes));
            let _ = writeln!(text, "  {states}{hint}");
        }
        for line in group.dependencies().iter().map(dependency) {
            let _ = writeln!(text, "  {line}");
        }
    }

    fn members(&self, screen: Screen) -> String {
        let mut headers = match self.group.detail {
            Detail::Application { .. } => vec!["MEMBER", "STATE", "FOR", "PROGRESS"],
            // Operators report no progress in percent.
            Detail::Rollup { .. } => {
                vec!["COMPONENT", "STATE", "FOR", "AVAILABLE", "PROGRESSING", "DEGRADED", "UPGRADEABLE"]
            }
        };
        headers.extend(self.wide.then_some(["REASON", "RULE"]).into_iter().flatten());
        headers.push("WHY");
        let names = ObjectNames::of_members(self.group);
        let mut table = Table::new(headers);
        for member in &self.group.members {
            table.push(self.member(member, &names, screen), Vec::new());
        }
        table.print(screen)
    }

    fn member(&self, member: &Member, names: &ObjectNames<'_>, screen: Screen) -> Vec<Cell> {
        let state = Some(member.state);
        let text = |text: &str| Cell::from(printable(text).into_owned());
        let mut cells = vec![
            text(&names.of_member(member)),
            Cell::styled(format!("{} {}", sign(state), member.state.name()), style(state)),
            member.since.map(|since| how_long(since, self.now)).unwrap_or_default().into(),
        ];
        let has_room = screen.width.is_none_or(|width| width >= ROOM_FOR_BARS);
        if let Some(ReportedConditions { available, progressing, degraded, upgradeable }) =
            member.component_conditions
        {
            // On a narrow screen, the reasons need the room. A table leaves out a column without content.
            let statuses = [Some(available), Some(progressing), Some(degraded), upgradeable];
            let statuses = statuses.map(|status| status.filter(|_| has_room));
            cells.extend(statuses.map(|status| text(status.map_or("", ConditionStatus::name))));
        } else {
            let progress = Some(member.progress).filter(|_| member.state != State::Unknown);
            cells.push(bar(progress).into());
        }
        if self.wide {
            cells.push(text(&member.reason));
            cells.push(text(&member.rule.as_ref().map(rule_name).unwrap_or_default()));
        }
        // With `wide`, the reason has a column of its own.
        let why = if self.wide {
            member.message.as_str().into()
        } else {
            reason_and_message(member.state, &member.reason, &member.message)
        };
        cells.push(text(&why));
        cells
    }

    /// Commands that show more of the first cause.
    fn next(&self, node: &Node, evidence: &dyn Fn(&Node) -> Vec<Evidence>) -> Vec<String> {
        let group = argument(self.group);
        let namespace = namespace_flag(&self.group.name);
        let mut commands = vec![format!("{} tree {group}{namespace}{}", program(), self.flags.own)];
        // An object of a kind that the user may not list cannot be described, either.
        let is_unreadable = unreadable::ALL.iter().any(|reason| reason.name == node.reason);
        let Some(flags) = self.flags.kubectl.as_ref().filter(|_| node.exists && !is_unreadable) else {
            return commands;
        };
        let (object, namespace) = (&node.name.name, namespace_flag(&node.name));
        commands.push(match crash_looping_container(node, evidence) {
            Some(container) => format!("kubectl logs {object} -c {container} --previous{namespace}{flags}"),
            None => format!("kubectl describe {}{namespace}{flags}", kubectl_argument(node)),
        });
        commands
    }
}

/// `builtin/Pod`
fn rule_name(rule: &bellwether_health::Rule) -> String {
    format!("{}/{}", format!("{:?}", rule.source).to_lowercase(), rule.id)
}

pub(super) fn namespace_flag(name: &NamespacedName) -> String {
    match &*name.namespace {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    }
}

/// `pod/web-0`, `database.acme.io/main`. Only resources of Kubernetes are unambiguous without their API
/// group.
fn kubectl_argument(node: &Node) -> String {
    let kind = if ["", "apps", "batch"].contains(&&*node.kind.group) {
        node.kind.kind.to_lowercase()
    } else {
        node.kind.to_string().to_lowercase()
    };
    format!("{kind}/{}", node.name.name)
}

/// The container of a Pod whose status has CrashLoopBackOff, by the path of that field.
fn crash_looping_container(node: &Node, evidence: &dyn Fn(&Node) -> Vec<Evidence>) -> Option<String> {
    const REASON: &str = "CrashLoopBackOff";
    if node.kind != GroupKind::pod() || !node.reason.contains(REASON) {
        return None;
    }
    let fields = evidence(node);
    let mut is_crashing =
        fields.iter().filter(|field| field.value.as_ref().and_then(Value::as_text) == Some(REASON));
    is_crashing.find_map(|field| {
        let lists = ["status.containerStatuses[", "status.initContainerStatuses["];
        let rest = lists.iter().find_map(|list| field.path.strip_prefix(list))?;
        rest.split_once(']').map(|(container, _)| container.to_owned())
    })
}

/// `Dependency mysql: not ready`
pub fn dependency(dependency: &DependencyStatus) -> String {
    let status = match (dependency.installed, dependency.ready) {
        (false, _) => "not found",
        (true, ConditionStatus::True) => "ready",
        (true, ConditionStatus::False) => "not ready",
        (true, ConditionStatus::Unknown) => "unknown",
    };
    format!("Dependency {}: {status}", printable(&dependency.name))
}

fn push_cut(text: &mut String, line: &str, screen: Screen) {
    let line = format!("{INDENT}{}", printable(line));
    let _ = writeln!(text, "{}", screen.width.map_or(line.as_str().into(), |width| cut(&line, width)));
}

/// The fields that best support a verdict, as `path = value`: those whose value its reason or message
/// contains. If there is none, the others, those of the status first.
fn relevant_fields(node: &Node, evidence: &[Evidence]) -> Vec<String> {
    let is_quoted = |text: &str| !text.is_empty() && (node.reason == text || node.message.contains(text));
    let mut fields = Vec::new();
    for field in evidence.iter().filter(|field| !repeats_other_output(&field.path)) {
        let (value, text) = match &field.value {
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
            is_quoted(text),
            !field.path.starts_with("status"),
            format!("{} = {value}", field.path),
        ));
    }
    fields.sort_by_key(|(is_quoted, is_elsewhere, _)| (!is_quoted, *is_elsewhere));
    let has_quoted = fields.first().is_some_and(|(is_quoted, ..)| *is_quoted);
    let relevant = fields.into_iter().filter(|(is_quoted, ..)| *is_quoted || !has_quoted);
    relevant.take(MAX_FIELDS).map(|(_, _, text)| text).collect()
}

/// Kind and metadata are in the name, a message in the lines above, and the name of a list entry in its path.
fn repeats_other_output(path: &str) -> bool {
    path == "kind" || path.starts_with("metadata") || path.ends_with(".message") || path.ends_with("].name")
}

/// What to call so many members of a group.
fn members(group: &Group, count: usize, more: bool) -> &'static str {
    match (&group.detail, count, more) {
        (Detail::Application { .. }, 1, false) => "member",
        (Detail::Application { .. }, 1, true) => "more member",
        (Detail::Application { .. }, _, false) => "members",
        (Detail::Application { .. }, _, true) => "more members",
        (Detail::Rollup { .. }, 1, false) => "component",
        (Detail::Rollup { .. }, 1, true) => "more component",
        (Detail::Rollup { .. }, _, false) => "components",
        (Detail::Rollup { .. }, _, true) => "more components",
    }
}

/// `Application shop/checkout: Failed for 2m (since 2026-11-14 11:58 UTC), 2/5 ready`
pub fn headline(group: &Group, now: Timestamp, screen: Screen) -> String {
    let since = match group.since {
        // Of a group that is being deleted, `since` is not when the deletion began.
        Some(since) if group.state != State::Terminating => {
            let minute = since.strftime("%Y-%m-%d %H:%M");
            format!(" for {} (since {minute} UTC)", how_long(since, now))
        }
        _ => String::new(),
    };
    let message = group.deciding_condition().map_or("", |statement| &statement.message).trim_end_matches('.');
    let has_causes = group.members.iter().any(|member| is_bad(member.state));
    let rest = match group.state {
        State::Ready if group.members.is_empty() => String::new(),
        _ if group.members.is_empty() => format!(": no {}: {message}", members(group, 0, false)),
        State::Ready => format!(", {} ready", ready(group)),
        _ if has_causes => format!(", {} ready", ready(group)),
        // A kind that cannot be read or a health check decides.
        _ => format!(", {} ready: {message}", ready(group)),
    };
    let state = screen.paint(group.state.name(), style(Some(group.state)));
    let heading = heading(&group.kind, &group.name);
    let text = format!("{}: {state}{}", printable(&heading), printable(&format!("{since}{rest}")));
    wrap(&text, screen.width.unwrap_or(usize::MAX)).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use bellwether_engine::StandsFor;
    use rstest::rstest;

    use super::*;

    fn pod(reason: &str, exists: bool) -> Node {
        Node {
            kind: GroupKind::pod(),
            name: NamespacedName::new("shop", "web-0"),
            stands_for: StandsFor::Object,
            exists,
            state: State::Failed,
            progress: 0,
            reason: reason.to_owned(),
            message: String::new(),
            since: None,
            rule: None,
            component_conditions: None,
            children: Vec::new(),
            omitted: 0,
        }
    }

    const TREE: &str = "bellwether tree web -n shop --context c";

    #[rstest]
    #[case::crash_loop(
        pod("CrashLoopBackOff", true),
        &[TREE, "kubectl logs web-0 -c app --previous -n shop --context c"]
    )]
    #[case::not_a_crash_loop(
        pod("ImagePullBackOff", true),
        &[TREE, "kubectl describe pod/web-0 -n shop --context c"]
    )]
    #[case::not_found(pod("NotFound", false), &[TREE])]
    #[case::forbidden(pod("Forbidden", true), &[TREE])]
    fn hints(#[case] node: Node, #[case] expected: &[&str]) {
        let group = Group {
            kind: GroupKind::bellwether("Application"),
            name: NamespacedName::new("shop", "web"),
            state: State::Failed,
            since: None,
            conditions: Vec::new(),
            counts: bellwether_api::ObjectCounts::default(),
            progress: None,
            members: Vec::new(),
            detail: Detail::Application { type_: None, version: None, dependencies: Vec::new() },
        };
        let flags = " --context c".to_owned();
        let page = SingleGroup {
            group: &group,
            tree: &[],
            all: false,
            wide: false,
            now: Timestamp::UNIX_EPOCH,
            flags: Flags { own: flags.clone(), kubectl: Some(flags) },
            forbidden: &[],
        };
        let evidence = |_: &Node| {
            let path = "status.containerStatuses[app].state.waiting.reason".to_owned();
            vec![Evidence { path, value: Some(Value::Text("CrashLoopBackOff".into())) }]
        };
        assert_eq!(page.next(&node, &evidence), expected);
    }
}
