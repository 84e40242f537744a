//! What API servers will not have, and whose fault that is.

use anyhow::Result;
use bellwether_engine::{Change, FieldConflict, Outcome};
use bellwether_kube_io::write::{CallError, call};
use bellwether_testkit::{eventually, rule};
use bellwether_wire::{ApiError, ErrorClass, Verb};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_missing_right_is_named() -> Result<()> {
    let stage = Stage::set("rights").await?;
    let weak = stage.cluster.user("weak-writer")?;
    let client = weak.client().await?;
    let application = stage.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let what = What::applications();

    let why = refused(stage.perform_as(&client, &what, "web", &change, PATIENCE).await)?;
    assert_eq!(
        why,
        format!(
            "Bellwether may not patch applications/status in namespace {}: grant it the verb patch on \
             applications/status in the API group bellwether.dev",
            stage.namespace
        )
    );
    let why = refused(stage.perform_as(&client, &What::pods(), "web", &create(pod("web")), PATIENCE).await)?;
    assert!(why.ends_with("grant it the verb create on pods in the core API group"), "{why}");

    // Exactly what the sentence says is enough.
    let rights = rule(&["patch"], "bellwether.dev", &["applications/status"]);
    stage.cluster.grant(&weak, Some(&stage.namespace), vec![rights]).await?;
    let ended = stage.perform_as(&client, &what, "web", &change, PATIENCE).await;
    assert_eq!(ended, done(&stage.applications().get("web").await?));
    Ok(())
}

#[tokio::test]
async fn an_invalid_status_is_refused_in_the_words_of_the_api_server() -> Result<()> {
    let stage = Stage::set("invalid").await?;
    let application = stage.application("web").await?;
    let change = status(&application, json!({ "ready": "Maybe" }));
    let why = refused(stage.perform(&What::applications(), "web", &change).await)?;
    assert!(why.contains(r#"status.ready: Unsupported value: "Maybe""#), "{why}");
    assert!(why.len() <= 1024 && !why.contains('\n'), "{why}");
    Ok(())
}

#[tokio::test]
async fn what_is_too_large_is_refused() -> Result<()> {
    let stage = Stage::set("large").await?;
    let application = stage.application("web").await?;
    let objects = |count: usize| {
        let member = json!({
            "name": "n".repeat(253), "kind": "Deployment", "status": "Ready", "progress": 100,
            "link": "l".repeat(1024), "reason": "R".repeat(1000), "message": "m".repeat(1000),
        });
        json!({ "objects": vec![member; count] })
    };
    // One is too large for the store, the other for the API server.
    for count in [600, 1024] {
        let change = status(&application, objects(count));
        let why = refused(stage.perform(&What::applications(), "web", &change).await)?;
        assert!(why.contains("large"), "{why}");
    }
    let change = status(&application, objects(300));
    let ended = stage.perform(&What::applications(), "web", &change).await;
    assert_eq!(ended, done(&stage.applications().get("web").await?));
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_ends_is_no_refusal() -> Result<()> {
    let stage = Stage::set("ending").await?;
    // Without controllers it stays in that state for ever.
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    namespaces.delete(&stage.namespace, &DeleteParams::default()).await?;
    // The API server learns of it by a watch of its own.
    eventually(SOON, "nothing new may come", async || {
        let ended = stage.perform(&What::pods(), "web", &create(pod("web"))).await;
        stage.pods().delete("web", &DeleteParams::default()).await.ok();
        Ok(matches!(ended.outcome, Outcome::Failed(why) if why.contains("being terminated")))
    })
    .await
}

#[tokio::test]
async fn where_there_is_no_namespace_there_is_no_object() -> Result<()> {
    let mut stage = Stage::set("none").await?;
    stage.namespace = "there-is-none".to_owned();
    let ended = stage.perform(&What::pods(), "web", &create(pod("web"))).await;
    assert_eq!(ended, Outcome::Absent.into());
    Ok(())
}

#[tokio::test]
async fn a_malformed_object_is_refused() -> Result<()> {
    let stage = Stage::set("malformed").await?;
    let mut strange = pod("web");
    strange["spec"]["containers"] = json!("many");
    let why = refused(stage.perform(&What::pods(), "web", &create(strange)).await)?;
    assert!(why.contains("containers"), "{why}");
    let gone = Change::Delete { uid: "u".into() };
    assert_eq!(stage.perform(&What::pods(), "web", &gone).await, Outcome::Absent.into());
    Ok(())
}

/// A field conflict (409) of a server-side apply, of an object and of its status.
#[tokio::test]
async fn a_field_conflict_names_the_fields_and_their_manager() -> Result<()> {
    let stage = Stage::set("fields").await?;
    let by =
        |manager: &str| PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    stage.pods().create(&PostParams::default(), &object(pod("web"))?).await?;
    let label = Patch::Merge(json!({ "metadata": { "labels": { "app": "theirs", "tier": "theirs" } } }));
    stage.pods().patch("web", &by("gardener"), &label).await?;
    let ready = |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
    let status = Patch::Merge(json!({ "status": ready("True") }));
    stage.pods().patch_status("web", &by("kubelet"), &status).await?;

    let path = format!("/api/v1/namespaces/{}/pods/web", stage.namespace);
    let labels = json!({ "labels": { "app": "ours", "tier": "ours", "new": "ours" } });
    let error = conflict(&stage, &path, json!({ "metadata": labels })).await?;
    let of = |manager: &str, field: &str| FieldConflict { field: field.into(), manager: manager.into() };
    let mut found: Vec<_> = error.field_conflicts().collect();
    found.sort_unstable_by(|one, other| one.field.cmp(&other.field));
    let expected = [of("gardener", ".metadata.labels.app"), of("gardener", ".metadata.labels.tier")];
    assert_eq!(found, expected);

    let error = conflict(&stage, &format!("{path}/status"), json!({ "status": ready("False") })).await?;
    let found: Vec<_> = error.field_conflicts().collect();
    assert_eq!(found, [of("kubelet", ".status.conditions[type=\"Ready\"].status")]);
    Ok(())
}

/// Applies this to a Pod, and gives the conflict that comes of it.
async fn conflict(stage: &Stage, path: &str, mut fields: Value) -> Result<ApiError> {
    fields["apiVersion"] = json!("v1");
    fields["kind"] = json!("Pod");
    let request = Verb::Apply.request(path, fields.to_string().into_bytes());
    match call(&stage.client, request, PATIENCE).await {
        Err(CallError::Api(error)) if error.class == ErrorClass::FieldConflict => Ok(error),
        other => bail!("no field conflict: {other:?}"),
    }
}
