//! `bellwether whose`: to which Application an object belongs.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use bellwether_api::APPLICATION_ANNOTATION;
use bellwether_engine::{Claim, Dialect, Facts, Kind, Light, Name, Owner, Relation};
use bellwether_model::Object;
use serde::Serialize;

use crate::{
    cli::{ExplainFormat, Whose},
    output::{BAD_INPUT, Outcome},
    sight::Sight,
    status::{as_json, as_yaml},
    terminal::{Screen, printable, wrap},
};

/// What was found out about an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    kind: String,
    namespace: String,
    name: String,
    /// How far the way from the object to its Application led.
    step: Step,
    /// The Application that its annotation names.
    #[serde(skip_serializing_if = "Option::is_none")]
    annotation: Option<String>,
    /// The Applications that count it.
    counted_by: Vec<String>,
    /// What owns it and is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<Through>,
}

/// An object that owns the one in question, itself or through others, and that Applications count.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Through {
    kind: String,
    name: String,
    counted_by: Vec<String>,
}

/// Where the way from an object to its Application ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Step {
    /// The object has no annotation: nobody was given it.
    NotAnnotated,
    /// There is no Application of that name, not yet or not any more.
    ApplicationAbsent,
    /// The labels do not match the selector: it is an orphan.
    LabelsDoNotMatch,
    /// The Application does not speak of its kind.
    KindNotCounted,
    /// It is a member that is not owned yet.
    NotYetOwned,
    /// It is a member, and its Application owns nothing.
    Member,
    /// It is a member and owned.
    Owned,
}

pub(crate) fn run(command: &Whose, screen: Screen) -> Result<Outcome> {
    let read = || {
        let own = [Kind::own("Application"), Dialect::AppK8sIo.kind(), Kind::own("HealthRule")];
        let sight = Sight::glimpse(&command.scene.place, command.scene.now, &own)?;
        let (kind, name) = sight.object_named(&command.object)?;
        let facts = look(&sight, &kind, &name)?;
        let facts =
            facts.with_context(|| format!("there is no {kind} {:?} {}", &*name.name, sight.whereabouts()))?;
        let mut found = find(&kind, &name, &facts, &sight.claims(&kind, &name, &facts));
        if found.counted_by.is_empty() {
            found.through = look_above(&sight, &name.namespace, facts)?;
        }
        anyhow::Ok((found, sight.problems))
    };
    let (found, errors) = match read() {
        Ok(read) => read,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let text = match command.output {
        ExplainFormat::Text => found.told(screen),
        ExplainFormat::Json => as_json(&found)?,
        ExplainFormat::Yaml => as_yaml(&found)?,
    };
    let is_nobodys = found.counted_by.is_empty() && found.through.is_none();
    let code = if errors.is_empty() { u8::from(is_nobodys) } else { BAD_INPUT };
    Ok(Outcome { text, errors, code, ..Outcome::default() })
}

fn look(sight: &Sight, kind: &Kind, name: &Name) -> Result<Option<Facts>> {
    let lens = sight.lens(kind);
    let look = |object: &Object<'_>| lens.look(object, Light { now: sight.now, has_status: None }).1.facts;
    sight.with(kind, name, &look)
}

/// So far up the owners of an object are followed.
const MOST_OWNERS: usize = 8;

/// The first of those that own an object, and own its owners, that an Application counts.
fn look_above(sight: &Sight, namespace: &str, mut facts: Facts) -> Result<Option<Through>> {
    for _ in 0..MOST_OWNERS {
        let is_managing = |owner: &&Owner| owner.controller == Some(true);
        let Some(owner) = facts.owners.iter().find(is_managing).or(facts.owners.first()) else { break };
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let (kind, name) = (Kind::new(group, &owner.kind), Name::new(namespace, &owner.name));
        let Some(above) = look(sight, &kind, &name)? else { break };
        let counted_by = counted_by(&sight.claims(&kind, &name, &above));
        if !counted_by.is_empty() {
            return Ok(Some(Through { kind: kind.to_string(), name: name.name.to_string(), counted_by }));
        }
        facts = above;
    }
    Ok(None)
}

/// The Applications that count an object.
fn counted_by(claims: &[Claim]) -> Vec<String> {
    let counts =
        |claim: &&Claim| matches!(claim.relation, Relation::Counts | Relation::OwnerToBe | Relation::Owner);
    claims.iter().filter(counts).map(|claim| claim.application.name.to_string()).collect()
}

fn find(kind: &Kind, name: &Name, facts: &Facts, claims: &[Claim]) -> Found {
    let named = facts.application.as_deref();
    let claim = claims.iter().find(|claim| claim.kind.is_own() && Some(&*claim.application.name) == named);
    let step = match (named, claim.map(|claim| claim.relation)) {
        (None, _) => Step::NotAnnotated,
        (Some(_), None) => Step::ApplicationAbsent,
        (_, Some(Relation::NotSelected | Relation::NotAMember)) => Step::LabelsDoNotMatch,
        (_, Some(Relation::OtherKinds)) => Step::KindNotCounted,
        (_, Some(Relation::OwnerToBe)) => Step::NotYetOwned,
        (_, Some(Relation::Counts)) => Step::Member,
        (_, Some(Relation::Owner)) => Step::Owned,
    };
    Found {
        kind: kind.to_string(),
        namespace: name.namespace.to_string(),
        name: name.name.to_string(),
        step,
        annotation: named.map(str::to_owned),
        counted_by: counted_by(claims),
        through: None,
    }
}

impl Found {
    fn told(&self, screen: Screen) -> String {
        let object = format!("{} {}", self.kind, Name::new(&self.namespace, &self.name));
        let application = self.annotation.as_deref().unwrap_or_default();
        let (is, way_out) = match self.step {
            Step::NotAnnotated => (
                format!("was handed over to no Application: it has no annotation {APPLICATION_ANNOTATION}."),
                String::new(),
            ),
            Step::ApplicationAbsent => (
                format!("was handed over to Application {application}, which is not there."),
                "It was deleted, or is not created yet.".to_owned(),
            ),
            Step::LabelsDoNotMatch => (
                format!(
                    "is an orphan: its annotation names Application {application}, whose selector its labels do not match."
                ),
                format!("Label it as {application} selects, or take the annotation away."),
            ),
            Step::KindNotCounted => (
                format!(
                    "was handed over to Application {application}, which does not count objects of its kind."
                ),
                format!("Name the kind in components or componentKinds of {application}."),
            ),
            Step::NotYetOwned => (
                format!("is a member of Application {application}, which does not own it yet."),
                "A controller that runs sets that in a moment: bellwether controller.".to_owned(),
            ),
            Step::Member => {
                (format!("is a member of Application {application}, which owns nothing."), String::new())
            }
            Step::Owned => {
                (format!("is a member of Application {application}, and is deleted with it."), String::new())
            }
        };
        let mut text = String::new();
        for line in wrap(&printable(&format!("{object} {is} {way_out}")), screen.page()) {
            let _ = writeln!(text, "{line}");
        }
        let others: Vec<_> =
            self.counted_by.iter().filter(|name| **name != application).map(String::as_str).collect();
        if !others.is_empty() {
            let _ = writeln!(
                text,
                "{}",
                printable(&format!("By its labels it is counted by {}.", others.join(", ")))
            );
        } else if let Some(Through { kind, name, counted_by }) = &self.through {
            let above =
                format!("But it is owned through {kind} {name}, a member of {}.", counted_by.join(", "));
            let _ = writeln!(text, "{}", printable(&above));
        } else if self.counted_by.is_empty() {
            let _ = writeln!(text, "No Application counts it.");
        }
        text
    }
}
