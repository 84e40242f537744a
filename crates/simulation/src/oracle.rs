//! The oracle for Applications: computes a status from scratch, with plain loops over all known objects.
//!
//! It is slow and simple, so that it is easy to trust. Times are left out because they depend on the past.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::{Arc, LazyLock},
};

use bellwether_api::{
    APPLICATION_ANNOTATION, Application, ApplicationSpec, Membership, ObjectCounts, Ownership, State,
};
use bellwether_engine::{GroupKind, NamespacedName, ServedResource, Unreadable};
use bellwether_health::{Verdict, user::CompiledRule};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use crate::{
    below_oracle::{Below, is_scaled_to_zero, kinds_below},
    known::Known,
    object::Object,
};

/// What a controller knows at a point in time.
pub struct Oracle<'a> {
    pub kinds: BTreeMap<GroupKind, &'a Known>,
    pub now: Timestamp,
}

/// A member, or a component that is missing or unreadable.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug)]
pub struct Part {
    pub kind: GroupKind,
    /// In the namespace of the Application.
    pub name: String,
    pub state: State,
    progress: u8,
    settled: bool,
    /// Whether the Application must own it.
    handed_over: bool,
    /// Suspended, and what runs of it is not available.
    pub blocks: bool,
    /// For a workload, whether it is scaled to zero.
    scaled_to_zero: Option<bool>,
    /// A Service without a ready endpoint, which matters unless all workloads are scaled to zero.
    lacks_endpoints: bool,
    /// The name of the Pod because of which it is not ready.
    pub cause: Option<String>,
    /// Reason, message and rule of the verdict. None if the object is missing or unreadable.
    says: Option<(String, String, String)>,
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
    unclear: bool,
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

impl Part {
    /// The reason of the verdict. None if the object is missing or unreadable.
    pub fn reason(&self) -> Option<&str> {
        self.says.as_ref().map(|(reason, ..)| &**reason)
    }

    /// The text about the object in the message of Ready.
    fn one_line(&self) -> String {
        let Some((reason, message, _)) = &self.says else { return String::new() };
        if self.kind == GroupKind::bellwether("Application") {
            return format!("{} ({reason})", self.state.name());
        }
        if self.state == State::Failed && !message.contains(reason.as_str()) {
            return format!("{reason}: {message}");
        }
        message.clone()
    }
}

impl Oracle<'_> {
    /// All known Applications of `bellwether.dev`.
    pub fn applications(&self) -> impl Iterator<Item = (&NamespacedName, &Application)> {
        let known = self.kinds.get(&GroupKind::bellwether("Application"));
        let objects = known.into_iter().flat_map(|known| &known.objects);
        objects.filter_map(|(name, object)| Some((name, object.application()?)))
    }

    /// Whether groups may be evaluated: all own kinds are known.
    pub fn is_open(&self) -> bool {
        ["Application", "HealthRule", "Rollup"]
            .iter()
            .all(|own| self.kinds.get(&GroupKind::bellwether(own)).is_some_and(|known| known.is_known()))
    }

    /// The kinds that an Application uses, with the versions that it names.
    pub fn kinds_of_spec(spec: &ApplicationSpec) -> BTreeMap<GroupKind, BTreeSet<String>> {
        let mut kinds_of_spec: BTreeMap<GroupKind, BTreeSet<String>> = BTreeMap::new();
        for component in spec.components.values() {
            let versions =
                kinds_of_spec.entry(GroupKind::new(&component.group, &component.kind)).or_default();
            versions.extend(component.version.clone());
        }
        for kind in &spec.component_kinds {
            kinds_of_spec.entry(GroupKind::new(&kind.group, &kind.kind)).or_default();
        }
        if spec.health_check.is_some() {
            kinds_of_spec.entry(GroupKind::pod()).or_default();
        }
        kinds_of_spec
    }

