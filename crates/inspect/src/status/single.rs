//! One group in detail: a heading, the causes with the fields behind them, then the rest.

use std::{cmp::Reverse, collections::BTreeSet, fmt::Write as _};

use bellwether_api::DependencyStatus;
use bellwether_engine::{
    Condition, Detail, Group, GroupKind, Member, NamespacedName, ReportedConditions,
    condition_types::{
        ADOPTED, COLLECTORS_AVAILABLE, DEPENDENCY_CYCLE, ERROR, HEALTH_CHECK_VALID, RESOLVED,
        SINGLETONS_APPLY,
    },
    ready,
    reasons::unreadable,
};
use bellwether_health::{Evidence, Source};
use bellwether_model::{ConditionStatus, State, Value};
use bellwether_terminal::{
    Cell, ROOM_FOR_BARS, Screen, Table, bar, columns, first_items, how_long, printable, sign, style, wrap,
};
use jiff::Timestamp;

use super::{argument, clusters, counts, heading, next_commands, push_paragraph, rollup};
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

/// The minimum width for the conditions of components, in columns.
const ROOM_FOR_CONDITIONS: usize = 140;

/// Of the lines below a cause.
const INDENT: &str = "       ";

impl SingleGroup<'_> {
    /// `evidence` returns the fields that the verdict on an object is based on.
    pub fn print(&self, screen: Screen, evidence: &dyn Fn(&Node) -> Vec<Evidence>) -> String {
        let mut text = String::new();
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
            if !text.is_empty() && !text.ends_with("\n\n") {
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
        let head = headline(self.group, self.now, screen) + &rollup::meaning(self.group, screen);
        match text.trim_end() {
            "" => head,
            text => format!("{head}\n{text}\n"),
        }
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
            // In a pipe, a field stays on one line.
            let width = screen.width.unwrap_or(usize::MAX);
            for line in rule.map(|rule| format!("rule {}", rule_name(rule))).iter().chain(&fields) {
                push_paragraph(&mut text, INDENT, line, width);
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
        let name = names.of_listed_node(node);
        let head = format!("  {number}  {}{more}", printable(&name));
        // Names are not cut. If the state does not fit beside one, it has its own line.
        let width = columns(&head) + 2 + columns(&state) + columns(&duration);
        let is_beside = screen.width.is_none_or(|all| width <= all);
        let gap = if is_beside { "  ".to_owned() } else { format!("\n{INDENT}") };
        let _ = writeln!(text, "{head}{gap}{}{duration}", screen.paint(&state, style(Some(node.state))));
        for line in wrap(&printable(&node.why()), screen.page() - INDENT.len()) {
            let _ = writeln!(text, "{INDENT}{line}");
        }
        if let Some(blocked) = cause.blocks {
            let blocked = format!("blocks {}: {}", names.of_node(blocked), blocked.why());
            push_paragraph(text, INDENT, &blocked, screen.page());
        }
        if let Some(conditions) = cause.blocks.unwrap_or(node).component_conditions {
            push_paragraph(text, INDENT, &rollup::reported(conditions), screen.page());
        }
    }

    /// Conditions other than those that decide, members that are ready, and dependencies.
    fn remarks(&self, text: &mut String, screen: Screen) {
        let group = self.group;
        for Condition { type_, statement, .. } in &group.conditions {
            let is_notable = match *type_ {
                RESOLVED | HEALTH_CHECK_VALID | ADOPTED | COLLECTORS_AVAILABLE | SINGLETONS_APPLY => {
                    statement.status != ConditionStatus::True
                }
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
                push_paragraph(text, "  ", &remark, screen.page());
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
        text.push_str(&clusters::not_reporting(group, self.now, screen));
    }

    fn members(&self, screen: Screen) -> String {
        let mut headers = match self.group.detail {
            Detail::Application { .. } => vec!["MEMBER", "STATE", "FOR", "PROGRESS"],
            // Operators report no progress in percent.
            Detail::Rollup { .. } => vec![
                "NAMESPACE",
                "COMPONENT",
                "STATE",
                "FOR",
                "AVAILABLE",
                "PROGRESSING",
                "DEGRADED",
                "UPGRADEABLE",
            ],
            Detail::BindingPolicy { .. } => {
                vec!["NAMESPACE", "OBJECT", "CLUSTER", "STATE", "FOR", "PROGRESS"]
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
        // Members of an Application are in its namespace.
        let is_application = matches!(self.group.detail, Detail::Application { .. });
        let mut cells: Vec<_> = (!is_application).then(|| text(&member.name.namespace)).into_iter().collect();
        cells.push(text(&names.without_namespace(member)));
        cells.extend(member.cluster.as_deref().map(text));
        cells.extend([
            Cell::styled(format!("{} {}", sign(state), member.state.name()), style(state)),
            member.since.map(|since| how_long(since, self.now)).unwrap_or_default().into(),
        ]);
        // On a narrow screen, the reasons need the room. A table leaves out a column without content.
        let least = if self.group.is_rollup() { ROOM_FOR_CONDITIONS } else { ROOM_FOR_BARS };
        let has_room = screen.width.is_none_or(|width| width >= least);
        if let Some(ReportedConditions { available, progressing, degraded, upgradeable }) =
            member.component_conditions
        {
            let statuses = [Some(available), Some(progressing), Some(degraded), upgradeable];
            let statuses = statuses.map(|status| status.filter(|_| has_room));
            cells.extend(statuses.map(|status| text(status.map_or("", ConditionStatus::name))));
        } else {
            let progress = Some(member.progress).filter(|_| member.state != State::Unknown);
            cells.push(if has_room { bar(progress).into() } else { Cell::default() });
        }
        if self.wide {
            cells.push(text(&member.reason));
            cells.push(text(&member.rule.as_ref().map(rule_name).unwrap_or_default()));
        }
        let why = match member.state {
            // Operators may report a reason without a message.
            State::Ready if member.message == member.reason => "".into(),
            // With `wide`, the reason has a column of its own.
            _ if self.wide => member.message.as_str().into(),
            _ => reason_and_message(member.state, &member.reason, &member.message),
        };
        cells.push(text(&why));
        cells
    }

    /// Commands that show more of the first cause.
    fn next(&self, node: &Node, evidence: &dyn Fn(&Node) -> Vec<Evidence>) -> Vec<String> {
        let group = argument(self.group);
        let namespace = namespace_flag(&self.group.name);
        let mut commands = vec![format!("{} tree {group}{namespace}{}", program(), self.flags.own)];
        // An object of a kind that the user may not list cannot be described, either. The flags are those of the hub.
        let is_unreadable = unreadable::ALL.iter().any(|reason| reason.name == node.reason);
        let Some(flags) =
            self.flags.kubectl.as_ref().filter(|_| node.exists && node.cluster.is_none() && !is_unreadable)
        else {
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

/// The container of a Pod that is in CrashLoopBackOff, by the paths of fields. The Pod rule reads when a
/// container was started or terminated only if it is between two crashes.
fn crash_looping_container(node: &Node, evidence: &dyn Fn(&Node) -> Vec<Evidence>) -> Option<String> {
    const REASON: &str = "CrashLoopBackOff";
    if node.kind != GroupKind::pod() || !node.reason.contains(REASON) {
        return None;
    }
    let fields = evidence(node);
    let mut is_crashing = fields.iter().filter(|field| {
        field.value.as_ref().and_then(Value::as_text) == Some(REASON)
            || ["].state.running.startedAt", "].state.terminated.startedAt"]
                .iter()
                .any(|end| field.path.ends_with(end))
    });
    is_crashing.find_map(|field| {
        let lists = ["status.containerStatuses[", "status.initContainerStatuses["];
        let rest = lists.iter().find_map(|list| field.path.strip_prefix(list))?;
        rest.split_once(']').map(|(container, _)| container.to_owned())
    })
}

/// `Application/mysql (dependency): not ready`
pub fn dependency(dependency: &DependencyStatus) -> String {
    let status = match (dependency.installed, dependency.ready) {
        (false, _) => "not found",
        (true, ConditionStatus::True) => "ready",
        (true, ConditionStatus::False) => "not ready",
        (true, ConditionStatus::Unknown) => "unknown",
    };
    format!("Application/{} (dependency): {status}", printable(&dependency.name))
}

/// The fields that best support a verdict, as `path = value`: those whose value its reason or message
/// contains, one for each number. If there is none, the others, those of the status first.
fn relevant_fields(node: &Node, evidence: &[Evidence]) -> Vec<String> {
    let mut fields = Vec::new();
    for field in evidence.iter().filter(|field| !repeats_other_output(&field.path)) {
        let json = |value: &Value<'_>| serde_json::to_string(value).unwrap_or_default();
        let (value, is_quoted, is_number) = match &field.value {
            Some(condition @ Value::Map(_)) => {
                let text = |name: &str| condition.get(name).and_then(Value::as_text);
                let (Some(status), reason) = (text("status"), text("reason").unwrap_or_default()) else {
                    continue;
                };
                (format!("{status} {reason}").trim_end().to_owned(), is_quoted(reason, node), false)
            }
            Some(value @ Value::Text(text)) => (json(value), is_quoted(text, node), false),
            Some(value @ (Value::Int(_) | Value::Float(_))) => {
                let value = json(value);
                let is_quoted = is_number_in(&node.message, &value, &field.path);
                (value, is_quoted, true)
            }
            Some(value @ Value::Bool(_)) => (json(value), false, false),
            Some(Value::Null | Value::List(_)) | None => continue,
        };
        let number = Some(value.clone()).filter(|_| is_quoted && is_number);
        // Of fields with the same number, the one whose name the message has, else what the user wants.
        let shared = number.as_ref().map_or(0, |_| shared_words(&field.path, &node.message));
        let is_first = field.path.starts_with(if number.is_some() { "spec" } else { "status" });
        let is_elsewhere = !field.path.starts_with("status") && !field.path.starts_with("spec");
        let rank = (!is_quoted, is_quoted && is_elsewhere, number.is_some(), Reverse(shared), !is_first);
        fields.push((rank, number, format!("{} = {value}", field.path)));
    }
    fields.sort_by_key(|(rank, ..)| *rank);
    let has_quoted = fields.first().is_some_and(|((is_other, ..), ..)| !is_other);
    let mut numbers = BTreeSet::new();
    let relevant = fields.into_iter().filter(|((is_other, ..), ..)| !is_other || !has_quoted);
    let relevant = relevant.filter(|(_, number, _)| number.clone().is_none_or(|it| numbers.insert(it)));
    relevant.take(MAX_FIELDS).map(|(.., text)| text).collect()
}

fn is_quoted(text: &str, node: &Node) -> bool {
    !text.is_empty() && (node.reason == text || node.message.contains(text))
}

/// Whether a message contains a number as a word of its own.
fn is_number_in(message: &str, number: &str, path: &str) -> bool {
    // A generation may equal a number of replicas by chance.
    let is_by_chance = path.ends_with("observedGeneration") && !message.contains("generation");
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '.' | '-' | '_');
    let mut words = message.split(|character| !is_part(character));
    !is_by_chance && words.any(|word| word.trim_end_matches('.') == number)
}

/// How many words of the name of a field a message contains: of `updatedReplicas`, `2 of 4 replicas updated`
/// contains two.
fn shared_words(path: &str, message: &str) -> usize {
    let singular = |word: &str| word.trim_end_matches('s').to_lowercase();
    let words: BTreeSet<_> =
        message.split(|character: char| !character.is_alphabetic()).map(singular).collect();
    let name = path.rsplit(['.', ']']).next().unwrap_or_default();
    let mut starts: Vec<_> =
        name.char_indices().filter(|(_, character)| character.is_uppercase()).map(|(at, _)| at).collect();
    starts.push(name.len());
    let mut from = 0;
    let parts = starts.into_iter().filter_map(|to| {
        let part = name.get(from..to);
        from = to;
        part
    });
    parts.filter(|part| !part.is_empty() && words.contains(&singular(part))).count()
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
        (Detail::BindingPolicy { .. }, 1, false) => "object",
        (Detail::BindingPolicy { .. }, 1, true) => "more object",
        (Detail::BindingPolicy { .. }, _, false) => "objects",
        (Detail::BindingPolicy { .. }, _, true) => "more objects",
        (Detail::Rollup { .. }, 1, false) => "component",
        (Detail::Rollup { .. }, 1, true) => "more component",
        (Detail::Rollup { .. }, _, false) => "components",
        (Detail::Rollup { .. }, _, true) => "more components",
    }
}

/// `Application shop/checkout: Failed for 2m (since 2026-11-14 11:58 UTC), 2/5 ready`
pub fn headline(group: &Group, now: Timestamp, screen: Screen) -> String {
    let since = match group.since {
        Some(since) => {
            let minute = since.strftime("%Y-%m-%d %H:%M");
            format!(" for {} (since {minute} UTC)", how_long(since, now))
        }
        None => String::new(),
    };
    let message = group.deciding_condition().map_or("", |statement| &statement.message).trim_end_matches('.');
    let message = clusters::why_empty(group).unwrap_or(message);
    let has_causes = group.members.iter().any(|member| is_bad(member.state));
    let rest = match group.state {
        State::Ready if group.members.is_empty() => String::new(),
        _ if group.members.is_empty() => format!(": {message}"),
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
            cluster: None,
            stands_for: StandsFor::Object,
            exists,
            state: State::Failed,
            progress: 0,
            reason: reason.to_owned(),
            message: String::new(),
            since: None,
            rule: None,
            component_conditions: None,
            member: None,
            children: Vec::new(),
            omitted: 0,
        }
    }

    const TREE: &str = "bellwether tree web -n shop --context c";

    /// Each field with its value; the fields that are printed.
    #[rstest]
    #[case::numbers(
        "2 of 4 replicas updated",
        &[
            ("metadata.generation", 4), ("status.observedGeneration", 4), ("status.readyReplicas", 3),
            ("status.availableReplicas", 2), ("status.replicas", 4), ("spec.replicas", 4),
            ("status.updatedReplicas", 2),
        ],
        &["status.updatedReplicas = 2", "spec.replicas = 4"]
    )]
    #[case::generations(
        "observed generation 2, want 3",
        &[("status.observedGeneration", 2), ("status.readyReplicas", 1)],
        &["status.observedGeneration = 2"]
    )]
    #[case::part_of_a_word(
        "image web:1.2 of web-3 not found",
        &[("spec.replicas", 3), ("status.readyReplicas", 2)],
        &["status.readyReplicas = 2", "spec.replicas = 3"]
    )]
    #[case::restarts(
        "container app: CrashLoopBackOff, exit code 2, 7 restarts.",
        &[("status.containerStatuses[app].restartCount", 7), ("status.replicas", 1)],
        &["status.containerStatuses[app].restartCount = 7"]
    )]
    fn fields(#[case] message: &str, #[case] evidence: &[(&str, i64)], #[case] expected: &[&str]) {
        let node = Node { message: message.to_owned(), ..pod("Reason", true) };
        let evidence = evidence
            .iter()
            .map(|(path, value)| Evidence { path: (*path).to_owned(), value: Some(Value::Int(*value)) });
        assert_eq!(relevant_fields(&node, &evidence.collect::<Vec<_>>()), expected);
    }

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
        let path = "status.containerStatuses[app].state.waiting.reason".to_owned();
        let waits = Evidence { path, value: Some(Value::Text("CrashLoopBackOff".into())) };
        assert_eq!(next(&node, &waits), expected);
    }

    #[rstest]
    #[case::running("running")]
    #[case::terminated("terminated")]
    fn hints_between_crashes(#[case] state: &str) {
        let path = format!("status.initContainerStatuses[migrate].state.{state}.startedAt");
        let started = Evidence { path, value: Some(Value::Text("2026-03-01T12:00:00Z".into())) };
        let logs = "kubectl logs web-0 -c migrate --previous -n shop --context c";
        assert_eq!(next(&pod("CrashLoopBackOff", true), &started), [TREE, logs]);
    }

    fn next(node: &Node, evidence: &Evidence) -> Vec<String> {
        let group = Group {
            kind: GroupKind::bellwether("Application"),
            name: NamespacedName::new("shop", "web"),
            state: State::Failed,
            deleting: false,
            since: None,
            conditions: Vec::new(),
            counts: bellwether_api::ObjectCounts::default(),
            progress: None,
            members: Vec::new(),
            clusters: None,
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
        page.next(node, &|_: &Node| vec![evidence.clone()])
    }
}
