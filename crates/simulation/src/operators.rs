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
pub(crate) fn draw(rng: &mut impl Rng) -> UserAction {
    match rng.random_range(0..40) {
        0..9 => UserAction::Put(some_rollup(rng)),
        9..17 => UserAction::Put(component(rng)),
        17..26 => UserAction::Say(target(rng), conditions(rng)),
        26..28 => {
            UserAction::Label(target(rng), pick(rng, &[Some("core"), Some("edge"), None]).map(Into::into))
        }
        28..30 => UserAction::Delete(target(rng)),
        30 => UserAction::Recreate(target(rng)),
        31 => UserAction::Mark(any(rng)),
        32 => UserAction::Delete(rollup_target(rng)),
        33 => UserAction::Recreate(rollup_target(rng)),
        34 => UserAction::Remark(rollup_target(rng), rng.random()),
        35..37 => UserAction::Overwrite(
            rollup_target(rng),
            pick(rng, &["Available", "Progressing", "Degraded"]).into(),
        ),
        37 => UserAction::Clear(rollup_target(rng), true),
        38 => UserAction::Revert(rollup_target(rng)),
        _ => UserAction::Annotate(any(rng), rng.random_range(0..1000)),
    }
}

/// The initial objects: components with good conditions, and a Rollup that names some of them.
pub(crate) fn beginning(rng: &mut impl Rng) -> Vec<UserAction> {
    let initial = ["Widget.acme.io x", "Widget.acme.io y", "Deployment.apps x", "Platform.acme.io x"];
    let mut actions = Vec::new();
    let mut components = Vec::new();
    for (kind, name) in initial.iter().filter_map(|one| one.split_once(' ')) {
        if rng.random_bool(0.8) {
            let object = unreported(rng, kind, name);
            let status = good_status(rng);
            actions.push(UserAction::Put(with(object, &json!({"status": status}))));
            if rng.random_bool(0.6) {
                let (kind, name) = objects::key(kind, name);
                let namespace = Some(&*name.namespace).filter(|namespace| !namespace.is_empty());
                let entry = json!({"group": *kind.group, "kind": *kind.kind, "name": *name.name});
                components.push(with(entry, &json!({ "namespace": namespace })));
            }
        }
    }
    if components.is_empty() {
        components.push(entry(rng));
    }
    actions.push(UserAction::Put(rolled_up(rng, &components)));
    actions
}

fn target(rng: &mut impl Rng) -> ObjectRef {
    (pick(rng, &KINDS).into(), pick(rng, &NAMES).into())
}

fn rollup_target(rng: &mut impl Rng) -> ObjectRef {
    (ROLLUP.into(), pick(rng, &ROLLUPS).into())
}

fn any(rng: &mut impl Rng) -> ObjectRef {
    if rng.random_bool(0.3) { rollup_target(rng) } else { target(rng) }
}

fn some_rollup(rng: &mut impl Rng) -> Value {
    let count = pick(rng, &[1, 1, 2, 2, 3, 4]);
    let mut components: Vec<_> = (0..count).map(|_| entry(rng)).collect();
    if rng.random_bool(0.1) {
        components.push(components[0].clone());
    }
    rolled_up(rng, &components)
}

fn rolled_up(rng: &mut impl Rng, components: &[Value]) -> Value {
    let spec = json!({
        "components": components,
        "progressing": pick(rng, &["Matrix", "Matrix", "AnyTrue", "WorstIsFalse"]),
        "upgradeable": rng.random_bool(0.4),
        "degradedAfter": pick(rng, &["0s", "0s", "3s", "8s", "30s"]),
    });
    // Other Rollups select by this label.
    let tier = pick(rng, &[None, None, Some("core")]);
    with(rollup(pick(rng, &ROLLUPS), &spec), &json!({"metadata": {"labels": {"tier": tier}}}))
}

