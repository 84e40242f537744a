//! Membership and ownership: selector, annotation, owner references, adoption, dependency cycles.

use anyhow::Result;
use serde_json::{Value, json};

use super::{ControllerFixture, application, condition, config, texts};

/// Selecting Components: members are the objects of the kinds, in the namespace, that match the selector. An
/// annotation that names another Application excludes an object.
#[tokio::test]
async fn the_selector_decides_and_the_annotation_objects() -> Result<()> {
    let fixture = ControllerFixture::new("members").await?;
    let elsewhere = ControllerFixture::new("elsewhere").await?;
    elsewhere.apply(&config("elsewhere", "shop", Some("shop"))).await?;
    fixture.apply(&application("shop", "shop", "")).await?;
    for (name, label, annotation) in [
        ("mine", "shop", Some("shop")),
        ("selected", "shop", None),
        ("of-another", "shop", Some("other")),
        ("stranger", "x", Some("shop")),
    ] {
        fixture.apply(&config(name, label, annotation)).await?;
    }
    let two = |status: &Value| status["objectCounts"]["total"] == 2;
    let status = fixture.status("shop", "two members", two).await?;
    let names: Vec<_> =
        status["objects"].as_array().into_iter().flatten().map(|object| object["name"].clone()).collect();
    assert_eq!(names, ["mine", "selected"]);
    fixture.owners_are("configmap/mine", &["shop"]).await?;
    for object in ["configmap/selected", "configmap/of-another", "configmap/stranger"] {
        fixture.owners_are(object, &[]).await?;
    }

    // Step 2 to the letter: an object without the annotation is not a member.
    fixture.patch("application/shop", json!({ "spec": { "membership": "Annotated" } })).await?;
    let one = |status: &Value| status["objectCounts"]["total"] == 1;
    fixture.status("shop", "one member", one).await?;
    Ok(())
}

/// Garbage Collection: the controller writes a correct owner reference, keeps those of other owners, and
/// removes its own from objects that no longer match. Installation Status Reporting: such a component is not
/// installed.
#[tokio::test]
async fn ownership_comes_and_goes() -> Result<()> {
    let fixture = ControllerFixture::new("ownership").await?;
    fixture.apply(&config("other-owner", "none", None)).await?;
    let other = fixture.get("configmap/other-owner").await?["metadata"]["uid"].take();
    let mine = config("mine", "shop", Some("shop")).replace(
        "  labels:",
        &format!("  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: other-owner, uid: {other}}}]\n  labels:"),
    );
    fixture.apply(&mine).await?;
    fixture.apply(&application("shop", "shop", "  components: {mine: {kind: ConfigMap}}")).await?;
    fixture.owners_are("configmap/mine", &["other-owner", "shop"]).await?;
    let reference = fixture.get("configmap/mine").await?["metadata"]["ownerReferences"][1].take();
    let uid = fixture.get("application/shop").await?["metadata"]["uid"].take();
    assert_eq!(
        reference,
        json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "shop", "uid": uid,
            "controller": false, "blockOwnerDeletion": true,
        })
    );

    fixture.kubectl("label configmap mine app=other --overwrite").await?;
    fixture.owners_are("configmap/mine", &["other-owner"]).await?;
    let status =
        fixture.status("shop", "mine is missing", |status| texts(&status["missing"]) == ["mine"]).await?;
    assert_eq!(status["objects"][0]["reason"], "NotSelected");
    fixture.kubectl("label configmap mine app=shop --overwrite").await?;
    fixture.owners_are("configmap/mine", &["other-owner", "shop"]).await?;

    fixture.kubectl("annotate configmap mine kubernetes.io/application-").await?;
    fixture.owners_are("configmap/mine", &["other-owner"]).await?;
    fixture.kubectl("annotate configmap mine kubernetes.io/application=shop").await?;
    fixture.owners_are("configmap/mine", &["other-owner", "shop"]).await?;

    fixture.patch("application/shop", json!({ "spec": { "ownership": "Observe" } })).await?;
    fixture.owners_are("configmap/mine", &["other-owner"]).await?;
    fixture.patch("application/shop", json!({ "spec": { "ownership": "Adopt" } })).await?;
    fixture.owners_are("configmap/mine", &["other-owner", "shop"]).await?;

    // The controller also releases objects of a kind that the spec no longer names.
    let no_kinds = json!({ "spec": { "componentKinds": [{ "kind": "Service" }], "components": null } });
    fixture.patch("application/shop", no_kinds).await?;
    fixture.owners_are("configmap/mine", &["other-owner"]).await?;

    // Generation Observation: the status has the generation of the spec that it describes.
    let generation = fixture.get("application/shop").await?["metadata"]["generation"].take();
    assert_eq!(generation, 4);
    fixture
        .status("shop", "it is about the latest", |status| status["observedGeneration"] == generation)
        .await
        .map(drop)
}

