//! Events about the state of a group: which, of which type, when, and each once.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    objects::{app_of, app_of_kinds, deployment, old_app, widget, with},
    world::World,
    writes::Fault,
};

/// Worlds start at 10:00.
fn created(app: Value, time: &str) -> Value {
    with(app, &json!({"metadata": {"creationTimestamp": format!("2026-11-14T{time}Z")}}))
}

fn failed(name: &str) -> Value {
    let stalled =
        json!([{"type": "Stalled", "status": "True", "reason": "Jammed", "message": "a cog is jammed"}]);
    with(widget(name, None), &json!({"status": {"conditions": stalled}}))
}

/// Type, reason and text of each Event since the last call.
fn events(world: &mut World) -> Vec<String> {
    let text = |good| if good { "Normal" } else { "Warning" };
    let transitions = std::mem::take(&mut world.transitions);
    transitions.iter().map(|it| format!("{} {} {}", text(it.good), it.reason, it.message)).collect()
}

fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

/// The Application is applied before its members: neither Missing nor the rest is an Event.
#[test]
fn the_order_in_which_a_manifest_is_applied_is_no_event() {
    let mut world = World::with([created(app_of("web", &["front"]), "10:00:00")]);
    assert_eq!(world.status("web").missing, ["front"]);
    world.put(deployment("front", 0, 3));
    assert_eq!(events(&mut world), [""; 0]);
    world.pass(seconds(60));
    assert_eq!(events(&mut world), [""; 0], "it has been InProgress since before");
    world.put(deployment("front", 3, 3));
    assert_eq!(events(&mut world), ["Normal Ready All components ready"]);
}

/// What is bad after ten seconds is a Warning, although nothing changes then.
#[test]
fn what_is_bad_after_the_first_seconds_is_a_warning() {
    let mut world = World::with([created(app_of("web", &["front"]), "10:00:00")]);
    world.pass(seconds(5));
    assert_eq!(events(&mut world), [""; 0]);
    world.pass(seconds(10));
    assert_eq!(events(&mut world), ["Warning Missing Deployment/front: not found"]);
    world.pass(seconds(600));
    assert_eq!(events(&mut world), [""; 0]);
}

#[test]
fn a_rollout_and_a_failure_differ() {
    let mut world = World::with([created(app_of_kinds("web"), "09:00:00"), widget("a", Some("True"))]);
    assert_eq!(events(&mut world), [""; 0], "the first good state is not a change");
    world.put(deployment("front", 2, 3));
    assert_eq!(events(&mut world), ["Normal InProgress Deployment/front: 2 of 3 replicas ready"]);
    world.put(failed("a"));
    let failure = "Warning Failed Widget/a: Jammed: a cog is jammed; Deployment/front: 2 of 3 replicas ready";
    assert_eq!(events(&mut world), [failure]);
    world.put(deployment("front", 1, 3));
    assert_eq!(events(&mut world), [""; 0], "the state is the same");
    world.put(widget("a", Some("True"))).put(deployment("front", 3, 3));
    let expected =
        ["Normal InProgress Deployment/front: 1 of 3 replicas ready", "Normal Ready All components ready"];
    assert_eq!(events(&mut world), expected);
}

/// Unknown is a Warning once it has lasted a minute.
#[test]
fn unknown_that_lasts_is_a_warning() {
    let mut world = World::with([created(app_of_kinds("web"), "09:00:00"), widget("a", Some("True"))]);
    let message =
        "Widget/a: no rule for Widget.acme.io, and no known condition, phase or counter in its status";
    world.put(widget("a", None));
    assert_eq!(events(&mut world), [format!("Normal Unknown {message}")]);
    world.pass(seconds(30)).put(widget("a", Some("True")));
    assert_eq!(events(&mut world), ["Normal Ready All components ready"]);
    world.put(widget("a", None));
    assert_eq!(events(&mut world), [format!("Normal Unknown {message}")]);
    world.pass(seconds(30)).restart();
    world.settle();
    world.pass(seconds(60));
    assert_eq!(events(&mut world), [format!("Warning Unknown {message}")]);
    world.pass(seconds(600)).restart();
    world.settle();
    world.pass(seconds(600));
    assert_eq!(events(&mut world), [""; 0]);
}

/// The stored status says what was reported: a restart neither repeats an Event nor loses one.
#[test]
fn a_restart_neither_repeats_nor_loses_an_event() {
    let mut world = World::with([created(app_of("web", &["front"]), "10:00:00")]);
    world.pass(seconds(3)).restart();
    world.settle();
    world.pass(seconds(20));
    assert_eq!(events(&mut world), ["Warning Missing Deployment/front: not found"]);
    world.restart();
    world.settle();
    assert_eq!(events(&mut world), [""; 0]);
    // The state changes while no controller runs.
    world.restart();
    world.server.put(deployment("front", 3, 3));
    world.settle();
    assert_eq!(events(&mut world), ["Normal Ready All components ready"]);
}

