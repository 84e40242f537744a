//! `bellwether explain`: the rule and the fields behind a state.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result};
use bellwether_engine::{Condition, Group, GroupKind, Member, NamespacedName, kinds_below};
use bellwether_health::{Context, Evidence, Rule, RuleText, Source, Verdict, rules};
use bellwether_input::InputError;
use bellwether_inspect::{
    observe::{GroupQuery, Notes, Observation, is_group},
    owner_tree::reason_and_message,
};
use bellwether_model::{Object, State, Value};
use bellwether_terminal::{Screen, bar, cut, how_long, printable, style, wrap};
use jiff::Timestamp;

use crate::{
    assess::{NO_OBJECTS, errors, exit_code, stored_groups},
    assessment::{Assessment, Assessor, Row, entries},
    cli::{Dialect, Explain, ExplainFormat, Objects},
    evidence,
    output::{BAD_INPUT, Outcome},
    rules::Chosen,
};

pub(crate) fn run(command: &Explain, screen: Screen) -> Result<Outcome> {
    let objects = named_objects(command);
    if !objects.is_empty() {
        return explain_named(command, &objects, screen);
    }
    if !command.location.from.is_empty() {
        let error = "--from requires objects as KIND/NAME. To explain the files themselves, remove --from";
        return Ok(Outcome::bad_input(error.to_owned()));
    }
    if !command.fleet.clusters.clusters.is_empty() {
        let error = "--cluster requires objects as KIND/NAME, e.g. deploy/web";
        return Ok(Outcome::bad_input(error.to_owned()));
    }
    if let Some(word) =
        command.objects.files.iter().filter_map(|file| file.to_str()).find(|word| is_name(word))
    {
        return Ok(Outcome::bad_input(format!(
            "no such file: {word}. For an object in the cluster, use KIND/NAME, e.g. bwapp/{word}"
        )));
    }
    let inputs = match command.objects.inputs("explain") {
        Ok(inputs) => inputs,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let chosen = match Chosen::by(&command.objects.rules) {
        Ok(chosen) => chosen,
        Err(outcome) => return Ok(outcome),
    };
    let context = command.objects.context(&chosen.rules);
    let assessor = Assessor { dialect: Dialect::Native, context, evidence: true };
    let read = bellwether_input::read(&inputs, &chosen.plan(), &|object| assessor.assess(object));
    let mut outcome = print(command.output, &read, context.now, screen)?;
    outcome.notes.extend(stored_groups(&read));
    Ok(outcome)
}

/// The arguments that name objects in a cluster, such as `deploy/web`, and not files.
fn named_objects(command: &Explain) -> Vec<&str> {
    let is_object = |word: &&str| is_object(word) && !Path::new(word).exists();
    command.objects.files.iter().filter_map(|file| file.to_str()).filter(is_object).collect()
}

/// Whether an argument looks like an object rather than a file. A misspelt file must not be taken for an
/// object.
fn is_object(word: &str) -> bool {
    let looks_like_a_file =
        word.starts_with(['.', '/', '~']) || bellwether_input::holds_objects(Path::new(word));
    let is_kind_and_name =
        word.split_once('/').is_some_and(|(_, name)| !name.is_empty() && !name.contains('/'));
    is_kind_and_name && !looks_like_a_file
}

/// Whether an argument is a bare name and not a file: `wordpress`.
fn is_name(word: &str) -> bool {
    word != "-" && !word.contains(['/', '.', '~']) && !Path::new(word).exists()
}

fn explain_named(command: &Explain, objects: &[&str], screen: Screen) -> Result<Outcome> {
    let Explain { objects: Objects { named, files, now, no_builtin, rules }, location, .. } = command;
    if !named.is_empty() || files.len() > objects.len() {
        let are = if objects.len() == 1 { "is not a file" } else { "are not files" };
        let error = format!("cannot mix objects and files: {} {are}", objects.join(", "));
        return Ok(Outcome::bad_input(error));
    }
    let chosen = match Chosen::by(rules) {
        Ok(chosen) => chosen,
        Err(outcome) => return Ok(outcome),
    };
    let location = match command.fleet.of(location.location_with(&command.below)) {
        Ok(location) => location.or_without_hub(),
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let now = now.unwrap_or_else(Timestamp::now);
    let read = || {
        let observation =
            Observation::read_own_kinds(&location, now, &[GroupKind::bellwether("HealthRule")])?;
        let context = Context { builtin: !no_builtin, ..observation.context() };
        let context =
            if rules.is_empty() { context } else { Context { rules: Some(&chosen.rules), ..context } };
        let assessor = Assessor { dialect: Dialect::Native, context, evidence: true };
        let (mut rows, mut problems, mut notes) =
            (Vec::new(), observation.notes.problems.clone(), observation.notes.notes.clone());
        problems.extend(observation.notes.unread_clusters.iter().map(ToString::to_string));
        // With --rules or --no-builtin, the user wants the verdict of those rules on the stored status.
        let is_counted = rules.is_empty() && !no_builtin && location.clusters.is_empty();
        let open = || Observation::open(&location, now, GroupQuery::All { all_namespaces: false }).ok();
        let applications = is_counted.then(open).flatten();
        let groups = applications.as_ref().map(Observation::groups).unwrap_or_default();
        for word in objects {
            if !location.clusters.is_empty() {
                let in_hub = location.has_hub().then(|| observation.object_named(word)).transpose()?;
                let assess = |object: &Object<'_>| assessor.assess(object);
                for row in observation.with_in_clusters(word, in_hub.as_ref(), &assess)? {
                    match row {
                        Ok((cluster, row)) => rows.push(Ok(row.in_cluster(Some(cluster)))),
                        Err(problem) => problems.push(problem),
                    }
                }
                continue;
            }
            let (kind, name) = observation.object_named(word)?;
            let row = observation.with(&kind, &name, &|object| assessor.assess(object))?;
            let mut row = row.with_context(|| observation.not_found(&kind, &name))?;
            if is_counted {
                let applications = applications.as_ref().map(|it| (&*groups, &it.notes));
                let unreadable = count(&mut row, (&kind, &name), applications, &observation)?;
                let is_new = |note: &String| !notes.contains(note);
                let unreadable: Vec<_> = unreadable.into_iter().filter(is_new).collect();
                notes.extend(unreadable);
            }
            if is_group(&kind) && is_counted {
                let evaluated = Observation::open(&location, now, GroupQuery::One(word))?;
                let is_it = |group: &Group| (&group.kind, &group.name) == (&kind, &name);
                notes.extend(replace_stored(&mut row, evaluated.groups().into_iter().find(is_it).as_ref()));
                let more = evaluated.notes.problems.into_iter();
                let more = more.filter(|problem| !observation.notes.problems.contains(problem));
                problems.extend(more);
            }
            rows.push(Ok(row));
        }
        anyhow::Ok((rows, problems, notes))
    };
    let (rows, problems, notes) = match read() {
        Ok(read) => read,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let mut outcome = print(command.output, &rows, now, screen)?;
    if !problems.is_empty() {
        outcome.code = BAD_INPUT;
    }
    outcome.errors.extend(problems);
    outcome.notes.extend(notes);
    Ok(outcome)
}

/// Replaces the verdict on an object alone by the one with which it counts as a member, whether it belongs to
/// an Application or not. Returns a note for each kind below it that the user may not list.
fn count(
    row: &mut Row,
    (kind, name): (&GroupKind, &NamespacedName),
    applications: Option<(&[Group], &Notes)>,
    observation: &Observation,
) -> Result<Vec<String>> {
    let below = kinds_below(kind);
    let found = applications.and_then(|(groups, notes)| Some((member_of(groups, kind, name)?, notes)));
    let (alone, member, notes);
    match found {
        Some(of_application) => (member, notes) = of_application,
        None if below.is_empty() => return Ok(Vec::new()),
        None => {
            alone = observation.alone(kind, name)?;
            let (Some(of_alone), notes_of_alone) = &alone else { return Ok(Vec::new()) };
            (member, notes) = (of_alone, notes_of_alone);
        }
    }
    count_as(row, member, |kind, name| observation.evidence(kind, name));
    let is_ready = row.assessment.state() == Some(State::Ready);
    let unreadable = notes.of_below(is_ready).filter(|(kind, _)| below.contains(&(&kind.group, &kind.kind)));
    Ok(unreadable.map(|(_, note)| note.clone()).collect())
}

/// The object as a member of an Application.
fn member_of<'g>(groups: &'g [Group], kind: &GroupKind, name: &NamespacedName) -> Option<&'g Member> {
    let applications = groups.iter().filter(|group| !group.is_rollup());
    let mut members = applications.flat_map(|group| &group.members);
    members.find(|member| member.uid.is_some() && (&member.kind, &member.name) == (kind, name))
}

/// Replaces the verdict on the object alone by the one with which it counts for its Application, if objects
/// below it decide: its Pods, or the endpoints of a Service.
fn count_as(row: &mut Row, member: &Member, evidence: impl Fn(&GroupKind, &NamespacedName) -> Vec<Evidence>) {
    let Some(own) = row.assessment.verdict().cloned() else { return };
    let is_same = (member.state, &*member.reason) == (own.state, &*own.reason);
    if is_same {
        row.assessment = Assessment::Native(Verdict { since: member.since, ..own });
        return;
    }
    if member.state == State::Unknown {
        return;
    }
    if member.rule.as_ref() != Some(&own.rule) {
        let name =
            member.cause.as_ref().map(|cause| NamespacedName::new(&member.name.namespace, &cause.name));
        row.evidence = name.map(|name| evidence(&GroupKind::pod(), &name));
    }
    row.assessment = Assessment::Native(Verdict {
        state: member.state,
        progress: member.progress,
        reason: member.reason.clone().into(),
        message: member.message.clone().into(),
        since: member.since,
        rule: member.rule.clone().unwrap_or_else(|| own.rule.clone()),
        later: None,
        ..own
    });
}

/// Replaces the verdict on the stored status of a group by that of its evaluation, if they differ: the stored
/// status may be stale. Returns a note about it.
fn replace_stored(row: &mut Row, group: Option<&Group>) -> Option<String> {
    let heading = row.identity.heading();
    let stored = row.assessment.verdict()?.clone();
    let Some(group) = group else {
        return Some(format!("{heading}: showing the stored status: its members cannot be read"));
    };
    let verdict = group.verdict(&stored)?;
    if (verdict.state, &verdict.message) == (stored.state, &stored.message) {
        row.assessment =
            Assessment::Native(Verdict { since: verdict.since, reason: verdict.reason, ..stored });
        return None;
    }
    row.assessment = Assessment::Native(verdict);
    row.evidence = Some(group.conditions.iter().map(condition).collect());
    let (state, message) = (stored.state.name(), stored.message);
    Some(format!("{heading}: stored status is {state}: {message}; showing the current assessment"))
}

/// A condition as the controller would write it now.
fn condition(Condition { type_, statement, .. }: &Condition) -> Evidence {
    let fields = [
        ("status", statement.status.name().to_owned()),
        ("reason", statement.reason.to_string()),
        ("message", statement.message.to_string()),
    ];
    let fields = fields.into_iter().map(|(field, text)| (field.into(), Value::Text(text.into())));
    Evidence { path: format!("status.conditions[{type_}]"), value: Some(Value::Map(fields.collect())) }
}

fn print(
    format: ExplainFormat,
    read: &[Result<Row, InputError>],
    now: Timestamp,
    screen: Screen,
) -> Result<Outcome> {
    let text = match format {
        ExplainFormat::Json => format!("{}\n", serde_json::to_string_pretty(&entries(read))?),
        ExplainFormat::Yaml => serde_saphyr::to_string(&entries(read))?,
        ExplainFormat::Text if read.is_empty() => NO_OBJECTS.to_owned(),
        ExplainFormat::Text => {
            let rules = rules();
            let texts: Vec<_> =
                read.iter().flatten().map(|row| explanation(row, &rules, now, screen)).collect();
            texts.join("\n")
        }
    };
    Ok(Outcome { text, errors: errors(read), code: exit_code(read), ..Outcome::default() })
}

/// Columns of the titles at the left.
const TITLES: usize = 12;

fn explanation(row: &Row, rules: &[RuleText], now: Timestamp, screen: Screen) -> String {
    let width = screen.page().saturating_sub(TITLES);
    let Some(verdict) = row.assessment.verdict() else { return String::new() };
    let word = row.assessment.word();
    let state = screen.paint(&word, style(row.assessment.state()));
    let mut text = format!("{}: {state}", row.identity.heading());
    let why = row.assessment.why();
    if !why.is_empty() {
        let _ = write!(text, ": {why}");
    }
    text.push('\n');
    let mut add = |title: &str, lines: Vec<String>| {
        for (index, line) in lines.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let line = screen.width.map_or(line.as_str().into(), |all| cut(line, all.saturating_sub(TITLES)));
            let _ = writeln!(text, "  {title:<8}  {line}");
        }
    };
    if let Some(since) = verdict.since {
        add("since", vec![format!("{since} ({} ago)", how_long(since, now))]);
    }
    if verdict.state != State::Unknown {
        add("progress", vec![bar(Some(verdict.progress))]);
    }
    add("rule", vec![evidence::rule(verdict)]);
    if let Some(rule) = rules.iter().find(|rule| is_rule_of(verdict, rule)) {
        add("", wrap(&rule.description, width));
    }
    if let Some(later) = &verdict.later {
        let Verdict { state, reason, message, .. } = &later.verdict;
        let then = format!("{} at {} if the object does not change", state.name(), later.at);
        add(
            "later",
            wrap(&format!("{then}: {}", printable(&reason_and_message(*state, reason, message))), width),
        );
    }
    let evidence = row.evidence.as_deref().unwrap_or_default();
    let room = screen.width.map_or(usize::MAX, |all| all.saturating_sub(TITLES));
    add("read", evidence::found(evidence, room));
    add("absent", evidence::absent(evidence, width));
    text
}

/// Whether the text is that of the rule of a verdict. Without a rule, it is that of the generic rule that
/// does not apply.
fn is_rule_of(verdict: &Verdict, rule: &RuleText) -> bool {
    let Rule { source, id } = &verdict.rule;
    rule.id == id && (rule.source == *source || *source == Source::None)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("deploy/web", true)]
    #[case("statefulsets.apps/mysql", true)]
    #[case("dump/web.yaml", false)]
    #[case("dump/web.ndjson", false)]
    #[case("dump/shop/web", false)]
    #[case("./web", false)]
    #[case("/web", false)]
    #[case("dump/", false)]
    #[case("web", false)]
    fn objects_do_not_look_like_files(#[case] word: &str, #[case] is: bool) {
        assert_eq!(is_object(word), is);
    }
}
