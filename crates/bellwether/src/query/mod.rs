//! `bellwether query`: collectors over many clusters, once.

mod controller;
mod input;
mod print;
mod request;

use std::sync::Arc;

use anyhow::Result;
use bellwether_inspect::fleet::{self, Evaluated, Fields, Fleet, ObjectQuery, ReadCluster, ReadSettings};
use bellwether_terminal::Screen;
use jiff::Timestamp;

pub(crate) use self::print::Answer;
use self::{controller::FromController, input::Input, request::Request};
use crate::{cli::Query, output::Outcome, rules::Chosen};

/// The exit code if something could not be read or evaluated.
const INCOMPLETE: u8 = 3;

pub(crate) fn run(command: &Query, screen: Screen) -> Result<Outcome> {
    let input = match Input::of(command) {
        Ok(input) => input,
        Err(outcome) => return Ok(outcome),
    };
    if command.show {
        return input.show();
    }
    if let Some(address) = &command.controller {
        return match controller::ask(address, command, &input) {
            Ok(FromController { answers, errors }) => {
                outcome(&answers, (errors, input.notes), command, screen)
            }
            Err(outcome) => Ok(outcome),
        };
    }
    let chosen = match Chosen::by(&command.rules) {
        Ok(chosen) => chosen,
        Err(outcome) => return Ok(outcome),
    };
    let requests = match request::requests(command, &input) {
        Ok(requests) => requests,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let settings = ReadSettings {
        rules: Arc::new(chosen.rules),
        now: command.now.unwrap_or_else(Timestamp::now),
        request_timeout: command.request_timeout,
        fields: Fields::of(input.collectors.iter().map(|named| &*named.collector)),
    };
    let collectors: Vec<_> = input.collectors.iter().map(|named| Arc::clone(&named.collector)).collect();
    let (mut answers, mut errors, mut notes) = (Vec::new(), Vec::new(), input.notes.clone());
    for Request { hub, clusters, objects } in requests {
        let fleet = fleet::read(hub, clusters, &objects, &settings)?;
        let evaluated = fleet::tables(&fleet, &objects, &collectors, input.shape);
        errors.extend(
            unread(&fleet, &objects).into_iter().filter(|error| !errors.contains(error)).collect::<Vec<_>>(),
        );
        notes.extend(of_clusters(&fleet, |cluster| &cluster.notes));
        answers.extend(evaluated.iter().flat_map(|evaluated| answers_of(evaluated, &input, command)));
    }
    outcome(&answers, (errors, notes), command, screen)
}

/// Prints answers, with what could not be read or evaluated.
fn outcome(
    answers: &[Answer],
    (mut errors, mut notes): (Vec<String>, Vec<String>),
    command: &Query,
    screen: Screen,
) -> Result<Outcome> {
    let several = answers.len() > 1;
    errors.extend(answers.iter().flat_map(|answer| answer.errors(several)));
    notes.extend(answers.iter().filter_map(|answer| answer.more(several)));
    let text = match print::print(answers, command.output, screen)? {
        Ok(text) => text,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let code = if errors.is_empty() { 0 } else { INCOMPLETE };
    Ok(Outcome { text, errors, notes, code, ..Outcome::default() })
}

/// A result for each collector.
fn answers_of(evaluated: &Evaluated, input: &Input, command: &Query) -> Vec<Answer> {
    let tables = input.collectors.iter().zip(&evaluated.tables);
    let answer = |(named, table): (&input::NamedCollector, &bellwether_tables::Table)| {
        let offset = command.offset.unwrap_or(named.offset);
        let limit = command.limit.unwrap_or(named.limit);
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let result = table.page(&named.name, size(offset), size(limit));
        Answer::new(evaluated, result, named.columns.as_deref(), offset).with_counts(named.counts())
    };
    tables.map(answer).collect()
}

/// A sentence for each cluster that could not be read, and for each object that no cluster has.
fn unread(fleet: &Fleet, objects: &ObjectQuery) -> Vec<String> {
    let mut errors = of_clusters(fleet, |cluster| &cluster.errors);
    let read = || fleet.hub.iter().chain(&fleet.clusters);
    let is_kind_known = read().any(|cluster| cluster.kind.is_some());
    let is_read = read().any(ReadCluster::is_read);
    if is_read && !is_kind_known {
        errors.push(format!("no objects of kind {:?} in any cluster", objects.kind));
    } else if is_read {
        let place = fleet.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}"));
        for name in objects.names.iter().filter(|name| !read().any(|cluster| cluster.has(name))) {
            errors.push(format!(
                "{}/{name} not found in any cluster{}",
                objects.kind,
                place.as_deref().unwrap_or_default()
            ));
        }
    }
    errors
}

fn of_clusters(fleet: &Fleet, sentences: impl Fn(&ReadCluster) -> &Vec<String>) -> Vec<String> {
    let of_hub = fleet.hub.iter().flat_map(|hub| sentences(hub).iter().map(|text| format!("hub: {text}")));
    let clusters = fleet.clusters.iter();
    let of_clusters = clusters.flat_map(|cluster| {
        sentences(cluster).iter().map(move |text| format!("cluster {}: {text}", cluster.name))
    });
    of_hub.chain(of_clusters).collect()
}
