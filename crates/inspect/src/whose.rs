//! `bellwether whose`: the groups that an object belongs to.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use bellwether_api::APPLICATION_ANNOTATION;
use bellwether_engine::{
    Dialect, Facts, GroupKind, GroupRelation, HEALTH_CHECK_LABEL, NamespacedName, OwnerReference,
    ProjectionContext, Relation,
};
use bellwether_model::Object;
use bellwether_terminal::{Screen, printable, wrap};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    observe::{GroupQuery, Location, Observation},
    shell::program,
    status::{heading, push_paragraph},
};

/// The groups of an object, and how it belongs to them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectOwners {
    #[serde(flatten)]
    kind: GroupKindFields,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    /// How the object relates to the Application of its annotation.
    reason: OwnerReason,
    /// The value of the annotation `kubernetes.io/application`.
    #[serde(skip_serializing_if = "Option::is_none")]
    application_annotation: Option<String>,
    /// The Application whose health check Pod it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    health_check_of: Option<String>,
    applications: Vec<ApplicationOf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rollups: Vec<RollupOf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    binding_policies: Vec<PolicyOf>,
    /// An owner of an object that belongs to no group itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    via_owner: Option<ViaOwner>,
}

#[derive(Serialize)]
struct GroupKindFields {
    group: String,
    kind: String,
}

impl From<&GroupKind> for GroupKindFields {
    fn from(kind: &GroupKind) -> Self {
        Self { group: kind.group.to_string(), kind: kind.kind.to_string() }
    }
}

/// An Application that an object is a member of.
#[derive(Serialize)]
struct ApplicationOf {
    #[serde(flatten)]
    kind: GroupKindFields,
    name: String,
    /// Whether the object has an owner reference to it.
    owner: bool,
    /// `Application shop/checkout`
    #[serde(skip)]
    heading: String,
    #[serde(skip)]
    is_own_api: bool,
}

/// A Rollup that an object is a component of.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RollupOf {
    name: String,
    matched_by: ComponentMatch,
}

/// A BindingPolicy that binds an object to clusters.
#[derive(Serialize)]
struct PolicyOf {
    name: String,
    clusters: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum ComponentMatch {
    Name,
    Selector,
}

/// The nearest owner that belongs to a group.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ViaOwner {
    #[serde(flatten)]
    kind: GroupKindFields,
    name: String,
    applications: Vec<ApplicationOf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rollups: Vec<RollupOf>,
}

/// How an object relates to the Application that its annotation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum OwnerReason {
    /// The object has no annotation.
    NotAnnotated,
    /// It is the health check Pod of an Application.
    HealthCheck,
    ApplicationNotFound,
    /// Applications could not be read.
    ApplicationUnknown,
    SelectorMismatch,
    /// The Application does not name the kind in its spec.
    KindNotIncluded,
    NotYetOwned,
    /// It is a member of an Application that observes only.
    NotOwned,
    Owned,
}

pub struct WhoseAnswer {
    pub owners: ObjectOwners,
    /// A sentence for an object that belongs to no group, as far as could be read.
    pub conclusion: Option<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// Finds the groups of an object, such as `deploy/web`. The object must exist.
pub fn find_owners(location: &Location, now: Timestamp, object: &str) -> Result<WhoseAnswer> {
    let own = ["Application", "HealthRule", "Rollup"].map(GroupKind::bellwether);
    let own: Vec<_> = own.into_iter().chain([Dialect::AppK8sIo.kind()]).collect();
    let has_clusters = !location.clusters.is_empty();
    // What a policy binds is known only with the clusters.
    let observation = if has_clusters {
        Observation::open(location, now, GroupQuery::All { all_namespaces: true })?
    } else {
        Observation::read_own_kinds(location, now, &own)?
    };
    let (kind, name) = observation.object_named(object)?;
    let facts = read_facts(&observation, &kind, &name)?;
    let facts = facts.with_context(|| observation.not_found(&kind, &name))?;
    let mut problems = observation.notes.problems.clone();
    let relations = observation.relations(&kind, &name, &facts);
    let mut owners = owners_by_claims(&kind, &name, &facts, &relations, problems.is_empty());
    let mut has_unreadable_owner = false;
    if owners.is_empty() {
        match find_above(&observation, &name.namespace, facts) {
            OwnerChain::Member(via) => owners.via_owner = Some(via),
            OwnerChain::Unreadable(error) => {
                problems.push(error);
                has_unreadable_owner = true;
            }
            OwnerChain::NotFound => {}
        }
    }
    let conclusion = owners.is_empty().then(|| {
        let object = format!("{}/{}", kind.kind, name.name);
        if has_unreadable_owner {
            return format!("cannot determine the Application or Rollup of {object}: cannot read its owner");
        }
        if !problems.is_empty() {
            return format!(
                "cannot determine the Application or Rollup of {object}: cannot list all Applications and Rollups"
            );
        }
        let place = match &*name.namespace {
            "" => String::new(),
            namespace => format!(" in namespace {namespace}"),
        };
        let has_rollups = observation.notes.no_rollups.is_none();
        let groups = match &*name.namespace {
            // Applications were read from one place only.
            "" => {
                let rollups = if has_rollups { " or of any Rollup" } else { "" };
                format!("any Application {}{rollups}", observation.whereabouts())
            }
            _ if has_rollups && has_clusters => "any Application, Rollup or BindingPolicy".to_owned(),
            _ if has_rollups => "any Application or Rollup".to_owned(),
            _ => "any Application".to_owned(),
        };
        format!("{object}{place} is not a member of {groups}")
    });
    problems.extend(observation.notes.unread_clusters.iter().map(ToString::to_string));
    Ok(WhoseAnswer { owners, conclusion, problems })
}

fn read_facts(observation: &Observation, kind: &GroupKind, name: &NamespacedName) -> Result<Option<Facts>> {
    let lens = observation.lens(kind);
    let facts = |object: &Object<'_>| {
        lens.project(object, ProjectionContext { now: observation.now, has_status: None }).1.facts
    };
    observation.with(kind, name, &facts)
}

