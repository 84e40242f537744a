//! Rollups, what operators say of their components, and what becomes of both, by chance.

use jiff::Timestamp;
use rand::{Rng, SeedableRng as _, rngs::SmallRng};
use serde_json::{Value, json};

use crate::{
    load::{Action, ROLLUP, Target, belongings, dated, pick},
    objects::{self, NAMESPACE, deployment, platform, rollup, widget, with},
};

const ROLLUPS: [&str; 3] = ["r", "s", "t"];
const KINDS: [&str; 4] = ["Widget.acme.io", "Widget.acme.io", "Deployment.apps", "Platform.acme.io"];
const NAMES: [&str; 3] = ["x", "y", "z"];
const TYPES: [&str; 4] = ["Available", "Progressing", "Degraded", "Upgradeable"];

/// A Rollup, by a number.
pub fn any_rollup(number: u64) -> Value {
    some_rollup(&mut SmallRng::seed_from_u64(number))
}

/// An object that an operator has spoken of at about this time, by a number.
pub fn any_component(number: u64, now: Timestamp) -> Value {
    dated(&component(&mut SmallRng::seed_from_u64(number)), now)
}

/// Something that concerns Rollups.
pub(crate) fn draw(chance: &mut impl Rng) -> Action {
    match chance.random_range(0..40) {
        0..9 => Action::Put(some_rollup(chance)),
        9..17 => Action::Put(component(chance)),
        17..26 => Action::Say(target(chance), conditions(chance)),
        26..28 => Action::Label(target(chance), pick(chance, &[Some("core"), Some("edge"), None])),
        28..30 => Action::Delete(target(chance)),
        30 => Action::Recreate(target(chance)),
        31 => Action::Mark(any(chance)),
        32 => Action::Delete(one(chance)),
        33 => Action::Recreate(one(chance)),
        34 => Action::Remark(one(chance), chance.random()),
        35..37 => Action::Overwrite(one(chance), pick(chance, &["Available", "Progressing", "Degraded"])),
        37 => Action::Clear(one(chance), true),
        38 => Action::Revert(one(chance)),
        _ => Action::Annotate(any(chance), chance.random_range(0..1000)),
    }
}

fn target(chance: &mut impl Rng) -> Target {
    (pick(chance, &KINDS), pick(chance, &NAMES))
}

fn one(chance: &mut impl Rng) -> Target {
    (ROLLUP, pick(chance, &ROLLUPS))
}

fn any(chance: &mut impl Rng) -> Target {
    if chance.random_bool(0.3) { one(chance) } else { target(chance) }
}

fn some_rollup(chance: &mut impl Rng) -> Value {
    let count = chance.random_range(1..5);
    let mut components: Vec<_> = (0..count).map(|_| entry(chance)).collect();
    if chance.random_bool(0.1) {
        components.push(components[0].clone());
    }
    let spec = json!({
        "components": components,
        "progressing": pick(chance, &["Matrix", "Matrix", "AnyTrue", "WorstIsFalse"]),
        "upgradeable": chance.random_bool(0.4),
        "degradedAfter": pick(chance, &["0s", "0s", "3s", "8s", "30s"]),
    });
    // Some are selected by others.
    let tier = pick(chance, &[None, None, Some("core")]);
    with(rollup(pick(chance, &ROLLUPS), &spec), &json!({"metadata": {"labels": {"tier": tier}}}))
}

/// Which objects: one by its name or some by their labels. Some entries cannot be had.
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
    let is_nowhere = matches!(text, "Platform.acme.io" | ROLLUP);
    let entry = json!({"group": *kind.group, "kind": *kind.kind});
    if chance.random_bool(0.55) {
        let name = pick(chance, if text == ROLLUP { &ROLLUPS } else { &NAMES });
        // One in ten has forgotten the namespace, or gives one that is not needed.
        let namespace = match (chance.random_bool(0.1), is_nowhere) {
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

/// An object that an operator looks after.
fn component(chance: &mut impl Rng) -> Value {
    let name = pick(chance, &NAMES);
    let (object, is_nowhere) = match chance.random_range(0..8) {
        0..4 => (widget(name, None), false),
        4..6 => (deployment(name, chance.random_range(0..=3), 3), false),
        _ => (platform(name), true),
    };
    let namespace = match is_nowhere {
        true => None,
        false if chance.random_bool(0.1) => Some("elsewhere"),
        false => Some(NAMESPACE),
    };
    let tier = pick(chance, &[Some("core"), Some("core"), Some("edge"), None]);
    let fields = json!({
        "metadata": {"namespace": namespace, "labels": {"tier": tier}, "creationTimestamp": 0},
        "spec": {"size": chance.random_range(1..3)},
        "status": conditions(chance),
    });
    with(with(object, &belongings(chance)), &fields)
}

/// A status with some conditions. Their times are so many seconds before it is written.
fn conditions(chance: &mut impl Rng) -> Value {
    // Half of all are well: else nothing ever is.
    let is_well = chance.random_bool(0.5);
    let mut conditions = Vec::new();
    for kind in TYPES {
        let often = if kind == "Upgradeable" { 0.4 } else { 0.85 };
        if is_well && kind != "Upgradeable" || chance.random_bool(often) {
            conditions.push(condition(chance, kind, is_well));
        }
        if chance.random_bool(0.05) {
            conditions.push(condition(chance, kind, false));
        }
    }
    let observed = pick(chance, &[None, None, Some(1), Some(99)]);
    json!({"observedGeneration": observed, "conditions": conditions})
}

fn condition(chance: &mut impl Rng, kind: &str, is_well: bool) -> Value {
    let well = if matches!(kind, "Available" | "Upgradeable") { "True" } else { "False" };
    let status =
        if is_well { well } else { pick(chance, &["True", "True", "False", "False", "Unknown", "Perhaps"]) };
    let reasons = ["InstallFailed", "UpgradeInProgress", "HealSucceeded", "image not found", ""];
    let messages = ["", "cogs turn", "two cogs are jammed, and nobody has oil", "no node"];
    let message = pick(chance, &messages);
    // Now and then so long that not all have room.
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
        0..5 => Value::Null,
        5 => json!(chance.random_range(0..3)),
        _ => json!(99),
    };
    json!({
        "type": kind, "status": status, "reason": pick(chance, &reasons), "message": message,
        "lastTransitionTime": since, "observedGeneration": observed,
    })
}
