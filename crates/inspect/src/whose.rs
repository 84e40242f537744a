//! To which Application an object belongs, and of which Rollups it is a component.

use std::fmt::{self, Write as _};

use anyhow::{Context as _, Result};
use bellwether_api::APPLICATION_ANNOTATION;
use bellwether_engine::{
    Claim, Dialect, Facts, GroupKind, HEALTH_CHECK_LABEL, LookContext, NamespacedName, Owner, Relation,
};
use bellwether_model::Object;
use bellwether_terminal::{Screen, printable, wrap};
use jiff::Timestamp;
use serde::Serialize;

use crate::observe::{Location, Observation};

/// What was found out about an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectOwners {
    kind: String,
    namespace: String,
    name: String,
    /// How far the way from the object to its Application led.
    step: OwnerStep,
    /// The Application that its annotation names.
    #[serde(skip_serializing_if = "Option::is_none")]
    annotation: Option<String>,
    /// The Application whose health check it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<String>,
    /// The Applications that count it.
    counted_by: Vec<CountingApplication>,
    /// The Rollups that it is a component of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    component_of: Vec<Rollup>,
    /// What owns it and is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<ViaOwner>,
}

/// An Application that counts an object.
#[derive(Serialize)]
struct CountingApplication {
    kind: String,
    name: String,
    /// Whether it owns it.
    owns: bool,
    #[serde(skip)]
    is_own_api: bool,
}

/// Applications of other APIs name theirs.
impl fmt::Display for CountingApplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.is_own_api { Ok(()) } else { write!(f, " ({})", self.kind) }
    }
}

/// A Rollup that an object is a component of.
#[derive(Serialize)]
struct Rollup {
    name: String,
    by: ComponentMatch,
}

/// How a Rollup says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum ComponentMatch {
    Name,
    Selector,
}

/// An object that owns the one in question, itself or through others, and that groups count.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ViaOwner {
    kind: String,
    name: String,
    counted_by: Vec<CountingApplication>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    component_of: Vec<Rollup>,
}

/// Where the way from an object to its Application ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum OwnerStep {
    /// The object has no annotation: nobody was given it.
    NotAnnotated,
    /// It is the Pod of an Application's health check.
    HealthCheck,
    /// There is no Application of that name, not yet or not any more.
    ApplicationAbsent,
    /// Whether there is one could not be read.
    ApplicationUnknown,
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

/// What was found out about an object, and what could not be.
pub struct WhoseAnswer {
    pub found: ObjectOwners,
    /// What is to be said where no group has anything to do with it.
    pub denial: Option<String>,
    /// What could not be read, a sentence each.
    pub problems: Vec<String>,
}

/// Finds the groups that count an object, which a person calls `deploy/web`. It must be there.
pub fn ask(place: &Location, now: Timestamp, object: &str) -> Result<WhoseAnswer> {
    let own = ["Application", "HealthRule", "Rollup"].map(GroupKind::own);
    let own: Vec<_> = own.into_iter().chain([Dialect::AppK8sIo.kind()]).collect();
    let sight = Observation::glimpse(place, now, &own)?;
    let (kind, name) = sight.object_named(object)?;
    let facts = look(&sight, &kind, &name)?;
    let facts =
        facts.with_context(|| format!("there is no {kind} {:?} {}", &*name.name, sight.whereabouts()))?;
    let mut problems = sight.remarks.problems.clone();
    let claims = sight.claims(&kind, &name, &facts);
    let mut found = find(&kind, &name, &facts, &claims, problems.is_empty());
    let mut is_hidden = false;
    if found.is_nobodys() {
        match look_above(&sight, &name.namespace, facts) {
            OwnerChain::Counted(through) => found.through = Some(through),
            OwnerChain::Hidden(why) => {
                problems.push(why);
                is_hidden = true;
            }
            OwnerChain::Nobody => {}
        }
    }
    // What could not be read is no reason to deny anything.
    let denial = match &*name.namespace {
        _ if is_hidden => Some("Of what owns it further up, nobody can tell.".to_owned()),
        _ if !found.is_nobodys() || !problems.is_empty() => None,
        "" => Some(format!("No Application {} counts it.", sight.whereabouts())),
        _ => Some("No Application counts it.".to_owned()),
    };
    Ok(WhoseAnswer { found, denial, problems })
}