/// Owner references may form a cycle.
const MAX_OWNERS: usize = 8;

enum OwnerChain {
    Member(ViaOwner),
    NotFound,
    /// The error of the owner that could not be read.
    Unreadable(String),
}

fn find_above(observation: &Observation, namespace: &str, mut facts: Facts) -> OwnerChain {
    for _ in 0..MAX_OWNERS {
        let is_controller = |owner: &&OwnerReference| owner.controller == Some(true);
        let Some(owner) = facts.owners.iter().find(is_controller).or(facts.owners.first()) else { break };
        let kind = kind_of(owner);
        let name = observation.name_of(&kind, namespace, &owner.name);
        let above = match read_facts(observation, &kind, &name) {
            Ok(Some(above)) => above,
            Ok(None) => break,
            Err(error) => return OwnerChain::Unreadable(format!("{error:#}")),
        };
        let relations = observation.relations(&kind, &name, &above);
        let (applications, rollups) = (applications(&relations), rollups(&relations));
        if !applications.is_empty() || !rollups.is_empty() {
            return OwnerChain::Member(ViaOwner {
                kind: (&kind).into(),
                name: name.name.to_string(),
                applications,
                rollups,
            });
        }
        facts = above;
    }
    OwnerChain::NotFound
}

fn kind_of(owner: &OwnerReference) -> GroupKind {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    GroupKind::new(group, &owner.kind)
}

fn applications(relations: &[GroupRelation]) -> Vec<ApplicationOf> {
    let is_member = |relation: &&GroupRelation| {
        matches!(relation.relation, Relation::Member | Relation::FutureOwner | Relation::Owner)
    };
    let application = |relation: &GroupRelation| ApplicationOf {
        kind: (&relation.kind).into(),
        name: relation.name.name.to_string(),
        owner: relation.relation == Relation::Owner,
        heading: heading(&relation.kind, &relation.name),
        is_own_api: relation.kind.is_bellwether(),
    };
    relations.iter().filter(is_member).map(application).collect()
}

fn rollups(relations: &[GroupRelation]) -> Vec<RollupOf> {
    let rollup = |relation: &GroupRelation| {
        let matched_by = match relation.relation {
            Relation::Names => ComponentMatch::Name,
            Relation::Selects => ComponentMatch::Selector,
            _ => return None,
        };
        Some(RollupOf { name: relation.name.name.to_string(), matched_by })
    };
    relations.iter().filter_map(rollup).collect()
}

fn policies(relations: &[GroupRelation]) -> Vec<PolicyOf> {
    let binding = relations.iter().filter(|relation| relation.relation == Relation::Binds);
    let policy = |relation: &GroupRelation| PolicyOf {
        name: relation.name.name.to_string(),
        clusters: relation.clusters.iter().map(ToString::to_string).collect(),
    };
    binding.map(policy).collect()
}

/// The Application whose health check Pod an object is.
fn health_check_of(kind: &GroupKind, facts: &Facts) -> Option<String> {
    let is_check = *kind == GroupKind::pod() && facts.labels.get(HEALTH_CHECK_LABEL).is_some();
    let mut owners = facts.owners.iter().filter(|_| is_check);
    owners.find(|owner| kind_of(owner) == Dialect::Bellwether.kind()).map(|owner| owner.name.to_string())
}

