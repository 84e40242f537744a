//! A stored status is input: values that cannot be true are corrected, also those of another writer.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{app_of_kinds, deployment, platform, rollup},
    server::merge,
    world::World,
};

const APP: &str = "Application.bellwether.dev";
const ROLLUP: &str = "Rollup.bellwether.dev";
const RULE: &str = "HealthRule.bellwether.dev";

fn widgets_rule() -> Value {
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule", "metadata": {"name": "widgets"},
        "spec": {"for": {"group": "acme.io", "kind": "Widget"}, "cel": [{"when": "true", "state": "Ready"}]},
    })
}

fn world() -> World {
    let components = json!({"components": [{"group": "acme.io", "kind": "Platform", "name": "main"}]});
    World::with([
        app_of_kinds("web"),
        deployment("front", 3, 3),
        rollup("all", &components),
        platform("main"),
        widgets_rule(),
    ])
}

fn stored<'a>(world: &'a World, kind: &str, name: &str) -> &'a Value {
    let (kind, mut key) = crate::objects::key(kind, name);
    if &*kind.kind != "Application" {
        key.namespace = "".into();
    }
    &world.server.get(&kind, &key).expect("the object is there")["status"]
}

/// Each lie alone, and again after a restart. A time in the past may be true.
#[rstest]
#[case::newer_generation(json!({"observedGeneration": 7}))]
#[case::negative_generation(json!({"observedGeneration": -1}))]
#[case::condition_of_a_newer_generation(json!({"observedGeneration": 9, "lie": {"observedGeneration": 9}}))]
#[case::unknown_status(json!({"lie": {"status": "Maybe"}}))]
#[case::another_reason(json!({"lie": {"reason": "Bored", "message": "trust me"}}))]
fn a_stored_status_that_lies_is_corrected(
    #[values((APP, "web"), (ROLLUP, "all"), (RULE, "widgets"))] (kind, name): (&str, &str),
    #[case] lie: Value,
    #[values(false, true)] restart: bool,
) {
    let mut world = world();
    let truth = stored(&world, kind, name).clone();
    let (group, mut key) = crate::objects::key(kind, name);
    if kind != APP {
        key.namespace = "".into();
    }
    world.server.edit(&group, &key, |object| {
        let (mut lie, condition) = (lie.clone(), lie["lie"].clone());
        lie.as_object_mut().expect("an object").remove("lie");
        merge(&mut object["status"], &lie);
        merge(&mut object["status"]["conditions"][0], &condition);
    });
    if restart {
        world.restart();
    }
    world.settle();
    let without_times = |status: &Value| {
        let mut status = status.clone();
        for condition in status["conditions"].as_array_mut().expect("a list") {
            condition["lastTransitionTime"].take();
        }
        if let Some(event) = status.get_mut("lastEvent") {
            event["time"].take();
        }
        status
    };
    assert_eq!(without_times(stored(&world, kind, name)), without_times(&truth));
    let writes = world.writes.len();
    world.settle();
    assert_eq!(world.writes.len(), writes, "and is written once");
}

#[rstest]
fn a_time_in_the_future_is_corrected(#[values(false, true)] restart: bool) {
    let mut world = world();
    let (group, key) = crate::objects::key(APP, "web");
    world.server.edit(&group, &key, |object| {
        object["status"]["conditions"][0]["lastTransitionTime"] = "2099-01-01T00:00:00Z".into();
        object["status"]["objects"][0]["since"] = "2099-01-01T00:00:00Z".into();
    });
    if restart {
        world.restart();
    }
    world.settle();
    let status = world.status("web");
    assert!(status.conditions.iter().all(|condition| condition.last_transition_time.0 <= world.now));
    assert!(status.objects.iter().flat_map(|object| &object.since).all(|since| since.0 <= world.now));
}

/// No schema catches each value that cannot be decoded.
#[test]
fn a_status_that_cannot_be_decoded_is_written_anew() {
    let mut world = world();
    let truth = world.status("web");
    let (group, key) = crate::objects::key(APP, "web");
    world.server.edit(&group, &key, |object| {
        object["status"]["conditions"][0]["lastTransitionTime"] = "yesterday".into();
        object["status"]["progress"] = "most of it".into();
    });
    world.settle();
    assert_eq!(world.status("web").progress, truth.progress);
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
}
