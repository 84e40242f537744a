//! Who is a member of an Application, what is counted of each, and who owns it.

use std::{collections::BTreeSet, rc::Rc, sync::Arc};

use bellwether_api::{APPLICATION_ANNOTATION, Application, Membership, ObjectStatus, Ownership, State};
use bellwether_engine::{GroupKind, NamespacedName, Unreadable};
use bellwether_health::{Verdict, user::CompiledRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use crate::{
    below_oracle::{Below, is_scaled_to_zero, kinds_below},
    known::Known,
    object::Object,
};

use super::{Oracle, text};

/// A member, or a component that is missing or unreadable.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug)]
pub struct Part {
    pub kind: GroupKind,
    /// In the namespace of the Application.
    pub name: String,
    pub state: State,
    pub(super) progress: u8,
    pub(super) settled: bool,
    /// Whether the Application must own it.
    handed_over: bool,
    /// Suspended, and what runs of it is not available.
    pub blocks: bool,
    /// For a workload, whether it is scaled to zero.
    scaled_to_zero: Option<bool>,
    /// A Service without a ready endpoint, which matters unless all workloads are scaled to zero.
    pub(super) lacks_endpoints: bool,
    /// The name of the Pod because of which it is not ready.
    pub cause: Option<String>,
    /// Reason, message and rule of the verdict. None if the object is missing or unreadable.
    pub(super) says: Option<(String, String, String)>,
}

/// The objects of an Application, of one kind or of all kinds.
#[derive(Debug, Default)]
pub struct Totals {
    /// The members, and the components that are missing or cannot be read.
    pub parts: Vec<Part>,
    /// Keys of components that exist.
    pub installed: BTreeSet<String>,
    /// Keys of components that do not exist.
    pub missing: BTreeSet<String>,
    /// Whether a component is neither installed nor missing, because its kind is unreadable.
    pub(super) unclear: bool,
}

impl Totals {
    fn join(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self.installed.extend(other.installed);
        self.missing.extend(other.missing);
        self.unclear |= other.unclear;
        self
    }
}

impl Oracle<'_> {
    /// The members of an Application and its missing components, worst first.
    pub(super) fn parts(&self, app: &Application) -> Option<Totals> {
        let known = |kind: &GroupKind| self.kinds.get(kind);
        let is_known =
            |kind: &GroupKind| known(kind).is_some_and(|known| known.is_known() && !known.is_torn());
        let of_members = self.kinds.keys().filter(|kind| is_counted(app, kind)).cloned();
        let are_listed =
            kinds_below(of_members).all(|kind| known(&kind).is_some_and(|known| known.is_known()));
        if !self.is_open() || !are_listed || !Self::kinds_of_spec(&app.spec).keys().all(is_known) {
            return None;
        }
        let kinds = self.kinds.keys().filter(|kind| is_counted(app, kind));
        let mut all = kinds.map(|kind| self.share(app, kind)).fold(Totals::default(), Totals::join);
        let mut workloads = all.parts.iter().filter_map(|part| part.scaled_to_zero).peekable();
        let are_scaled_to_zero = workloads.peek().is_some() && workloads.all(|is_zero| is_zero);
        for part in all.parts.iter_mut().filter(|part| part.lacks_endpoints && !are_scaled_to_zero) {
            (part.state, part.progress) = (State::InProgress, 0);
            if let Some(says) = &mut part.says {
                let words = ["NoReadyEndpoints", "no ready endpoints", "builtin/ServiceEndpoints"];
                *says = words.map(str::to_owned).into();
            }
        }
        all.parts.sort_by_key(|part| {
            let rank = State::WORST_FIRST.iter().position(|state| *state == part.state);
            (rank, part.kind.clone(), part.name.clone())
        });
        Some(all)
    }

    /// The members of an Application of one kind, and its components of that kind that are not members.
    ///
    /// Only that kind and the HealthRules need to be known.
    pub fn share(&self, app: &Application, kind: &GroupKind) -> Totals {
        let Some(known) = self.kinds.get(kind) else { return Totals::default() };
        let mut share = Totals { parts: self.members(app, kind, known), ..Totals::default() };
        let components = app.spec.components.iter();
        for (key, component) in components.filter(|(_, it)| it.group == *kind.group && it.kind == *kind.kind)
        {
            let name = component.name.as_ref().unwrap_or(key);
            if share.parts.iter().any(|part| part.name == *name) {
                share.installed.insert(key.clone());
                continue;
            }
            let is_clear = match known.unreadable {
                // While the kind comes back, some objects are known before the list completes.
                Some(Unreadable::NotServed) => {
                    let namespace = app.metadata.namespace.as_deref().unwrap_or_default();
                    !known.objects.contains_key(&NamespacedName::new(namespace, name))
                }
                Some(_) => false,
                None => known.served.as_ref().is_some_and(|served| served.namespaced),
            };
            if is_clear {
                share.missing.insert(key.clone());
            }
            share.unclear |= !is_clear;
            let state = if is_clear { State::Missing } else { State::Unknown };
            share.parts.push(Part {
                kind: kind.clone(),
                name: name.clone(),
                state,
                progress: 0,
                settled: true,
                handed_over: false,
                blocks: false,
                scaled_to_zero: None,
                lacks_endpoints: false,
                cause: None,
                says: None,
            });
        }
        share
    }

    /// The members of an Application of one kind.
    fn members(&self, app: &Application, kind: &GroupKind, known: &Known) -> Vec<Part> {
        let rules = self.rules();
        let is_member = |name: &NamespacedName, object: &Object| {
            Some(&*name.namespace) == app.metadata.namespace.as_deref() && belongs(app, object)
        };
        let members = known.objects.iter().filter(|(name, object)| is_member(name, object));
        let part = |(_, object): (&NamespacedName, &Rc<Object>)| {
            let handed_over =
                is_handed_over(app, object) && known.unreadable.is_none() && !object.is_deleting();
            let mut stored = app.status.iter().flat_map(|status| &status.objects);
            let stored = stored.find(|stored| {
                (&*stored.group, &*stored.kind, &*stored.name)
                    == (&*kind.group, &*kind.kind, &*object.name.name)
            });
            Part { handed_over, ..self.part(kind, known, object, &rules, stored) }
        };
        members.map(part).collect()
    }

    fn part(
        &self,
        kind: &GroupKind,
        known: &Known,
        object: &Object,
        rules: &[Arc<CompiledRule>],
        stored: Option<&ObjectStatus>,
    ) -> Part {
        let has_status = known.served.as_ref().map(|served| served.has_status);
        let verdict = object.verdict_by(rules, self.now, has_status);
        let is_readable = known.unreadable.is_none();
        let below = if is_readable { self.below(object, &verdict, rules, stored) } else { Below::Nothing };
        let rule = |verdict: &Verdict| format!("{}/{}", text(&json!(verdict.rule.source)), verdict.rule.id);
        let (state, says) = match &below {
            Below::FailedPod(pod, verdict) => {
                let message = format!("Pod {}: {}", pod.name.name, verdict.message);
                (State::Failed, (verdict.reason.to_string(), message, rule(verdict)))
            }
            Below::StoredFailure(stored) => {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                (State::Failed, (text(&stored.reason), text(&stored.message), text(&stored.rule)))
            }
            _ => (verdict.state, (verdict.reason.to_string(), verdict.message.to_string(), rule(&verdict))),
        };
        let state = if is_readable { state } else { State::Unknown };
        Part {
            kind: kind.clone(),
            name: object.name.name.to_string(),
            state,
            blocks: state == State::Suspended && verdict.blocks,
            scaled_to_zero: is_scaled_to_zero(kind, &verdict),
            lacks_endpoints: matches!(below, Below::NoReadyEndpoints),
            cause: below.cause(),
            progress: if state == State::Ready { verdict.progress } else { verdict.progress.min(99) },
            // An object of an unreadable kind does not affect Settled.
            settled: !is_readable || object.is_latest_observed(&verdict),
            handed_over: false,
            says: is_readable.then_some(says),
        }
    }

    /// `status.ownedKinds`: the kinds of objects that the Application must own.
    pub(super) fn owned_kinds(&self, app: &Application, parts: &[Part]) -> Value {
        // It gets no new members while it is being deleted.
        if app.metadata.deletion_timestamp.is_some() {
            return json!([]);
        }
        let members = parts.iter().filter(|part| part.handed_over).map(|part| part.kind.clone());
        let has_check = app.spec.health_check.is_some() && self.kinds[&GroupKind::pod()].unreadable.is_none();
        let kinds: BTreeSet<_> = members.chain(has_check.then(GroupKind::pod)).collect();
        kinds.iter().map(|kind| json!({"group": *kind.group, "kind": *kind.kind})).collect()
    }

    /// UIDs of the owners that an object must have, in order. None if controllers must not touch its owners.
    pub fn owners(&self, kind: &GroupKind, object: &Object) -> Option<Vec<String>> {
        let metadata = object.metadata();
        if metadata["namespace"].is_null()
            || object.is_deleting()
            || object.is_check()
            || self.kinds[kind].unreadable.is_some()
        {
            return None;
        }
        let living: Vec<&Application> = self
            .applications()
            .map(|(_, app)| app)
            .filter(|app| app.metadata.deletion_timestamp.is_none())
            .filter(|app| metadata["namespace"] == json!(app.metadata.namespace))
            .collect();
        let rightful = living.iter().find(|app| {
            is_handed_over(app, object)
                && belongs(app, object)
                && is_counted(app, kind)
                && self
                    .members(app, kind, self.kinds[kind])
                    .iter()
                    .any(|part| metadata["name"] == part.name.as_str())
        });
        let is_announced = rightful.is_some_and(|app| is_announced(app, kind));
        let rightful = rightful.and_then(|app| app.metadata.uid.clone());
        let mut owners: Vec<_> = object.owners().map(str::to_owned).collect();
        owners.retain(|uid| {
            Some(uid) == rightful.as_ref() || !living.iter().any(|app| app.metadata.uid.as_ref() == Some(uid))
        });
        if let Some(uid) = rightful.filter(|uid| is_announced && !owners.contains(uid)) {
            owners.push(uid);
        }
        Some(owners)
    }
}