    /// The status of an Application in the form of [`shape`]. None while a used kind is unknown or torn.
    pub fn status(&self, app: &Application) -> Option<Value> {
        let Totals { parts, mut installed, mut missing, unclear } = self.parts(app)?;
        let unresolved = self.unresolved(app);
        let dependencies = self.dependencies(app);
        for dependency in &dependencies {
            let list = if dependency["installed"] == true { &mut installed } else { &mut missing };
            list.insert(text(&dependency["name"]));
        }
        let total = parts.len();
        let ready = parts.iter().filter(|part| part.state == State::Ready).count();
        let progress: usize = parts.iter().map(|part| usize::from(part.progress)).sum();
        let is_installed = match (missing.is_empty(), unclear) {
            (false, _) => "False",
            (true, true) => "Unknown",
            (true, false) => "True",
        };
        // No rule decides whether a generation has been observed.
        let settled = match (parts.iter().all(|part| part.settled), self.unreadable_kinds(app)) {
            (false, _) => json!(["False", null]),
            (true, 0) => {
                json!(["True", format!("Observed revision: {}", app.metadata.generation.unwrap_or(0))])
            }
            (true, _) => json!(["Unknown", null]),
        };
        let state = self.state(app, &parts);
        let is_deleting = app.metadata.deletion_timestamp.is_some();
        let progress = match state {
            State::Ready => Some(100),
            _ => progress.checked_div(total).map(|mean| mean.min(99)),
        };
        Some(json!({
            "observedGeneration": app.metadata.generation,
            "state": state,
            "reason": if is_deleting { Some("Terminating".to_owned()) } else { Self::reason(state, &parts) },
            "ready": self.health_check(app),
            "componentsReady": format!("{ready}/{total}"),
            "progress": progress,
            "installed": installed,
            "missing": missing,
            "objectCounts": counts(&states(&parts)),
            "dependencies": dependencies,
            "ownedKinds": self.owned_kinds(app, &parts),
            "objects": parts.iter().map(|part| self.entry(app, part)).collect::<Vec<_>>(),
            "Ready": self.ready(app, &parts),
            "Settled": settled,
            "Installed": is_installed,
            "Resolved": if unresolved == 0 { "True" } else { "False" },
            "DependencyCycle": self.is_in_cycle(app),
        }))
    }

    /// `status.ownedKinds`: the kinds of objects that the Application must own.
    fn owned_kinds(&self, app: &Application, parts: &[Part]) -> Value {
        // It gets no new members while it is being deleted.
        if app.metadata.deletion_timestamp.is_some() {
            return json!([]);
        }
        let members = parts.iter().filter(|part| part.handed_over).map(|part| part.kind.clone());
        let has_check = app.spec.health_check.is_some() && self.kinds[&GroupKind::pod()].unreadable.is_none();
        let kinds: BTreeSet<_> = members.chain(has_check.then(GroupKind::pod)).collect();
        kinds.iter().map(|kind| json!({"group": *kind.group, "kind": *kind.kind})).collect()
    }