fn look(sight: &Observation, kind: &GroupKind, name: &NamespacedName) -> Result<Option<Facts>> {
    let lens = sight.lens(kind);
    let look =
        |object: &Object<'_>| lens.look(object, LookContext { now: sight.now, has_status: None }).1.facts;
    sight.with(kind, name, &look)
}

/// So far up the owners of an object are followed.
const MOST_OWNERS: usize = 8;

/// What there is above an object.
enum OwnerChain {
    /// The first of those that own it, and own its owners, that a group counts.
    Counted(ViaOwner),
    /// Nobody whom a group counts.
    Nobody,
    /// Somebody who cannot be read, and why.
    Hidden(String),
}

fn look_above(sight: &Observation, namespace: &str, mut facts: Facts) -> OwnerChain {
    for _ in 0..MOST_OWNERS {
        let is_managing = |owner: &&Owner| owner.controller == Some(true);
        let Some(owner) = facts.owners.iter().find(is_managing).or(facts.owners.first()) else { break };
        let kind = kind_of(owner);
        let name = sight.name_of(&kind, namespace, &owner.name);
        let above = match look(sight, &kind, &name) {
            Ok(Some(above)) => above,
            Ok(None) => break,
            Err(error) => return OwnerChain::Hidden(format!("{error:#}")),
        };
        let claims = sight.claims(&kind, &name, &above);
        let (counted_by, component_of) = (counted_by(&claims), component_of(&claims));
        if !counted_by.is_empty() || !component_of.is_empty() {
            return OwnerChain::Counted(ViaOwner {
                kind: kind.to_string(),
                name: name.name.to_string(),
                counted_by,
                component_of,
            });
        }
        facts = above;
    }
    OwnerChain::Nobody
}

fn kind_of(owner: &Owner) -> GroupKind {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    GroupKind::new(group, &owner.kind)
}

/// The Applications that count an object.
fn counted_by(claims: &[Claim]) -> Vec<CountingApplication> {
    let counts =
        |claim: &&Claim| matches!(claim.relation, Relation::Counts | Relation::OwnerToBe | Relation::Owner);
    let told = |claim: &Claim| CountingApplication {
        kind: claim.kind.to_string(),
        name: claim.group.name.to_string(),
        owns: claim.relation == Relation::Owner,
        is_own_api: claim.kind.is_own(),
    };
    claims.iter().filter(counts).map(told).collect()
}

/// The Rollups that an object is a component of.
fn component_of(claims: &[Claim]) -> Vec<Rollup> {
    let told = |claim: &Claim| {
        let by = match claim.relation {
            Relation::Names => ComponentMatch::Name,
            Relation::Selects => ComponentMatch::Selector,
            _ => return None,
        };
        Some(Rollup { name: claim.group.name.to_string(), by })
    };
    claims.iter().filter_map(told).collect()
}

/// The Application whose health check a Pod is.
fn checks(kind: &GroupKind, facts: &Facts) -> Option<String> {
    let is_check = *kind == GroupKind::pod() && facts.labels.get(HEALTH_CHECK_LABEL).is_some();
    let mut owners = facts.owners.iter().filter(|_| is_check);
    owners.find(|owner| kind_of(owner) == Dialect::Bellwether.kind()).map(|owner| owner.name.to_string())
}

fn find(
    kind: &GroupKind,
    name: &NamespacedName,
    facts: &Facts,
    claims: &[Claim],
    all_read: bool,
) -> ObjectOwners {
    let checks = checks(kind, facts);
    let named = facts.application.as_deref();
    let is_named =
        |claim: &&Claim| claim.kind == Dialect::Bellwether.kind() && Some(&*claim.group.name) == named;
    let claim = claims.iter().find(is_named);
    let step = match (named, claim.map(|claim| claim.relation)) {
        _ if checks.is_some() => OwnerStep::HealthCheck,
        (None, _) => OwnerStep::NotAnnotated,
        (Some(_), None) if all_read => OwnerStep::ApplicationAbsent,
        (Some(_), None) => OwnerStep::ApplicationUnknown,
        (_, Some(Relation::NotSelected | Relation::NotAMember)) => OwnerStep::LabelsDoNotMatch,
        // Of an Application there are no others.
        (_, Some(Relation::OtherKinds | Relation::Names | Relation::Selects)) => OwnerStep::KindNotCounted,
        (_, Some(Relation::OwnerToBe)) => OwnerStep::NotYetOwned,
        (_, Some(Relation::Counts)) => OwnerStep::Member,
        (_, Some(Relation::Owner)) => OwnerStep::Owned,
    };
    ObjectOwners {
        kind: kind.to_string(),
        namespace: name.namespace.to_string(),
        name: name.name.to_string(),
        step,
        annotation: named.map(str::to_owned),
        checks,
        counted_by: counted_by(claims),
        component_of: component_of(claims),
        through: None,
    }
}