fn owners_by_claims(
    kind: &GroupKind,
    name: &NamespacedName,
    facts: &Facts,
    relations: &[GroupRelation],
    all_read: bool,
) -> ObjectOwners {
    let health_check_of = health_check_of(kind, facts);
    let annotation = facts.application.as_deref();
    let is_annotated = |relation: &&GroupRelation| {
        relation.kind == Dialect::Bellwether.kind() && Some(&*relation.name.name) == annotation
    };
    let relation = relations.iter().find(is_annotated);
    let reason = match (annotation, relation.map(|relation| relation.relation)) {
        _ if health_check_of.is_some() => OwnerReason::HealthCheck,
        (None, _) => OwnerReason::NotAnnotated,
        (Some(_), None) if all_read => OwnerReason::ApplicationNotFound,
        (Some(_), None) => OwnerReason::ApplicationUnknown,
        (_, Some(Relation::NotSelected | Relation::NotAMember)) => OwnerReason::SelectorMismatch,
        // Only Rollups have the relations Names and Selects, only BindingPolicies Binds.
        (_, Some(Relation::KindNotListed | Relation::Names | Relation::Selects | Relation::Binds)) => {
            OwnerReason::KindNotIncluded
        }
        (_, Some(Relation::FutureOwner)) => OwnerReason::NotYetOwned,
        (_, Some(Relation::Member)) => OwnerReason::NotOwned,
        (_, Some(Relation::Owner)) => OwnerReason::Owned,
    };
    ObjectOwners {
        kind: kind.into(),
        namespace: name.namespace.to_string(),
        name: name.name.to_string(),
        reason,
        application_annotation: annotation.map(str::to_owned),
        health_check_of,
        applications: applications(relations),
        rollups: rollups(relations),
        binding_policies: policies(relations),
        via_owner: None,
    }
}

impl ObjectOwners {
    /// Whether the object belongs to no group, as far as could be read.
    pub fn is_empty(&self) -> bool {
        let is_member =
            !self.applications.is_empty() || !self.rollups.is_empty() || !self.binding_policies.is_empty();
        !is_member && self.via_owner.is_none() && self.health_check_of.is_none()
    }

    /// The answer first, then the details.
    pub fn text(&self, conclusion: Option<&str>, screen: Screen) -> String {
        let mut text = String::new();
        for answer in conclusion.map(str::to_owned).into_iter().chain(self.groups()) {
            for line in wrap(&printable(&answer), screen.page()) {
                let _ = writeln!(text, "{line}");
            }
        }
        for detail in self.details() {
            push_paragraph(&mut text, "  ", &detail, screen.page());
        }
        if self.reason == OwnerReason::NotYetOwned {
            text += "  If no controller is running, start one:\n";
            let _ = writeln!(text, "    {} controller", program());
        }
        text
    }

    /// A sentence for each group that the object belongs to.
    fn groups(&self) -> Vec<String> {
        let object = format!("{}/{}", self.kind.kind, self.name);
        let mut sentences = Vec::new();
        if let Some(application) = &self.health_check_of {
            let name = NamespacedName::new(&self.namespace, application);
            sentences.push(format!("{object} belongs to Application {name} (health check)"));
        }
        let applications = self.applications.iter().map(|application| &application.heading);
        sentences.extend(applications.map(|heading| format!("{object} belongs to {heading}")));
        for RollupOf { name, matched_by } in &self.rollups {
            let how = match matched_by {
                ComponentMatch::Name => "named component",
                ComponentMatch::Selector => "component matched by selector",
            };
            sentences.push(format!("{object} belongs to Rollup {name} ({how})"));
        }
        for PolicyOf { name, clusters } in &self.binding_policies {
            let to = match &**clusters {
                [] => "no cluster".to_owned(),
                [one] => format!("cluster {one}"),
                several => format!("clusters {}", several.join(", ")),
            };
            sentences.push(format!("{object} is bound by BindingPolicy {name} to {to}"));
        }
        if let Some(ViaOwner { kind, name, applications, rollups }) = &self.via_owner {
            let applications = applications.iter().map(|application| application.heading.clone());
            let groups = applications.chain(rollups.iter().map(|rollup| format!("Rollup {}", rollup.name)));
            sentences.extend(
                groups.map(|group| format!("{object} belongs to {group} (via {}/{name})", kind.kind)),
            );
        }
        sentences
    }

    fn details(&self) -> Vec<String> {
        let named = self.application_annotation.as_deref().unwrap_or_default();
        let annotation = format!("annotation {APPLICATION_ANNOTATION} names Application {named}");
        let deleted = |owner: &str| format!("owned: deleted together with {owner}");
        let mut details = Vec::new();
        details.extend(self.applications.iter().filter(|it| it.owner).map(|it| deleted(&it.heading)));
        match self.reason {
            OwnerReason::NotAnnotated if self.applications.iter().any(|it| it.is_own_api) => {
                details.push(format!("not owned: no annotation {APPLICATION_ANNOTATION}"));
            }
            OwnerReason::NotAnnotated | OwnerReason::Owned => {}
            OwnerReason::HealthCheck => details.push(deleted("the Application")),
            OwnerReason::ApplicationNotFound => details.push(format!("{annotation}, which does not exist")),
            OwnerReason::ApplicationUnknown => details.push(format!("{annotation}, which cannot be read")),
            OwnerReason::SelectorMismatch => {
                details.push(format!("{annotation}, but the labels do not match its selector"));
                details.push("Add the labels, or remove the annotation".to_owned());
            }
            OwnerReason::KindNotIncluded => {
                details.push(format!("{annotation}, which does not include kind {}", self.kind.kind));
                details.push("Add the kind to spec.components or spec.componentKinds".to_owned());
            }
            OwnerReason::NotYetOwned => {
                details.push("not owned yet: the controller has not set the owner reference".to_owned());
            }
            OwnerReason::NotOwned => {
                details.push("not owned: spec.ownership of the Application is Observe".to_owned());
            }
        }
        details
    }
}