    /// The members of an Application and its missing components, worst first.
    fn parts(&self, app: &Application) -> Option<Totals> {
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
            if let Some((reason, message, _)) = &mut part.says {
                (*reason, *message) = ("NoReadyEndpoints".to_owned(), "no ready endpoints".to_owned());
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

    /// `status.state`: the worst of what keeps the Application from being ready.
    fn state(&self, app: &Application, parts: &[Part]) -> State {
        if app.metadata.deletion_timestamp.is_some() {
            return State::Terminating;
        }
        state_of(readiness(&self.all_states(app, parts)))
    }

    /// `status.reason` where it is that of a verdict.
    fn reason(state: State, parts: &[Part]) -> Option<String> {
        let is_symptom = |part: &&Part| part.lacks_endpoints && part.state == State::InProgress;
        let worst = parts.iter().filter(|part| part.state == state && state != State::Ready);
        let worst = worst.min_by_key(is_symptom);
        let blocking = || parts.iter().find(|part| part.blocks && state == State::InProgress);
        let worst = worst.or_else(blocking)?;
        worst.says.as_ref().map(|(reason, ..)| reason.clone())
    }

    /// The states of the parts, of the kinds that cannot be used, and of the health check.
    fn all_states(&self, app: &Application, parts: &[Part]) -> Vec<State> {
        let mut all = states(parts);
        all.extend((self.unresolved(app) > 0).then_some(State::Unknown));
        all.extend(parts.iter().any(|part| part.blocks).then_some(State::InProgress));
        all.extend(match self.health_check(app) {
            Some("False") => Some(State::InProgress),
            Some("Unknown") => Some(State::Unknown),
            // A passing health check counts only if the spec has no components.
            Some("True") if Self::has_only_a_check(app) => Some(State::Ready),
            _ => None,
        });
        all
    }

    /// Status, reason and message of Ready. The message is null where the oracle does not know it.
    fn ready(&self, app: &Application, parts: &[Part]) -> Value {
        if app.metadata.deletion_timestamp.is_some() {
            return json!(["False", "Terminating", null]);
        }
        let (unresolved, check) = (self.unresolved(app), self.health_check(app));
        let (status, reason) = readiness(&self.all_states(app, parts));
        // The oracle knows the messages of verdicts, but not those for missing and unreadable components.
        let are_texts_known = parts.iter().all(|part| part.says.is_some());
        let message = match status {
            "True" => Some(match parts.iter().filter(|part| part.state == State::Suspended).count() {
                0 => "All components ready".to_owned(),
                suspended => format!("All components ready, {suspended} suspended"),
            }),
            "False" if are_texts_known && check.is_none() && unresolved == 0 => {
                let worst = [State::Failed, State::Missing, State::InProgress, State::Terminating];
                let bad: Vec<_> = worst
                    .iter()
                    .flat_map(|state| parts.iter().filter(move |part| part.state == *state))
                    .chain(parts.iter().filter(|part| part.blocks))
                    .map(|part| (format!("{}/{}:", part.kind.kind, part.name), part.one_line()))
                    .collect();
                Some(bellwether_conditions::message(bad.clone(), bad.len(), 1024))
            }
            _ => None,
        };
        json!([status, reason, message])
    }

    fn has_only_a_check(app: &Application) -> bool {
        app.spec.components.is_empty() && app.spec.component_kinds.is_empty()
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
            Part { handed_over, ..self.part(kind, known, object, &rules) }
        };
        members.map(part).collect()
    }

    /// The HealthRules, or what stands for those that cannot be read.
    pub(crate) fn rules(&self) -> Vec<Arc<CompiledRule>> {
        static UNREADABLE: LazyLock<Arc<CompiledRule>> =
            LazyLock::new(|| Arc::new(CompiledRule::unreadable()));
        if self.are_rules_unreadable() {
            return vec![Arc::clone(&UNREADABLE)];
        }
        let known = self.kinds.get(&GroupKind::bellwether("HealthRule"));
        let objects = known.into_iter().flat_map(|known| known.objects.values());
        objects.filter_map(|object| object.health_rule().cloned()).collect()
    }

    pub(crate) fn are_rules_unreadable(&self) -> bool {
        let known = self.kinds.get(&GroupKind::bellwether("HealthRule"));
        let why = known.and_then(|known| known.unreadable.as_ref());
        matches!(why, Some(Unreadable::Forbidden { .. } | Unreadable::Failing { .. }))
    }

    fn part(&self, kind: &GroupKind, known: &Known, object: &Object, rules: &[Arc<CompiledRule>]) -> Part {
        let has_status = known.served.as_ref().map(|served| served.has_status);
        let verdict = object.verdict_by(rules, self.now, has_status);
        let is_readable = known.unreadable.is_none();
        let below = if is_readable { self.below(object, &verdict, rules) } else { Below::Nothing };
        let rule = |verdict: &Verdict| format!("{}/{}", text(&json!(verdict.rule.source)), verdict.rule.id);
        let (state, says) = match &below {
            Below::FailedPod(pod, verdict) => {
                let message = format!("Pod {}: {}", pod.name.name, verdict.message);
                (State::Failed, (verdict.reason.to_string(), message, rule(verdict)))
            }
            _ => (verdict.state, (verdict.reason.to_string(), verdict.message.to_string(), rule(&verdict))),
        };
        Part {
            kind: kind.clone(),
            name: object.name.name.to_string(),
            state: if is_readable { state } else { State::Unknown },
            blocks: is_readable && state == State::Suspended && verdict.blocks,
            scaled_to_zero: is_scaled_to_zero(kind, &verdict),
            lacks_endpoints: matches!(below, Below::NoReadyEndpoints),
            cause: below.cause(),
            progress: verdict.progress,
            // An object of an unreadable kind does not affect Settled.
            settled: !is_readable || object.is_latest_observed(&verdict),
            handed_over: false,
            says: is_readable.then_some(says),
        }
    }

    fn entry(&self, app: &Application, part: &Part) -> Value {
        let known = self.kinds[&part.kind];
        let served = known.served.as_ref().filter(|_| known.unreadable != Some(Unreadable::NotServed));
        let link = served.map(|served| {
            let root = if part.kind.group.is_empty() {
                "/api".to_owned()
            } else {
                format!("/apis/{}", part.kind.group)
            };
            format!(
                "{root}/{}/namespaces/{}/{}/{}",
                served.version,
                app.metadata.namespace.as_deref().unwrap_or_default(),
                served.plural,
                part.name
            )
        });
        json!({
            "link": link, "name": part.name, "group": *part.kind.group, "kind": *part.kind.kind, "status": part.state,
            "progress": part.progress, "says": part.says, "cause": part.cause,
        })
    }

    /// With the HealthRules, if they cannot be read.
    fn unresolved(&self, app: &Application) -> usize {
        let needs_rules = !Self::has_only_a_check(app) && self.are_rules_unreadable();
        self.unreadable_kinds(app) + usize::from(needs_rules)
    }

    /// Number of kinds that are unreadable, cluster-scoped, or not served in a version that the spec names.
    fn unreadable_kinds(&self, app: &Application) -> usize {
        let kinds_of_spec = Self::kinds_of_spec(&app.spec);
        kinds_of_spec.iter().filter(|(kind, versions)| self.is_unresolved(kind, versions)).count()
    }

    fn is_unresolved(&self, kind: &GroupKind, versions: &BTreeSet<String>) -> bool {
        let known = self.kinds[kind];
        let serves = |served: &ServedResource| {
            let has = |version: &String| served.versions.iter().any(|other| **other == **version);
            served.namespaced && versions.iter().all(has)
        };
        known.unreadable.is_some() || !known.served.as_ref().is_some_and(serves)
    }

    /// Readiness of the health-check Pod. None if the spec has no health check.
    fn health_check(&self, app: &Application) -> Option<&'static str> {
        let template = json!(app.spec.health_check.as_ref()?.template.spec);
        let known = self.kinds[&GroupKind::pod()];
        if known.unreadable.is_some() {
            return Some("Unknown");
        }
        let pods = &known.objects;
        let is_ours = |pod: &&Value| {
            pod["metadata"]["ownerReferences"][0]["uid"] == json!(app.metadata.uid) && pod["spec"] == template
        };
        let is_over = |pod: &Value| {
            pod["metadata"].get("deletionTimestamp").is_some()
                || ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase)
        };
        let pod = pods.values().map(|pod| &pod.value).find(is_ours).filter(|pod| !is_over(pod));
        let conditions = pod.and_then(|pod| pod["status"]["conditions"].as_array()).into_iter().flatten();
        let ready = conditions.filter(|it| it["type"] == "Ready").map(|it| it["status"].as_str()).next();
        Some(match ready.flatten() {
            Some("True") => "True",
            Some("False") => "False",
            _ => "Unknown",
        })
    }

    fn dependencies(&self, app: &Application) -> Vec<Value> {
        let find = |name: &String| {
            self.applications().find(|(key, other)| {
                *key.name == **name && other.metadata.namespace == app.metadata.namespace
            })
        };
        let dependency = |name: &String| {
            let found = find(name);
            let ready = match &found {
                Some((_, other)) => self.parts(other).map(|it| self.ready(other, &it.parts)[0].clone()),
                None => Some("Unknown".into()),
            };
            json!({"name": name, "installed": found.is_some(), "ready": ready})
        };
        app.spec.dependencies.iter().map(dependency).collect()
    }

    /// Whether an Application is part of a dependency cycle.
    fn is_in_cycle(&self, app: &Application) -> bool {
        let own = app.metadata.name.clone().unwrap_or_default();
        let mut reached: BTreeSet<String> = app.spec.dependencies.iter().cloned().collect();
        loop {
            let next: BTreeSet<String> = self
                .applications()
                .filter(|(name, other)| {
                    reached.contains(&*name.name) && other.metadata.namespace == app.metadata.namespace
                })
                .flat_map(|(_, other)| other.spec.dependencies.iter().cloned())
                .chain(reached.iter().cloned())
                .collect();
            if next == reached {
                return reached.contains(&own);
            }
            reached = next;
        }
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

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
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

/// Status and reason of Ready from the states of members and missing components.
pub fn readiness(states: &[State]) -> (&'static str, &'static str) {
    let worst = [
        (State::Failed, "ComponentsFailed"),
        (State::Missing, "ComponentsMissing"),
        (State::InProgress, "ComponentsInProgress"),
        (State::Terminating, "ComponentsTerminating"),
    ];
    if let Some((_, reason)) = worst.into_iter().find(|(state, _)| states.contains(state)) {
        ("False", reason)
    } else if states.contains(&State::Unknown) {
        ("Unknown", "ComponentsUnknown")
    } else if states.is_empty() {
        ("Unknown", "NoComponents")
    } else {
        ("True", "ComponentsReady")
    }
}

/// `status.state` of an Application that is not being deleted, from status and reason of Ready.
pub fn state_of(ready: (&str, &str)) -> State {
    match ready {
        ("True", _) => State::Ready,
        (_, "ComponentsFailed") => State::Failed,
        (_, "ComponentsMissing") => State::Missing,
        (_, "ComponentsInProgress") => State::InProgress,
        (_, "ComponentsTerminating") => State::Terminating,
        _ => State::Unknown,
    }
}

fn states(parts: &[Part]) -> Vec<State> {
    parts.iter().map(|part| part.state).collect()
}

pub fn counts(states: &[State]) -> ObjectCounts {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let of = |wanted: State| number(states.iter().filter(|state| **state == wanted).count());
    ObjectCounts {
        total: number(states.len()),
        ready: of(State::Ready),
        in_progress: of(State::InProgress),
        failed: of(State::Failed),
        suspended: of(State::Suspended),
        terminating: of(State::Terminating),
        unknown: of(State::Unknown),
        missing: of(State::Missing),
    }
}

/// A stored status in the form of [`Oracle::status`], so that both can be compared. Null replaces what the
/// oracle does not know.
pub fn shape(status: &Value, expected: &Value) -> Value {
    let condition = |kind: &str| {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
    };
    let unless_unknown =
        |expected: &Value, value: Value| if expected.is_null() { Value::Null } else { value };
    let objects = status["objects"].as_array().cloned().unwrap_or_default();
    let objects = objects.iter().enumerate().map(|(index, object)| {
        let says = json!([object["reason"], object["message"], object["rule"]]);
        json!({
            "link": object["link"], "name": object["name"], "group": object["group"], "kind": object["kind"],
            "status": object["status"], "progress": object["progress"],
            "says": unless_unknown(&expected["objects"][index]["says"], says), "cause": object["cause"]["name"],
        })
    });
    let dependencies = status["dependencies"].as_array().cloned().unwrap_or_default();
    let dependencies = dependencies.iter().enumerate().map(|(index, dependency)| {
        let ready = unless_unknown(&expected["dependencies"][index]["ready"], dependency["ready"].clone());
        json!({"name": dependency["name"], "installed": dependency["installed"], "ready": ready})
    });
    let (ready, settled) = (condition("Ready"), condition("Settled"));
    let list = |field: &str| json!(status[field].as_array().cloned().unwrap_or_default());
    // The status may name a kind for longer than an object of it is owned.
    let owned = status["ownedKinds"].as_array().cloned().unwrap_or_default().into_iter();
    let has_to_be_named =
        |kind: &Value| expected["ownedKinds"].as_array().is_some_and(|all| all.contains(kind));
    json!({
        "observedGeneration": status["observedGeneration"],
        "state": status["state"],
        "reason": unless_unknown(&expected["reason"], status["reason"].clone()),
        "ready": status["ready"],
        "componentsReady": status["componentsReady"],
        "progress": status["progress"],
        "installed": list("installed"),
        "missing": list("missing"),
        "objectCounts": status["objectCounts"],
        "dependencies": dependencies.collect::<Vec<_>>(),
        "ownedKinds": owned.filter(has_to_be_named).collect::<Vec<_>>(),
        "objects": objects.collect::<Vec<_>>(),
        "Ready": [ready["status"], ready["reason"], unless_unknown(&expected["Ready"][2], ready["message"].clone())],
        "Settled": [settled["status"], unless_unknown(&expected["Settled"][1], settled["message"].clone())],
        "Installed": condition("Installed")["status"],
        "Resolved": condition("Resolved")["status"],
        "DependencyCycle": !condition("DependencyCycle").is_null(),
    })
}
