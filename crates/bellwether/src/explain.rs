//! `bellwether explain`: how a verdict came about.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result};
use bellwether_engine::{Condition, Group, GroupKind};
use bellwether_health::{Context, Evidence, Rule, RuleText, Source, Verdict, rules};
use bellwether_input::Problem;
use bellwether_inspect::observe::{GroupQuery, Observation, is_group};
use bellwether_model::{State, Value};
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
    let objects = named(command);
    if !objects.is_empty() {
        return explain_named(command, &objects, screen);
    }
    if !command.place.from.is_empty() {
        let error = "--from stands for a cluster: name objects in it as KIND/NAME, or leave --from out to explain files";
        return Ok(Outcome::bad_input(error.to_owned()));
    }
    let inputs = match command.objects.inputs("explain") {
        Ok(inputs) => inputs,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let chosen = Chosen::by(&command.objects.rules);
    let context = command.objects.context(&chosen.rules);
    let speaker = Assessor { dialect: Dialect::Native, context, evidence: true };
    let read = bellwether_input::read(&inputs, &chosen.plan(), &|object| speaker.of(object));
    let mut outcome = told(command.output, &read, context.now, screen)?;
    outcome.notes.extend(stored_groups(&read));
    Ok(chosen.spoken_of(outcome))
}

/// The words that name objects of a cluster, `deploy/web`, and no files.
fn named(command: &Explain) -> Vec<&str> {
    let is_object = |word: &&str| is_object(word) && !Path::new(word).exists();
    command.objects.files.iter().filter_map(|file| file.to_str()).filter(is_object).collect()
}

/// Whether a word looks like an object rather than a file: whoever misspells a file does not mean a cluster.
fn is_object(word: &str) -> bool {
    let looks_like_a_file =
        word.starts_with(['.', '/', '~']) || bellwether_input::holds_objects(Path::new(word));
    let is_kind_and_name =
        word.split_once('/').is_some_and(|(_, name)| !name.is_empty() && !name.contains('/'));
    is_kind_and_name && !looks_like_a_file
}

