//! Checks of the end state: CombinedStatuses, the statuses of BindingPolicies and StatusCollectors, singletons, and
//! what controllers follow in the clusters.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use bellwether_engine::{GroupKind, SINGLETON_LABEL};
use serde_json::{Value, json};

use crate::{
    collectors::samples,
    combined_oracle::{Binding, Fleet, clauses, matches_kind, shape},
    object::Object,
    process::Process,
    site::Site,
    violation::{Violation, difference},
};

pub(crate) fn is_right(fleet: &Fleet<'_>) -> Result<(), Violation> {
    let bindings = fleet.bindings();
    combined_statuses(fleet, &bindings)?;
    for policy in fleet.policies() {
        policy_is_right(fleet, &policy, &bindings)?;
    }
    for collector in fleet.collectors() {
        collector_is_right(&collector)?;
    }
    singletons(fleet, &bindings)
}

fn combined_statuses(fleet: &Fleet<'_>, bindings: &[Binding]) -> Result<(), Violation> {
    let kind = GroupKind::bellwether("CombinedStatus");
    let mut expected: BTreeMap<_, _> = bindings.iter().map(|binding| (binding.output(), binding)).collect();
    expected.retain(|_, binding| fleet.has_collectors(binding));
    for stored in fleet.hub.of_kind(&kind) {
        must!(
            expected.contains_key(&stored.name),
            "at the end, CombinedStatus {} exists without a reason",
            stored.name
        );
    }
    for (name, binding) in expected {
        // Its CombinedStatus stays as it is, or is not created.
        if binding.object.is_deleting() {
            continue;
        }
        let object = &binding.object;
        let Some(stored) = fleet.hub.get(&kind, &name) else {
            return Err(Violation::new(format!(
                "at the end, CombinedStatus {name} of {} {} is missing",
                object.kind, object.name
            )));
        };
        let expected = fleet.combined_status(binding);
        let actual = shape(stored, &expected);
        must!(
            actual == expected,
            "at the end, CombinedStatus {name} of {} {} differs from the oracle:{}",
            object.kind,
            object.name,
            difference(&actual, &expected)
        );
    }
    Ok(())
}

fn condition(object: &Object, kind: &str) -> Value {
    let mut conditions = object.value["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).map(|it| it["status"].clone()).unwrap_or_default()
}

fn truth(holds: bool) -> &'static str {
    if holds { "True" } else { "False" }
}

fn policy_is_right(fleet: &Fleet<'_>, policy: &Object, bindings: &[Binding]) -> Result<(), Violation> {
    let own: Vec<_> = bindings.iter().filter(|binding| binding.policy.uid() == policy.uid()).collect();
    let clauses = clauses(policy);
    let named: Vec<_> =
        clauses.iter().filter_map(|clause| clause["statusCollectors"].as_array()).flatten().collect();
    let is_valid = |name: &&Value| {
        let collectors = fleet.collectors();
        let collector = collectors.iter().find(|collector| **name == *collector.name.name);
        collector.is_some_and(|collector| sample_is_valid(collector))
    };
    let has_vain = own
        .iter()
        .filter(|binding| binding.wants_singleton)
        .any(|binding| singleton_clusters(bindings, &binding.object).len() != 1);
    let wants = clauses.iter().any(|clause| clause["wantSingletonReportedState"] == true);
    let is_served = |clause: &Value| {
        let mut resources = clause["resources"].as_array().into_iter().flatten();
        resources.all(|plural| fleet.hub.kinds.values().any(|served| *plural == *served.plural))
    };
    let is_reachable = fleet.clusters.values().all(|member| !member.is_stale);
    let resolved = json!(truth(clauses.iter().all(is_served)));
    let expected = json!({
        "observedGeneration": policy.metadata()["generation"],
        "objects": own.len(),
        "clusters": fleet.selected(policy).len(),
        "CollectorsAvailable": (!named.is_empty()).then(|| truth(named.iter().all(is_valid))),
        "SingletonsApply": wants.then(|| truth(!has_vain)),
        "Resolved": if is_reachable { resolved } else { Value::Null },
    });
    let status = &policy.value["status"];
    let actual = json!({
        "observedGeneration": status["observedGeneration"],
        "objects": status["objects"],
        "clusters": status["clusters"],
        "CollectorsAvailable": condition(policy, "CollectorsAvailable"),
        "SingletonsApply": condition(policy, "SingletonsApply"),
        "Resolved": if is_reachable { condition(policy, "Resolved") } else { Value::Null },
    });
    must!(
        actual == expected,
        "at the end, the status of BindingPolicy {} differs from the oracle:{}",
        policy.name,
        difference(&actual, &expected)
    );
    Ok(())
}

