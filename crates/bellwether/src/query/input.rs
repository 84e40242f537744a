//! What is asked: collectors from files, or a statement.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use bellwether_api::{Aggregator, GROUP, StatusCollectorSpec, VERSION};
use bellwether_input::ObjectLocation;
use bellwether_inspect::{fleet::Shape, shell::program};
use bellwether_model::{Object, Plan};
use bellwether_sql::{From, MAX_LIMIT, is_statement, translate};
use bellwether_tables::Collector;
use bellwether_terminal::first_few;
use serde_json::{Value as Json, json};

use crate::{
    cli::Query,
    collectors::{Checked, KIND, Written, check, kind_of_bare, manifest, of_kubestellar},
    output::{BAD_INPUT, Outcome},
    rules::or_unnamed,
};

/// The name of the collector of a statement.
const NAME_OF_STATEMENT: &str = "query";

pub(super) struct Input {
    pub(super) collectors: Vec<NamedCollector>,
    /// The objects that a statement names.
    pub(super) from: Option<From>,
    pub(super) shape: Shape,
    pub(super) notes: Vec<String>,
}

pub(super) struct NamedCollector {
    pub(super) name: String,
    pub(super) collector: Arc<Collector>,
    pub(super) spec: StatusCollectorSpec,
    manifest: Json,
    /// The columns to show, in order; None for all.
    pub(super) columns: Option<Vec<String>>,
    pub(super) limit: u64,
    pub(super) offset: u64,
}

impl NamedCollector {
    /// The first column that counts rows of groups.
    pub(super) fn counts(&self) -> Option<&str> {
        let has_groups = !self.spec.group_by.is_empty();
        let mut fields = self.spec.combined_fields.iter().filter(|_| has_groups);
        fields.find(|field| field.type_ == Aggregator::Count).map(|field| &*field.name)
    }
}

impl Input {
    pub(super) fn of(command: &Query) -> Result<Self, Outcome> {
        if is_statement(&command.query) {
            Self::of_statement(&command.query)
        } else {
            Self::of_files(&command.query)
        }
    }

    fn of_statement(text: &str) -> Result<Self, Outcome> {
        let statement =
            translate(text).map_err(|error| Outcome::bad_input(format!("invalid statement: {error}")))?;
        let collector = Collector::compile(&statement.spec).map_err(|errors| Outcome {
            errors: errors.iter().map(|error| format!("invalid statement: {error}")).collect(),
            code: BAD_INPUT,
            ..Outcome::default()
        })?;
        let spec =
            serde_json::to_value(&statement.spec).map_err(|error| Outcome::bad_input(error.to_string()))?;
        let manifest = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": KIND,
            "metadata": { "name": NAME_OF_STATEMENT },
            "spec": spec,
        });
        let named = NamedCollector {
            name: NAME_OF_STATEMENT.to_owned(),
            collector: Arc::new(collector),
            spec: statement.spec,
            manifest,
            columns: Some(statement.columns),
            limit: statement.limit.unwrap_or(MAX_LIMIT),
            offset: statement.offset,
        };
        Ok(Self { collectors: vec![named], from: statement.from, shape: Shape::OneTable, notes: Vec::new() })
    }

    fn of_files(file: &str) -> Result<Self, Outcome> {
        let visit = |object: &Object<'_>, location: &ObjectLocation<'_>| match (
            object.group() == GROUP,
            object.kind() == KIND,
        ) {
            (true, true) => Some(Ok(read(object, location))),
            (false, true) => of_kubestellar(object, location).map(Err),
            _ => None,
        };
        let inputs = [PathBuf::from(file)];
        let entries =
            bellwether_input::read_with_bare_documents(&inputs, &Plan::whole(), &visit, &kind_of_bare);
        let (mut collectors, mut notes, mut errors, mut foreign) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match entry {
                Err(error) => errors.push(error.to_string()),
                Ok(None) => {}
                Ok(Some(Err(of_kubestellar))) => foreign.push(of_kubestellar),
                Ok(Some(Ok(Err(found)))) => errors.extend(found),
                Ok(Some(Ok(Ok((named, slips))))) => {
                    collectors.push(named);
                    notes.extend(slips);
                }
            }
        }
        if collectors.is_empty() && errors.is_empty() {
            errors = first_few(foreign);
            if errors.is_empty() {
                errors.push(format!("no StatusCollector in {file}"));
            }
        }
        if !errors.is_empty() {
            return Err(Outcome { errors, code: BAD_INPUT, ..Outcome::default() });
        }
        let mut notes = first_few(notes);
        if !notes.is_empty() {
            notes.push(format!("to print the corrected form, run: {} query {file} --show", program()));
        }
        Ok(Self { collectors, from: None, shape: Shape::TableForEachObject, notes })
    }

    /// The collectors as YAML.
    pub(super) fn show(&self) -> Result<Outcome> {
        let manifests = self.collectors.iter().map(|named| manifest(&named.manifest));
        let text = manifests.collect::<Result<Vec<_>>>()?.join("---\n");
        let notes = self.collectors.iter().filter(|named| named.columns.is_some()).flat_map(|named| {
            let offset = (named.offset > 0).then(|| "a StatusCollector has no OFFSET".to_owned());
            let limit = (named.limit > MAX_LIMIT)
                .then(|| format!("the limit of a StatusCollector is at most {MAX_LIMIT}"));
            offset.into_iter().chain(limit)
        });
        Ok(Outcome { text, notes: notes.collect(), ..Outcome::default() })
    }
}

/// A collector with a sentence for each slip; or a sentence for each error.
fn read(
    object: &Object<'_>,
    location: &ObjectLocation<'_>,
) -> Result<(NamedCollector, Vec<String>), Vec<String>> {
    let written = Written::of(object);
    let lines = location.lines();
    let file = location.file();
    let line = |field: &str| {
        lines.of(if written.is_bare { field.strip_prefix("spec.").unwrap_or(field) } else { field })
    };
    let Checked { spec, collector } = check(&written).map_err(|findings| {
        let sentence = |finding: &crate::rules::Finding| {
            let line = finding.field().map_or_else(|| lines.first(), line);
            format!("{file}:{line}: {finding}")
        };
        findings.iter().map(sentence).collect::<Vec<_>>()
    })?;
    let slips = written.slips.iter();
    let slips =
        slips.map(|slip| format!("{file}:{}: {}: {}", line(&slip.field), slip.field, slip.message)).collect();
    let named = NamedCollector {
        name: or_unnamed(&written.name).to_owned(),
        collector: Arc::new(collector),
        limit: u64::try_from(spec.limit).unwrap_or(MAX_LIMIT),
        spec,
        manifest: written.manifest,
        columns: None,
        offset: 0,
    };
    Ok((named, slips))
}
