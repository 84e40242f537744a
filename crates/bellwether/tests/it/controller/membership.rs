//! Membership and ownership: selector, annotation, owner references, adoption, dependency cycles.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Story, application, condition, config, texts};

/// Selecting Components: members are the objects of the kinds, in the namespace, that match the selector. An
/// annotation that names another Application excludes an object.
#[tokio::test]
async fn the_selector_decides_and_the_annotation_objects() -> Result<()> {
    let story = Story::begin("members").await?;
    let elsewhere = Story::begin("elsewhere").await?;
    elsewhere.apply(&config("elsewhere", "shop", Some("shop"))).await?;
    story.apply(&application("shop", "shop", "")).await?;
    for (name, label, annotation) in [
        ("mine", "shop", Some("shop")),
        ("selected", "shop", None),
        ("of-another", "shop", Some("other")),
        ("stranger", "x", Some("shop")),
    ] {
        story.apply(&config(name, label, annotation)).await?;
    }
    let two = |status: &Value| status["objectCounts"]["total"] == 2;
    let status = story.status("shop", "two members", two).await?;
    let names: Vec<_> =
        status["objects"].as_array().into_iter().flatten().map(|object| object["name"].clone()).collect();
    assert_eq!(names, ["mine", "selected"]);
    story.owners_are("configmap/mine", &["shop"]).await?;
    for object in ["configmap/selected", "configmap/of-another", "configmap/stranger"] {
        story.owners_are(object, &[]).await?;
    }

    // Step 2 to the letter: an object without the annotation is not a member.
    story.patch("application/shop", json!({ "spec": { "membership": "Annotated" } })).await?;
    let one = |status: &Value| status["objectCounts"]["total"] == 1;
    story.status("shop", "one member", one).await?;
    Ok(())
}

/// Garbage Collection: the controller writes a correct owner reference, keeps those of other owners, and
/// removes its own from objects that no longer match. Installation Status Reporting: such a component is not
/// installed.
#[tokio::test]
async fn ownership_comes_and_goes() -> Result<()> {
    let story = Story::begin("ownership").await?;
    story.apply(&config("other-owner", "none", None)).await?;
    let other = story.get("configmap/other-owner").await?["metadata"]["uid"].take();
    let mine = config("mine", "shop", Some("shop")).replace(
        "  labels:",
        &format!("  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: other-owner, uid: {other}}}]\n  labels:"),
    );
    story.apply(&mine).await?;
    story.apply(&application("shop", "shop", "  components: {mine: {kind: ConfigMap}}")).await?;
    story.owners_are("configmap/mine", &["other-owner", "shop"]).await?;
    let reference = story.get("configmap/mine").await?["metadata"]["ownerReferences"][1].take();
    let uid = story.get("application/shop").await?["metadata"]["uid"].take();
    assert_eq!(
        reference,
        json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "shop", "uid": uid,
            "controller": false, "blockOwnerDeletion": true,
        })
    );

    story.kubectl("label configmap mine app=other --overwrite").await?;
    story.owners_are("configmap/mine", &["other-owner"]).await?;
    let status =
        story.status("shop", "mine is missing", |status| texts(&status["missing"]) == ["mine"]).await?;
    assert_eq!(status["objects"][0]["reason"], "NotSelected");
    story.kubectl("label configmap mine app=shop --overwrite").await?;
    story.owners_are("configmap/mine", &["other-owner", "shop"]).await?;

    story.kubectl("annotate configmap mine kubernetes.io/application-").await?;
    story.owners_are("configmap/mine", &["other-owner"]).await?;
    story.kubectl("annotate configmap mine kubernetes.io/application=shop").await?;
    story.owners_are("configmap/mine", &["other-owner", "shop"]).await?;

    story.patch("application/shop", json!({ "spec": { "ownership": "Observe" } })).await?;
    story.owners_are("configmap/mine", &["other-owner"]).await?;
    story.patch("application/shop", json!({ "spec": { "ownership": "Adopt" } })).await?;
    story.owners_are("configmap/mine", &["other-owner", "shop"]).await?;

    // The controller also releases objects of a kind that the spec no longer names.
    let no_kinds = json!({ "spec": { "componentKinds": [{ "kind": "Service" }], "components": null } });
    story.patch("application/shop", no_kinds).await?;
    story.owners_are("configmap/mine", &["other-owner"]).await?;

    // Generation Observation: the status has the generation of the spec that it describes.
    let generation = story.get("application/shop").await?["metadata"]["generation"].take();
    assert_eq!(generation, 4);
    story
        .status("shop", "it is about the latest", |status| status["observedGeneration"] == generation)
        .await
        .map(drop)
}

/// Adopting Existing Components: the Application names an existing object, and the user annotates it.
#[tokio::test]
async fn what_was_there_before_is_adopted() -> Result<()> {
    let story = Story::begin("adopting").await?;
    story.apply(&config("old", "shop", None)).await?;
    story.apply(&application("shop", "shop", "  components: {old: {kind: ConfigMap}}")).await?;
    story.ready_is("shop", "ComponentsReady").await?;
    story.owners_are("configmap/old", &[]).await?;
    story.kubectl("annotate configmap old kubernetes.io/application=shop").await?;
    story.owners_are("configmap/old", &["shop"]).await
}

/// Two Applications select the same object: both count it, until an annotation decides which one counts and
/// owns it.
#[tokio::test]
async fn two_select_the_same() -> Result<()> {
    let story = Story::begin("overlap").await?;
    story.apply(&format!("{}{}", application("one", "shop", ""), application("two", "shop", ""))).await?;
    story.apply(&config("common", "shop", None)).await?;
    for name in ["one", "two"] {
        story.ready_is(name, "ComponentsReady").await?;
    }
    story.owners_are("configmap/common", &[]).await?;
    story.kubectl("annotate configmap common kubernetes.io/application=two").await?;
    story.owners_are("configmap/common", &["two"]).await?;
    story.ready_is("one", "NoComponents").await?;
    story.kubectl("annotate configmap common kubernetes.io/application=one --overwrite").await?;
    story.owners_are("configmap/common", &["one"]).await?;
    story.ready_is("two", "NoComponents").await.map(drop)
}

/// Applications that depend on each other, and one that depends on itself: DependencyCycle is True, and Ready
/// is not affected.
#[tokio::test]
async fn dependencies_in_a_circle() -> Result<()> {
    let story = Story::begin("circle").await?;
    story.apply(&config("common", "shop", None)).await?;
    story
        .apply(&format!(
            "{}{}{}",
            application("a", "shop", "  dependencies: [b]"),
            application("b", "shop", "  dependencies: [a]"),
            application("c", "shop", "  dependencies: [c]"),
        ))
        .await?;
    for (name, way) in [("a", "a -> b -> a"), ("b", "b -> a -> b"), ("c", "c -> c")] {
        let in_a_circle = |status: &Value| condition(status, "DependencyCycle")["status"] == "True";
        let status = story.status(name, "it is in a circle", in_a_circle).await?;
        let message = condition(&status, "DependencyCycle")["message"].to_string();
        assert!(message.contains(way), "{message}");
        story.ready_is(name, "ComponentsReady").await?;
    }
    story.patch("application/b", json!({ "spec": { "dependencies": null } })).await?;
    let no_circle = |status: &Value| condition(status, "DependencyCycle").is_null();
    story.status("a", "it is in no circle", no_circle).await.map(drop)
}
