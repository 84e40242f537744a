//! Random Rollups, components with the conditions that operators report, and changes to both.

use jiff::Timestamp;
use rand::{Rng, SeedableRng as _, rngs::SmallRng};
use serde_json::{Value, json};

use crate::{
    load::{ObjectRef, ROLLUP, UserAction, belongings, dated, pick},
    objects::{self, NAMESPACE, deployment, platform, rollup, widget, with},
};

const ROLLUPS: [&str; 3] = ["r", "s", "t"];
const KINDS: [&str; 4] = ["Widget.acme.io", "Widget.acme.io", "Deployment.apps", "Platform.acme.io"];
/// `x` and `y` are more likely than `z`, so that a drawn name often exists.
const NAMES: [&str; 5] = ["x", "x", "y", "y", "z"];
const TYPES: [&str; 4] = ["Available", "Progressing", "Degraded", "Upgradeable"];

/// A random Rollup; the number is the seed.
pub fn any_rollup(number: u64) -> Value {
    some_rollup(&mut SmallRng::seed_from_u64(number))
}

/// A random component; the number is the seed. Its times are close to `now`.
pub fn any_component(number: u64, now: Timestamp) -> Value {
    dated(&component(&mut SmallRng::seed_from_u64(number)), now)
}

/// A random action on a Rollup or a component.
pub(crate) fn draw(chance: &mut impl Rng) -> UserAction {
    match chance.random_range(0..40) {
        0..9 => UserAction::Put(some_rollup(chance)),
        9..17 => UserAction::Put(component(chance)),
        17..26 => UserAction::Say(target(chance), conditions(chance)),
        26..28 => UserAction::Label(
            target(chance),
            pick(chance, &[Some("core"), Some("edge"), None]).map(Into::into),
        ),
        28..30 => UserAction::Delete(target(chance)),
        30 => UserAction::Recreate(target(chance)),
        31 => UserAction::Mark(any(chance)),
        32 => UserAction::Delete(rollup_target(chance)),
        33 => UserAction::Recreate(rollup_target(chance)),
        34 => UserAction::Remark(rollup_target(chance), chance.random()),
        35..37 => UserAction::Overwrite(
            rollup_target(chance),
            pick(chance, &["Available", "Progressing", "Degraded"]).into(),
        ),
        37 => UserAction::Clear(rollup_target(chance), true),
        38 => UserAction::Revert(rollup_target(chance)),
        _ => UserAction::Annotate(any(chance), chance.random_range(0..1000)),
    }
}

/// The initial objects: components with good conditions, and a Rollup that names some of them.
pub(crate) fn beginning(chance: &mut impl Rng) -> Vec<UserAction> {
    let initial = ["Widget.acme.io x", "Widget.acme.io y", "Deployment.apps x", "Platform.acme.io x"];
    let mut actions = Vec::new();
    let mut components = Vec::new();
    for (kind, name) in initial.iter().filter_map(|one| one.split_once(' ')) {
        if chance.random_bool(0.8) {
            let object = unreported(chance, kind, name);
            let status = good_status(chance);
            actions.push(UserAction::Put(with(object, &json!({"status": status}))));
            if chance.random_bool(0.6) {
                let (kind, name) = objects::key(kind, name);
                let namespace = Some(&*name.namespace).filter(|namespace| !namespace.is_empty());
                let entry = json!({"group": *kind.group, "kind": *kind.kind, "name": *name.name});
                components.push(with(entry, &json!({ "namespace": namespace })));
            }
        }
    }
    if components.is_empty() {
        components.push(entry(chance));
    }
    actions.push(UserAction::Put(rolled_up(chance, &components)));
    actions
}

fn target(chance: &mut impl Rng) -> ObjectRef {
    (pick(chance, &KINDS).into(), pick(chance, &NAMES).into())
}

fn rollup_target(chance: &mut impl Rng) -> ObjectRef {
    (ROLLUP.into(), pick(chance, &ROLLUPS).into())
}

fn any(chance: &mut impl Rng) -> ObjectRef {
    if chance.random_bool(0.3) { rollup_target(chance) } else { target(chance) }
}

fn some_rollup(chance: &mut impl Rng) -> Value {
    let count = pick(chance, &[1, 1, 2, 2, 3, 4]);
    let mut components: Vec<_> = (0..count).map(|_| entry(chance)).collect();
    if chance.random_bool(0.1) {
        components.push(components[0].clone());
    }
    rolled_up(chance, &components)
}

fn rolled_up(chance: &mut impl Rng, components: &[Value]) -> Value {
    let spec = json!({
        "components": components,
        "progressing": pick(chance, &["Matrix", "Matrix", "AnyTrue", "WorstIsFalse"]),
        "upgradeable": chance.random_bool(0.4),
        "degradedAfter": pick(chance, &["0s", "0s", "3s", "8s", "30s"]),
    });
    // Other Rollups select by this label.
    let tier = pick(chance, &[None, None, Some("core")]);
    with(rollup(pick(chance, &ROLLUPS), &spec), &json!({"metadata": {"labels": {"tier": tier}}}))
}

