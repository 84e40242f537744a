//! The oracle for Applications: computes a status from scratch, with plain loops over all known objects.
//!
//! It is slow and simple, so that it is easy to trust. Times are left out because they depend on the past.

mod members;
mod readiness;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use bellwether_api::{Application, ApplicationSpec, State};
use bellwether_engine::{GroupKind, NamespacedName, ServedResource, Unreadable};
use bellwether_health::user::CompiledRule;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::known::Known;

pub use members::{Part, Totals, belongs, is_announced};
pub(crate) use members::{is_counted, selects};
pub use readiness::{counts, readiness, state_of};

/// What a controller knows at a point in time.
pub struct Oracle<'a> {
    pub kinds: BTreeMap<GroupKind, &'a Known>,
    pub now: Timestamp,
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
            "objectCounts": counts(&readiness::states(&parts)),
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
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
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
