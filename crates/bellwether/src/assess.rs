//! `bellwether assess`: the health of objects from files or stdin.

use std::{collections::BTreeSet, fmt::Write as _};

use anyhow::Result;
use bellwether_health::Evidence;
use bellwether_input::InputError;
use bellwether_inspect::{observe::is_group, shell::program};
use bellwether_model::State;
use bellwether_terminal::{
    BELOW, Cell, MANY, ROOM_FOR_BARS, Screen, Table, WORST_FIRST, bar, how_long, printable, rank, sign,
    style, wrap,
};
use jiff::Timestamp;

use crate::{
    assessment::{Assessor, Row, entries},
    cli::{Assess, AssessFormat, Dialect},
    evidence,
    output::{BAD_INPUT, Outcome},
    rules::Chosen,
};

pub(crate) fn run(command: &Assess, screen: Screen) -> Result<Outcome> {
    if command.dialect != Dialect::Native
        && (command.explain || command.objects.no_builtin || !command.objects.rules.is_empty())
    {
        let error = "--explain, --no-builtin and --rules require --dialect native";
        return Ok(Outcome::bad_input(error.to_owned()));
    }
    let inputs = match command.inputs() {
        Ok(inputs) => inputs,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let chosen = match Chosen::by(&command.objects.rules) {
        Ok(chosen) => chosen,
        Err(outcome) => return Ok(outcome),
    };
    let context = command.objects.context(&chosen.rules);
    let assessor = Assessor { dialect: command.dialect, context, evidence: command.explain };
    let plan = chosen.plan();
    let mut read = Vec::new();
    for (cluster, inputs) in inputs {
        let entries = bellwether_input::read(&inputs, &plan, &|object| assessor.assess(object));
        read.extend(entries.into_iter().map(|entry| entry.map(|row| row.in_cluster(cluster.clone()))));
    }
    let text = match command.output {
        AssessFormat::Json => format!("{}\n", serde_json::to_string_pretty(&entries(&read))?),
        AssessFormat::Yaml => serde_saphyr::to_string(&entries(&read))?,
        AssessFormat::Name => names(&read),
        AssessFormat::Table | AssessFormat::Wide => {
            let wide = command.output == AssessFormat::Wide;
            let rows = read.iter().flatten().collect();
            let page = Page { rows, wide, all: wide || command.all, now: context.now };
            page.print(if wide { screen.without_end() } else { screen }, read.len())
        }
    };
    // kstatus and Argo CD do not have Applications and Rollups.
    let notes = if command.dialect == Dialect::Native { stored_groups(&read) } else { None };
    Ok(Outcome {
        text,
        errors: errors(&read),
        notes: notes.into_iter().collect(),
        code: exit_code(&read),
        ..Outcome::default()
    })
}

/// A note that groups are assessed by their stored status, which may be stale. None without groups.
pub(crate) fn stored_groups(read: &[Result<Row, InputError>]) -> Option<String> {
    let group = read.iter().flatten().find(|row| is_group(&row.identity.kind()))?;
    Some(format!(
        "Applications and Rollups (e.g. {}) are assessed by their stored status. To assess their members, run: {} status \
         --from FILE",
        group.identity.heading(),
        program()
    ))
}

/// 0 if all objects are healthy, 1 if one is not, 2 if one could not be read.
pub(crate) fn exit_code(read: &[Result<Row, InputError>]) -> u8 {
    if read.iter().any(Result::is_err) {
        BAD_INPUT
    } else {
        u8::from(read.iter().flatten().any(|row| !row.assessment.is_healthy()))
    }
}

/// The output for an empty list.
pub(crate) const NO_OBJECTS: &str = "No objects found.\n";

const MAX_ERRORS: usize = 20;

/// A sentence for each document that could not be read.
pub(crate) fn errors(read: &[Result<Row, InputError>]) -> Vec<String> {
    let problems = || read.iter().filter_map(|entry| entry.as_ref().err());
    let mut errors: Vec<_> = problems().take(MAX_ERRORS).map(InputError::to_string).collect();
    let more = problems().count() - errors.len();
    if more > 0 {
        errors.push(format!("and {more} more (use -o json to list them all)"));
    }
    errors
}

fn names(read: &[Result<Row, InputError>]) -> String {
    read.iter().flatten().fold(String::new(), |mut names, row| {
        names.push_str(&row.identity.qualified());
        names.push('\n');
        names
    })
}

/// A table, the worst first, and a summary.
struct Page<'r> {
    rows: Vec<&'r Row>,
    wide: bool,
    /// List Ready objects even if there are many.
    all: bool,
    now: Timestamp,
}