/// An entry of `spec.components`, by name or by selector. Some kinds are not served.
fn entry(chance: &mut impl Rng) -> Value {
    let text = match chance.random_range(0..20) {
        0..9 => "Widget.acme.io",
        9..12 => "Deployment.apps",
        12..15 => "Platform.acme.io",
        15..18 => ROLLUP,
        18 => "Gone.no.where",
        _ => "Widget.no.where",
    };
    let kind = objects::kind(text);
    let is_cluster_scoped = matches!(text, "Platform.acme.io" | ROLLUP);
    let entry = json!({"group": *kind.group, "kind": *kind.kind});
    if chance.random_bool(0.55) {
        let name = if text == ROLLUP { pick(chance, &ROLLUPS) } else { pick(chance, &NAMES) };
        // In one of ten, a required namespace is missing, or a cluster-scoped kind has one.
        let namespace = match (chance.random_bool(0.1), is_cluster_scoped) {
            (false, true) | (true, false) => None,
            (false, false) if chance.random_bool(0.1) => Some("elsewhere"),
            (false, false) | (true, true) => Some(NAMESPACE),
        };
        return with(entry, &json!({"name": name, "namespace": namespace}));
    }
    let selector = match chance.random_range(0..6) {
        0..3 => json!({"matchLabels": {"tier": "core"}}),
        3 => json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["core", "edge"]}]}),
        4 => json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
        _ => json!({"matchLabels": {"app": "web"}}),
    };
    let namespace = chance.random_bool(0.2).then_some(NAMESPACE);
    with(entry, &json!({"selector": selector, "namespace": namespace}))
}

/// A component with random conditions.
fn component(chance: &mut impl Rng) -> Value {
    let (kind, name) = target(chance);
    let (object, status) = (unreported(chance, &kind, &name), conditions(chance));
    let is_elsewhere = !object["metadata"]["namespace"].is_null() && chance.random_bool(0.1);
    let place = if is_elsewhere { json!({"metadata": {"namespace": "elsewhere"}}) } else { json!({}) };
    with(with(object, &place), &json!({ "status": status }))
}

/// A component before its operator reports conditions.
fn unreported(chance: &mut impl Rng, kind: &str, name: &str) -> Value {
    let object = match kind {
        "Deployment.apps" => deployment(name, chance.random_range(0..=3), 3),
        "Platform.acme.io" => platform(name),
        _ => widget(name, None),
    };
    let tier = pick(chance, &[Some("core"), Some("core"), Some("edge"), None]);
    let fields = json!({
        "metadata": {"labels": {"tier": tier}, "creationTimestamp": 0},
        "spec": {"size": chance.random_range(1..3)},
    });
    with(with(object, &belongings(chance)), &fields)
}

/// A status with random conditions. Times are seconds before the write; see `dated`.
fn conditions(chance: &mut impl Rng) -> Value {
    // Without many good statuses no Rollup would ever be Healthy. A few statuses lack conditions.
    let (is_well, often) =
        pick(chance, &[(true, 1.0), (true, 1.0), (false, 1.0), (false, 1.0), (false, 0.6)]);
    let mut conditions = Vec::new();
    for kind in TYPES {
        if chance.random_bool(if kind == "Upgradeable" { 0.4 } else { often }) {
            conditions.push(condition(chance, kind, is_well));
        }
        if chance.random_bool(0.03) {
            conditions.push(condition(chance, kind, false));
        }
    }
    let observed = pick(chance, &[None, None, None, None, Some(1), Some(99)]);
    json!({"observedGeneration": observed, "conditions": conditions})
}

/// A status in which every condition is good.
fn good_status(chance: &mut impl Rng) -> Value {
    let mut conditions = ["Available", "Progressing", "Degraded"].map(|kind| condition(chance, kind, true));
    for condition in &mut conditions {
        condition["observedGeneration"] = Value::Null;
    }
    json!({ "conditions": conditions })
}

fn condition(chance: &mut impl Rng, kind: &str, is_well: bool) -> Value {
    let well = if matches!(kind, "Available" | "Upgradeable") { "True" } else { "False" };
    let status =
        if is_well { well } else { pick(chance, &["True", "True", "False", "False", "Unknown", "Perhaps"]) };
    let reasons = ["InstallFailed", "UpgradeInProgress", "HealSucceeded", "image not found", ""];
    let messages = ["", "cogs turn", "two cogs are jammed, and the oil is out", "no node"];
    let message = pick(chance, &messages);
    // Sometimes so long that the message of a Rollup must be cut.
    let message = if chance.random_bool(0.05) {
        format!("{message}, again{}", " and again".repeat(45))
    } else {
        message.to_owned()
    };
    let since = match chance.random_range(0..8) {
        0 => Value::Null,
        1..5 => json!(chance.random_range(0..12)),
        5 => json!(-chance.random_range(1..40)),
        _ => json!(chance.random_range(0..4) * 60),
    };
    let observed = match chance.random_range(0..8) {
        0..6 => Value::Null,
        6 => json!(chance.random_range(0..3)),
        _ => json!(99),
    };
    json!({
        "type": kind, "status": status, "reason": pick(chance, &reasons), "message": message,
        "lastTransitionTime": since, "observedGeneration": observed,
    })
}