fn sample_is_valid(collector: &Object) -> bool {
    let spec = &collector.value["spec"];
    samples().iter().any(|sample| sample.spec == *spec && sample.result.is_some())
}

fn collector_is_right(collector: &Object) -> Result<(), Violation> {
    let is_valid = sample_is_valid(collector);
    let status = &collector.value["status"];
    let has_errors = status["errors"].as_array().is_some_and(|errors| !errors.is_empty());
    let expected = (json!(truth(is_valid)), collector.metadata()["generation"].clone(), !is_valid);
    let actual = (condition(collector, "Valid"), status["observedGeneration"].clone(), has_errors);
    must!(
        actual == expected,
        "at the end, StatusCollector {} has Valid, observedGeneration and errors {actual:?}, want {expected:?}",
        collector.name
    );
    Ok(())
}

/// The clusters that an object is bound to by the policies that ask for its status.
fn singleton_clusters(bindings: &[Binding], object: &Object) -> BTreeSet<Site> {
    let asking = bindings.iter().filter(|it| it.wants_singleton && it.object.uid() == object.uid());
    asking.flat_map(|binding| binding.clusters.iter().copied()).collect()
}

fn singletons(fleet: &Fleet<'_>, bindings: &[Binding]) -> Result<(), Violation> {
    for object in fleet.hub.objects.values().map(Rc::clone) {
        let is_labelled = object.metadata()["labels"][SINGLETON_LABEL] == "true";
        let clusters = singleton_clusters(bindings, &object);
        let cluster = clusters.first().and_then(|site| fleet.clusters.get(site));
        let (kind, name) = (&object.kind, &object.name);
        if object.is_deleting() || object.kind.is_bellwether() {
            continue;
        }
        match cluster.filter(|_| clusters.len() == 1) {
            None => must!(!is_labelled, "at the end, {kind} {name} is not a singleton and has its label"),
            // What it reported is copied as long as it is fresh.
            Some(cluster) if cluster.is_stale => {}
            Some(cluster) => {
                let reported = cluster.store.get(kind, name).map(|it| &it.value["status"]);
                let wanted = reported.filter(|status| !is_empty(status)).unwrap_or(&Value::Null);
                let actual = Some(&object.value["status"]).filter(|status| !is_empty(status));
                must!(
                    is_labelled && actual.unwrap_or(&Value::Null) == wanted,
                    "at the end, {kind} {name} is a singleton (label: {is_labelled}), and its status is {actual:?}, want {wanted}"
                );
            }
        }
    }
    Ok(())
}

fn is_empty(status: &Value) -> bool {
    status.as_object().is_none_or(serde_json::Map::is_empty)
}

/// The kinds of the hub that BindingPolicies need.
pub(crate) fn needed(fleet: &Fleet<'_>) -> Vec<GroupKind> {
    let own = ["BindingPolicy", "CombinedStatus", "StatusCollector"].map(GroupKind::bellwether);
    let mut needed = Vec::from(own);
    for (kind, served) in &fleet.hub.kinds {
        let mut clauses = fleet.policies().into_iter().flat_map(|policy| clauses(&policy));
        if clauses.any(|clause| matches_kind(&clause, kind, &served.plural)) {
            needed.push(kind.clone());
        }
    }
    needed
}

/// Checks that a controller reads in the clusters the kinds of bound objects, and no other.
pub(crate) fn follows_only(fleet: &Fleet<'_>, process: &Process) -> Result<(), Violation> {
    let bindings = fleet.bindings();
    for site in Site::WORKLOAD {
        let asks = |binding: &&Binding| !binding.collectors.is_empty() || binding.wants_singleton;
        let bound = bindings.iter().filter(asks).filter(|binding| binding.clusters.contains(&site));
        let needed: BTreeSet<_> = bound.map(|binding| &binding.object.kind).collect();
        let followed: BTreeSet<_> = process.feeds_of(site).map(|feed| feed.reflector.kind()).collect();
        if let Some(leaked) = followed.difference(&needed).find(|kind| !may_be_read(fleet, kind, site)) {
            return Err(Violation::new(format!(
                "{leaked} is followed in {}, but no policy needs it there",
                site.name()
            )));
        }
        if let Some(missing) = needed.difference(&followed).next() {
            return Err(Violation::new(format!("{missing} is not followed in {}", site.name())));
        }
    }
    Ok(())
}

/// Whether a policy that selects the cluster binds an object of the kind, and another clause asks for its state.
fn may_be_read(fleet: &Fleet<'_>, kind: &GroupKind, site: Site) -> bool {
    let is_bound = |binding: &Binding| binding.object.kind == *kind && binding.clusters.contains(&site);
    fleet.bindings().iter().any(is_bound)
}