impl Page<'_> {
    fn print(mut self, screen: Screen, entries: usize) -> String {
        if self.rows.is_empty() {
            // With errors, those are the output.
            return if entries == 0 { NO_OBJECTS.to_owned() } else { String::new() };
        }
        self.rows.sort_by_key(|row| rank(row.assessment.state()));
        let ready = self.rows.iter().filter(|row| row.assessment.state() == Some(State::Ready)).count();
        let hides = ready > MANY && !self.all;
        let summary = self.summary(hides, entries - self.rows.len(), screen);
        if hides {
            self.rows.retain(|row| row.assessment.state() != Some(State::Ready));
        }
        let table = self.table(screen);
        if table.is_empty() { summary } else { format!("{}\n{summary}", table.print(screen)) }
    }

    fn table(&self, screen: Screen) -> Table {
        let native = self.rows.iter().any(|row| row.assessment.verdict().is_some());
        // A table omits a column without content.
        let mut headers = vec!["CLUSTER", "NAMESPACE", "NAME", if native { "STATE" } else { "STATUS" }];
        if native {
            headers.extend(["FOR", "PROGRESS"]);
            headers.extend(self.wide.then_some(["REASON", "RULE"]).into_iter().flatten());
        }
        headers.push("WHY");
        let mut table = Table::new(headers);
        for row in &self.rows {
            let state = row.assessment.state();
            let mut cells: Vec<Cell> = vec![
                row.identity.cluster.clone().unwrap_or_default().into(),
                printable(&row.identity.namespace).into_owned().into(),
                row.identity.short().into(),
                Cell::styled(format!("{} {}", sign(state), row.assessment.word()), style(state)),
            ];
            if let Some(verdict) = row.assessment.verdict() {
                let progress = (verdict.state != State::Unknown).then_some(verdict.progress);
                cells.push(verdict.since.map(|since| how_long(since, self.now)).unwrap_or_default().into());
                // On a narrow screen, names and reasons need the room.
                let has_room = screen.width.is_none_or(|width| width >= ROOM_FOR_BARS);
                cells.push(if has_room { bar(progress).into() } else { Cell::default() });
                if self.wide {
                    cells.push(verdict.reason.clone().into_owned().into());
                    cells.push(evidence::rule(verdict).into());
                }
            }
            // With `wide`, the reason has a column of its own.
            let why = match (self.wide, row.assessment.is_healthy()) {
                (true, _) => row.assessment.message().into_owned(),
                (false, true) => String::new(),
                (false, false) => row.assessment.why(),
            };
            cells.push(why.into());
            table.push(
                cells,
                row.evidence.as_deref().map(|evidence| fields(evidence, screen)).unwrap_or_default(),
            );
        }
        table
    }

    fn summary(&self, hides: bool, errors: usize, screen: Screen) -> String {
        let mut parts: Vec<_> = WORST_FIRST
            .iter()
            .filter_map(|state| {
                let mut rows = self.rows.iter().filter(|row| row.assessment.state() == *state);
                let first = rows.next()?;
                let word = match state {
                    Some(_) => first.assessment.word(),
                    None => "without a health check".to_owned(),
                };
                Some(format!("{} {word}", 1 + rows.count()))
            })
            .collect();
        if hides && let Some(ready) = parts.last_mut() {
            ready.push_str(" (use --all to list them)");
        }
        if errors > 0 {
            parts.push(format!("{errors} error{}", if errors == 1 { "" } else { "s" }));
        }
        let mut summary = format!("{}.", parts.join(", "));
        let without_rule = self.rows.iter().filter(|row| row.assessment.has_no_rule());
        let without_rule: Vec<_> = without_rule.map(|row| row.identity.kind().to_string()).collect();
        if !without_rule.is_empty() {
            let (all, without) = (self.rows.len(), without_rule.len());
            let kinds: BTreeSet<_> = without_rule.iter().map(String::as_str).collect();
            let kinds: Vec<_> = kinds.into_iter().collect();
            let _ = write!(
                summary,
                " {} of {all} objects assessed; no rule for {without} ({}).",
                all - without,
                printable(&kinds.join(", "))
            );
        }
        wrap(&summary, screen.width.unwrap_or(usize::MAX)).join("\n") + "\n"
    }
}

/// The fields that a verdict is based on.
fn fields(evidence: &[Evidence], screen: Screen) -> Vec<String> {
    let room = screen.width.map_or(usize::MAX, |width| width.saturating_sub(BELOW));
    let mut lines = evidence::found(evidence, room);
    let absent = evidence::absent(evidence, screen.page() - BELOW - "absent: ".len());
    lines.extend(absent.iter().enumerate().map(|(index, line)| {
        let title = if index == 0 { "absent: " } else { "        " };
        format!("{title}{line}")
    }));
    lines
}