/// Explains objects of a cluster, or of files that stand for one.
fn explain_named(command: &Explain, objects: &[&str], screen: Screen) -> Result<Outcome> {
    let Explain { objects: Objects { named, files, now, no_builtin, rules }, place, .. } = command;
    if !named.is_empty() || files.len() > objects.len() {
        let names = objects.join(", ");
        let error = format!("{names} is no file, and the rest are files: name either objects or files");
        return Ok(Outcome::bad_input(error));
    }
    let chosen = Chosen::by(rules);
    let (place, now) = (place.place(), now.unwrap_or_else(Timestamp::now));
    let read = || {
        let sight = Observation::glimpse(&place, now, &[GroupKind::own("HealthRule")])?;
        let context = Context { builtin: !no_builtin, ..sight.context() };
        let context =
            if rules.is_empty() { context } else { Context { rules: Some(&chosen.rules), ..context } };
        let speaker = Assessor { dialect: Dialect::Native, context, evidence: true };
        let (mut rows, mut problems, mut notes) =
            (Vec::new(), sight.remarks.problems.clone(), sight.remarks.notes.clone());
        for word in objects {
            let (kind, name) = sight.object_named(word)?;
            let row = sight.with(&kind, &name, &|object| speaker.of(object))?;
            let absent = || format!("there is no {kind} {:?} {}", &*name.name, sight.whereabouts());
            let mut row = row.with_context(absent)?;
            // Whoever asks for rules wants to see what they make of what is stored.
            if is_group(&kind) && rules.is_empty() && !no_builtin {
                let anew = Observation::open(&place, now, GroupQuery::One(word))?;
                let is_it = |group: &Group| (&group.kind, &group.name) == (&kind, &name);
                notes.extend(look_anew(&mut row, anew.groups().into_iter().find(is_it).as_ref()));
                let more = anew.remarks.problems.into_iter();
                let more = more.filter(|problem| !sight.remarks.problems.contains(problem));
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
    let mut outcome = chosen.spoken_of(told(command.output, &rows, now, screen)?);
    if !problems.is_empty() {
        outcome.code = BAD_INPUT;
    }
    outcome.errors.extend(problems);
    outcome.notes.extend(notes);
    Ok(outcome)
}

/// What is stored in a group may be of long ago: if it is not so any more, what is found now takes its place. Gives back
/// what should be known of that.
fn look_anew(row: &mut Row, group: Option<&Group>) -> Option<String> {
    let who = row.identity.in_words();
    let stored = row.said.verdict()?.clone();
    let Some(group) = group else {
        return Some(format!("{who} is told as it is stored, because what it counts could not be looked at"));
    };
    let verdict = group.verdict(&stored)?;
    if (verdict.state, &verdict.message) == (stored.state, &stored.message) {
        return None;
    }
    row.said = Assessment::Native(verdict);
    row.evidence = Some(group.conditions.iter().map(condition).collect());
    Some(format!(
        "{who} is told as it is now; what is stored of it says {}: {}",
        stored.state.name(),
        stored.message
    ))
}

/// A condition as it would be written now.
fn condition(Condition { type_, statement: says, .. }: &Condition) -> Evidence {
    let fields = [
        ("status", says.status.name().to_owned()),
        ("reason", says.reason.to_string()),
        ("message", says.message.to_string()),
    ];
    let fields = fields.into_iter().map(|(field, text)| (field.into(), Value::Text(text.into())));
    Evidence { path: format!("status.conditions[{type_}]"), value: Some(Value::Map(fields.collect())) }
}

/// The stories of all that was read.
fn told(
    format: ExplainFormat,
    read: &[Result<Row, Problem>],
    now: Timestamp,
    screen: Screen,
) -> Result<Outcome> {
    let text = match format {
        ExplainFormat::Json => format!("{}\n", serde_json::to_string_pretty(&entries(read))?),
        ExplainFormat::Yaml => serde_saphyr::to_string(&entries(read))?,
        ExplainFormat::Text if read.is_empty() => NO_OBJECTS.to_owned(),
        ExplainFormat::Text => {
            let rules = rules();
            let stories: Vec<_> = read.iter().flatten().map(|row| story(row, &rules, now, screen)).collect();
            stories.join("\n")
        }
    };
    Ok(Outcome { text, errors: errors(read), code: exit_code(read), ..Outcome::default() })
}

/// The width of the titles at the left.
const TITLES: usize = 12;

fn story(row: &Row, rules: &[RuleText], now: Timestamp, screen: Screen) -> String {
    let width = screen.page().saturating_sub(TITLES);
    let Some(verdict) = row.said.verdict() else { return String::new() };
    let word = row.said.word();
    let state = screen.paint(&word, style(row.said.state()));
    let mut text = format!("{} is {state}: {}\n", row.identity.in_words(), sentence(&row.said.message()));
    let mut add = |title: &str, lines: Vec<String>| {
        for (index, line) in lines.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let line = screen.width.map_or(line.as_str().into(), |all| cut(line, all.saturating_sub(TITLES)));
            let _ = writeln!(text, "  {title:<8}  {line}");
        }
    };
    if let Some(since) = verdict.since {
        add("since", vec![format!("{since}, for {}", how_long(since, now))]);
    }
    if verdict.state != State::Unknown {
        add("progress", vec![bar(Some(verdict.progress))]);
    }
    add("rule", vec![evidence::rule(verdict)]);
    if let Some(rule) = rules.iter().find(|rule| is_told_in(verdict, rule)) {
        add("", wrap(&rule.description, width));
    }
    if let Some(later) = &verdict.later {
        let then = format!("{:?} from {} on if nothing changes", later.verdict.state, later.at);
        add("later", wrap(&format!("{then}: {}", sentence(&printable(&later.verdict.message))), width));
    }
    let evidence = row.evidence.as_deref().unwrap_or_default();
    add("read", evidence::found(evidence));
    add("absent", evidence::absent(evidence, width));
    text
}

/// Whether this is the rule of the verdict, or says that there is none.
fn is_told_in(verdict: &Verdict, rule: &RuleText) -> bool {
    let Rule { source, id } = &verdict.rule;
    rule.id == id && (rule.source == *source || *source == Source::None)
}

/// With a full stop, unless it ends in a way of its own.
fn sentence(message: &str) -> String {
    let message = message.trim();
    if message.ends_with(['.', '!', '?', '…']) { message.to_owned() } else { format!("{message}.") }
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