/// Whether objects of a kind can be members of an Application.
pub(crate) fn is_counted(app: &Application, kind: &GroupKind) -> bool {
    let named = app.spec.components.values().map(|it| GroupKind::new(&it.group, &it.kind));
    let kinds = app.spec.component_kinds.iter().map(|it| GroupKind::new(&it.group, &it.kind));
    named.chain(kinds).any(|other| other == *kind)
}

/// Whether an object is annotated for an Application that adopts.
fn is_handed_over(app: &Application, object: &Object) -> bool {
    object.metadata()["annotations"][APPLICATION_ANNOTATION] == json!(app.metadata.name)
        && app.spec.ownership == Ownership::Adopt
}

/// Whether `status.ownedKinds` of an Application names a kind.
pub fn is_announced(app: &Application, kind: &GroupKind) -> bool {
    let mut kinds = app.status.iter().flat_map(|status| &status.owned_kinds);
    kinds.any(|named| GroupKind::new(&named.group, &named.kind) == *kind)
}

/// Whether an object in the namespace of an Application is a member.
pub fn belongs(app: &Application, object: &Object) -> bool {
    let metadata = object.metadata();
    let annotation = &metadata["annotations"][APPLICATION_ANNOTATION];
    let is_named = match app.spec.membership {
        Membership::Selected => annotation.is_null() || *annotation == json!(app.metadata.name),
        Membership::Annotated => *annotation == json!(app.metadata.name),
    };
    let is_itself = metadata["uid"] == json!(app.metadata.uid);
    !object.is_check() && !is_itself && is_named && selects(&app.spec.selector, &metadata["labels"])
}

pub(crate) fn selects(selector: &LabelSelector, labels: &Value) -> bool {
    let exact = selector.match_labels.iter().flatten().all(|(key, value)| labels[key] == value.as_str());
    let expressions = selector.match_expressions.iter().flatten().all(|expression| {
        let label = &labels[&expression.key];
        let is_among = expression.values.iter().flatten().any(|value| *label == value.as_str());
        match expression.operator.as_str() {
            "In" => is_among,
            "NotIn" => !is_among,
            "Exists" => !label.is_null(),
            "DoesNotExist" => label.is_null(),
            _ => false,
        }
    });
    exact && expressions
}