/// Adopting Existing Components: the Application names an existing object, and the user annotates it.
#[tokio::test]
async fn what_was_there_before_is_adopted() -> Result<()> {
    let fixture = ControllerFixture::new("adopting").await?;
    fixture.apply(&config("old", "shop", None)).await?;
    fixture.apply(&application("shop", "shop", "  components: {old: {kind: ConfigMap}}")).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;
    fixture.owners_are("configmap/old", &[]).await?;
    fixture.kubectl("annotate configmap old kubernetes.io/application=shop").await?;
    fixture.owners_are("configmap/old", &["shop"]).await
}

/// Two Applications select the same object: both count it, until an annotation decides which one counts and
/// owns it.
#[tokio::test]
async fn two_select_the_same() -> Result<()> {
    let fixture = ControllerFixture::new("overlap").await?;
    fixture.apply(&format!("{}{}", application("one", "shop", ""), application("two", "shop", ""))).await?;
    fixture.apply(&config("common", "shop", None)).await?;
    for name in ["one", "two"] {
        fixture.ready_is(name, "ComponentsReady").await?;
    }
    fixture.owners_are("configmap/common", &[]).await?;
    fixture.kubectl("annotate configmap common kubernetes.io/application=two").await?;
    fixture.owners_are("configmap/common", &["two"]).await?;
    fixture.ready_is("one", "NoComponents").await?;
    fixture.kubectl("annotate configmap common kubernetes.io/application=one --overwrite").await?;
    fixture.owners_are("configmap/common", &["one"]).await?;
    fixture.ready_is("two", "NoComponents").await.map(drop)
}

/// Applications that depend on each other, and one that depends on itself: DependencyCycle is True, and Ready
/// is not affected.
#[tokio::test]
async fn dependencies_in_a_circle() -> Result<()> {
    let fixture = ControllerFixture::new("circle").await?;
    fixture.apply(&config("common", "shop", None)).await?;
    fixture
        .apply(&format!(
            "{}{}{}",
            application("a", "shop", "  dependencies: [b]"),
            application("b", "shop", "  dependencies: [a]"),
            application("c", "shop", "  dependencies: [c]"),
        ))
        .await?;
    for (name, way) in [("a", "a -> b -> a"), ("b", "b -> a -> b"), ("c", "c -> c")] {
        let in_a_circle = |status: &Value| condition(status, "DependencyCycle")["status"] == "True";
        let status = fixture.status(name, "it is in a circle", in_a_circle).await?;
        let message = condition(&status, "DependencyCycle")["message"].to_string();
        assert!(message.contains(way), "{message}");
        fixture.ready_is(name, "ComponentsReady").await?;
    }
    fixture.patch("application/b", json!({ "spec": { "dependencies": null } })).await?;
    let no_circle = |status: &Value| condition(status, "DependencyCycle").is_null();
    fixture.status("a", "it is in no circle", no_circle).await.map(drop)
}