/// The write succeeded, but its response was lost.
#[test]
fn a_lost_response_neither_repeats_nor_loses_an_event() {
    let mut world = World::with([created(app_of_kinds("web"), "09:00:00"), widget("a", Some("True"))]);
    world.faults.push_back(Fault::LoseResponse);
    world.put(failed("a"));
    world.pass(seconds(60));
    assert_eq!(events(&mut world), ["Warning Failed Widget/a: Jammed: a cog is jammed"]);
}

/// An Application of app.k8s.io with Deployments and Widgets.
fn foreign_app(time: &str) -> Value {
    let kinds = json!([{"group": "apps", "kind": "Deployment"}, {"group": "acme.io", "kind": "Widget"}]);
    created(old_app("web", &json!({"componentKinds": kinds})), time)
}

const FAILURE: &str = "Warning Failed Widget/a: Jammed: a cog is jammed";

/// The other API group has the same Events, although its status has no state.
#[test]
fn app_k8s_io_has_the_same_events() {
    let mut world = World::with([foreign_app("09:00:00"), widget("a", Some("True"))]);
    assert_eq!(events(&mut world), [""; 0], "the first good state is not a change");
    world.put(deployment("front", 2, 3));
    assert_eq!(events(&mut world), ["Normal InProgress 1 components not ready"]);
    world.put(failed("a"));
    assert_eq!(events(&mut world), [format!("{FAILURE}; Deployment/front: 2 of 3 replicas ready")]);
    world.put(deployment("front", 1, 3));
    assert_eq!(events(&mut world), [""; 0], "the state is the same");
    world.put(widget("a", Some("True"))).put(deployment("front", 3, 3));
    let expected = ["Normal InProgress 1 components not ready", "Normal Ready all components ready"];
    assert_eq!(events(&mut world), expected);
    world.put(failed("a"));
    assert_eq!(events(&mut world), [FAILURE]);
    world.put(widget("a", Some("True")));
    assert_eq!(events(&mut world), ["Normal Ready all components ready"]);
}

/// While a manifest is being applied, nothing is an Event; what has failed is a Warning after ten seconds.
#[test]
fn app_k8s_io_has_the_same_grace_period() {
    let mut world = World::with([foreign_app("10:00:00"), deployment("back", 0, 3), failed("a")]);
    world.pass(seconds(5));
    assert_eq!(events(&mut world), [""; 0]);
    world.restart();
    world.settle();
    world.pass(seconds(10));
    assert_eq!(events(&mut world), [format!("{FAILURE}; Deployment/back: 0 of 3 replicas ready")]);
    world.pass(seconds(600)).put(deployment("back", 3, 3));
    assert_eq!(events(&mut world), [""; 0]);
}

#[test]
fn of_app_k8s_io_too_unknown_that_lasts_is_a_warning() {
    let mut world = World::with([foreign_app("09:00:00"), widget("a", Some("True"))]);
    world.put(widget("a", None));
    let message = "1 components of unknown readiness";
    assert_eq!(events(&mut world), [format!("Normal Unknown {message}")]);
    world.pass(seconds(30)).restart();
    world.settle();
    world.pass(seconds(60));
    assert_eq!(events(&mut world), [format!("Warning Unknown {message}")]);
    world.pass(seconds(600)).restart();
    world.settle();
    world.pass(seconds(600));
    assert_eq!(events(&mut world), [""; 0]);
}

/// What was reported is in its conditions.
#[test]
fn of_app_k8s_io_too_a_restart_neither_repeats_nor_loses_an_event() {
    let mut world = World::with([foreign_app("09:00:00"), deployment("front", 2, 3)]);
    // It fails while no controller runs.
    world.restart();
    world.server.put(failed("a"));
    world.settle();
    assert_eq!(events(&mut world), [format!("{FAILURE}; Deployment/front: 2 of 3 replicas ready")]);
    world.restart();
    world.settle();
    world.pass(seconds(600));
    assert_eq!(events(&mut world), [""; 0]);
    // It is repaired while no controller runs.
    world.restart();
    world.server.put(widget("a", Some("True")));
    world.settle();
    assert_eq!(events(&mut world), ["Normal InProgress 1 components not ready"]);
    world.faults.push_back(Fault::LoseResponse);
    world.put(failed("a"));
    world.pass(seconds(60));
    assert_eq!(events(&mut world), [format!("{FAILURE}; Deployment/front: 2 of 3 replicas ready")]);
}