/// An entry of `spec.components`, by name or by selector. Some kinds are not served.
fn entry(rng: &mut impl Rng) -> Value {
    let text = match rng.random_range(0..20) {
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
    if rng.random_bool(0.55) {
        let name = if text == ROLLUP { pick(rng, &ROLLUPS) } else { pick(rng, &NAMES) };
        // In one of ten, a required namespace is missing, or a cluster-scoped kind has one.
        let namespace = match (rng.random_bool(0.1), is_cluster_scoped) {
            (false, true) | (true, false) => None,
            (false, false) if rng.random_bool(0.1) => Some("elsewhere"),
            (false, false) | (true, true) => Some(NAMESPACE),
        };
        return with(entry, &json!({"name": name, "namespace": namespace}));
    }
    let selector = match rng.random_range(0..6) {
        0..3 => json!({"matchLabels": {"tier": "core"}}),
        3 => json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["core", "edge"]}]}),
        4 => json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
        _ => json!({"matchLabels": {"app": "web"}}),
    };
    let namespace = rng.random_bool(0.2).then_some(NAMESPACE);
    with(entry, &json!({"selector": selector, "namespace": namespace}))
}

/// A component with random conditions.
fn component(rng: &mut impl Rng) -> Value {
    let (kind, name) = target(rng);
    let (object, status) = (unreported(rng, &kind, &name), conditions(rng));
    let is_elsewhere = !object["metadata"]["namespace"].is_null() && rng.random_bool(0.1);
    let place = if is_elsewhere { json!({"metadata": {"namespace": "elsewhere"}}) } else { json!({}) };
    with(with(object, &place), &json!({ "status": status }))
}

/// A component before its operator reports conditions.
fn unreported(rng: &mut impl Rng, kind: &str, name: &str) -> Value {
    let object = match kind {
        "Deployment.apps" => deployment(name, rng.random_range(0..=3), 3),
        "Platform.acme.io" => platform(name),
        _ => widget(name, None),
    };
    let tier = pick(rng, &[Some("core"), Some("core"), Some("edge"), None]);
    let fields = json!({
        "metadata": {"labels": {"tier": tier}, "creationTimestamp": 0},
        "spec": {"size": rng.random_range(1..3)},
    });
    with(with(object, &belongings(rng)), &fields)
}

/// A status with random conditions. Times are seconds before the write; see `dated`.
fn conditions(rng: &mut impl Rng) -> Value {
    // Without many good statuses no Rollup would ever be Healthy. A few statuses lack conditions.
    let (is_well, often) = pick(rng, &[(true, 1.0), (true, 1.0), (false, 1.0), (false, 1.0), (false, 0.6)]);
    let mut conditions = Vec::new();
    for kind in TYPES {
        if rng.random_bool(if kind == "Upgradeable" { 0.4 } else { often }) {
            conditions.push(condition(rng, kind, is_well));
        }
        if rng.random_bool(0.03) {
            conditions.push(condition(rng, kind, false));
        }
    }
    let observed = pick(rng, &[None, None, None, None, Some(1), Some(99)]);
    json!({"observedGeneration": observed, "conditions": conditions})
}

/// A status in which every condition is good.
fn good_status(rng: &mut impl Rng) -> Value {
    let mut conditions = ["Available", "Progressing", "Degraded"].map(|kind| condition(rng, kind, true));
    for condition in &mut conditions {
        condition["observedGeneration"] = Value::Null;
    }
    json!({ "conditions": conditions })
}

fn condition(rng: &mut impl Rng, kind: &str, is_well: bool) -> Value {
    let well = if matches!(kind, "Available" | "Upgradeable") { "True" } else { "False" };
    let status =
        if is_well { well } else { pick(rng, &["True", "True", "False", "False", "Unknown", "Perhaps"]) };
    let reasons = ["InstallFailed", "UpgradeInProgress", "HealSucceeded", "image not found", ""];
    let messages = ["", "cogs turn", "two cogs are jammed, and the oil is out", "no node"];
    let message = pick(rng, &messages);
    // Sometimes so long that the message of a Rollup must be cut.
    let message = if rng.random_bool(0.05) {
        format!("{message}, again{}", " and again".repeat(45))
    } else {
        message.to_owned()
    };
    let since = match rng.random_range(0..8) {
        0 => Value::Null,
        1..5 => json!(rng.random_range(0..12)),
        5 => json!(-rng.random_range(1..40)),
        _ => json!(rng.random_range(0..4) * 60),
    };
    let observed = match rng.random_range(0..8) {
        0..6 => Value::Null,
        6 => json!(rng.random_range(0..3)),
        _ => json!(99),
    };
    json!({
        "type": kind, "status": status, "reason": pick(rng, &reasons), "message": message,
        "lastTransitionTime": since, "observedGeneration": observed,
    })
}