impl ObjectOwners {
    /// Whether no group has anything to do with it, as far as is known.
    pub fn is_nobodys(&self) -> bool {
        let is_counted = !self.counted_by.is_empty() || !self.component_of.is_empty();
        !is_counted && self.through.is_none() && self.checks.is_none()
    }

    /// In words, for a person.
    pub fn told(&self, denial: Option<&str>, screen: Screen) -> String {
        let object = format!("{} {}", self.kind, NamespacedName::new(&self.namespace, &self.name));
        let application = self.checks.as_deref().or(self.annotation.as_deref()).unwrap_or_default();
        let (is, way_out) = match self.step {
            OwnerStep::NotAnnotated => (
                format!("was handed over to no Application: it has no annotation {APPLICATION_ANNOTATION}."),
                String::new(),
            ),
            OwnerStep::HealthCheck => (
                format!("is the health check of Application {application}, and is deleted with it."),
                String::new(),
            ),
            OwnerStep::ApplicationUnknown => (
                format!("was handed over to Application {application}, of which nothing could be read."),
                String::new(),
            ),
            OwnerStep::ApplicationAbsent => (
                format!("was handed over to Application {application}, which is not there."),
                "It was deleted, or is not created yet.".to_owned(),
            ),
            OwnerStep::LabelsDoNotMatch => (
                format!(
                    "is an orphan: its annotation names Application {application}, whose selector its labels do not match."
                ),
                format!("Label it as {application} selects, or take the annotation away."),
            ),
            OwnerStep::KindNotCounted => (
                format!(
                    "was handed over to Application {application}, which does not count objects of its kind."
                ),
                format!("Name the kind in components or componentKinds of {application}."),
            ),
            OwnerStep::NotYetOwned => (
                format!("is a member of Application {application}, which does not own it yet."),
                "A controller that runs sets that in a moment: bellwether controller.".to_owned(),
            ),
            OwnerStep::Member => {
                (format!("is a member of Application {application}, which owns nothing."), String::new())
            }
            OwnerStep::Owned => {
                (format!("is a member of Application {application}, and is deleted with it."), String::new())
            }
        };
        let mut text = String::new();
        for line in wrap(&printable(&format!("{object} {is} {way_out}")), screen.page()) {
            let _ = writeln!(text, "{line}");
        }
        let is_told =
            |one: &&CountingApplication| one.is_own_api && Some(&*one.name) == self.annotation.as_deref();
        let others = self.counted_by.iter().filter(|one| !is_told(one));
        let (owners, others): (Vec<_>, Vec<_>) = others.partition(|one| one.owns);
        if !others.is_empty() {
            say(&mut text, &format!("By its labels it is counted by {}.", listed(&others)));
        }
        if !owners.is_empty() {
            say(&mut text, &format!("It is a member of {}, and is deleted with it.", listed(&owners)));
        }
        for Rollup { name, by } in &self.component_of {
            let how = match by {
                ComponentMatch::Name => "names it",
                ComponentMatch::Selector => "selects it by its labels",
            };
            say(&mut text, &format!("It is a component of Rollup {name}, which {how}."));
        }
        if let Some(ViaOwner { kind, name, counted_by, component_of }) = &self.through {
            let members: Vec<_> = counted_by.iter().collect();
            let rollups: Vec<_> = component_of.iter().map(|rollup| &*rollup.name).collect();
            let member = (!members.is_empty()).then(|| format!("a member of {}", listed(&members)));
            let component = match &*rollups {
                [] => None,
                [one] => Some(format!("a component of Rollup {one}")),
                several => Some(format!("a component of the Rollups {}", several.join(", "))),
            };
            let is: Vec<_> = member.into_iter().chain(component).collect();
            say(&mut text, &format!("But it is owned through {kind} {name}, {}.", is.join(" and ")));
        }
        if let Some(denial) = denial {
            say(&mut text, denial);
        }
        text
    }
}

fn say(text: &mut String, sentence: &str) {
    let _ = writeln!(text, "{}", printable(sentence));
}

fn listed(applications: &[&CountingApplication]) -> String {
    applications.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
