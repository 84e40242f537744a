//! Rejected writes: 403 Forbidden, 422 invalid, too large for etcd, terminating namespace, field conflict
//! (409).

use anyhow::Result;
use bellwether_engine::{FieldConflict, Outcome, Write};
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
async fn a_missing_permission_is_named() -> Result<()> {
    let fixture = WriterFixture::new("permissions").await?;
    let weak = fixture.cluster.user("weak-writer")?;
    let client = weak.client().await?;
    let application = fixture.application("web").await?;
    let change = status(&application, json!({ "progress": 50 }));
    let resource = Resource::applications();

    let why = rejection(fixture.perform_as(&client, &resource, "web", &change, REQUEST_TIMEOUT).await)?;
    assert_eq!(
        why,
        format!(
            "cannot patch applications/status in namespace {}: forbidden. Grant Bellwether the verb patch on \
             applications/status in the API group bellwether.dev",
            fixture.namespace
        )
    );
    let why = rejection(
        fixture.perform_as(&client, &Resource::pods(), "web", &create(pod("web")), REQUEST_TIMEOUT).await,
    )?;
    assert!(why.ends_with("Grant Bellwether the verb create on pods in the core API group"), "{why}");

    // The permission in the message is sufficient.
    let permission = rule(&["patch"], "bellwether.dev", &["applications/status"]);
    fixture.cluster.grant(&weak, Some(&fixture.namespace), vec![permission]).await?;
    let ended = fixture.perform_as(&client, &resource, "web", &change, REQUEST_TIMEOUT).await;
    assert_eq!(ended, done(&fixture.applications().get("web").await?));
    Ok(())
}

#[tokio::test]
async fn an_invalid_status_is_rejected_with_the_message_of_the_api_server() -> Result<()> {
    let fixture = WriterFixture::new("invalid").await?;
    let application = fixture.application("web").await?;
    let change = status(&application, json!({ "ready": "Maybe" }));
    let why = rejection(fixture.perform(&Resource::applications(), "web", &change).await)?;
    assert!(why.contains(r#"status.ready: Unsupported value: "Maybe""#), "{why}");
    assert!(why.len() <= 1024 && !why.contains('\n'), "{why}");
    Ok(())
}

#[tokio::test]
async fn a_status_that_is_too_large_is_rejected() -> Result<()> {
    let fixture = WriterFixture::new("large").await?;
    let application = fixture.application("web").await?;
    let objects = |count: usize| {
        let member = json!({
            "name": "n".repeat(253), "kind": "Deployment", "status": "Ready", "progress": 100,
            "link": "l".repeat(1024), "reason": "R".repeat(1000), "message": "m".repeat(1000),
        });
        json!({ "objects": vec![member; count] })
    };
    // One exceeds the limit of etcd, the other that of the API server.
    for count in [600, 1024] {
        let change = status(&application, objects(count));
        // A busy API server may take longer for megabytes than a request may last.
        let mut ended = fixture.perform(&Resource::applications(), "web", &change).await;
        while matches!(&ended.outcome, Outcome::Failed(why) if why.contains("no response")) {
            ended = fixture.perform(&Resource::applications(), "web", &change).await;
        }
        let why = rejection(ended)?;
        assert!(why.contains("large"), "{why}");
    }
    let change = status(&application, objects(300));
    let ended = fixture.perform(&Resource::applications(), "web", &change).await;
    assert_eq!(ended, done(&fixture.applications().get("web").await?));
    Ok(())
}

#[tokio::test]
async fn a_terminating_namespace_is_a_failure() -> Result<()> {
    let fixture = WriterFixture::new("ending").await?;
    // Without controllers, it stays in that state.
    let namespaces: Api<Namespace> = Api::all(fixture.client.clone());
    namespaces.delete(&fixture.namespace, &DeleteParams::default()).await?;
    // Admission learns of it by a watch.
    eventually(SOON, "creations are rejected", async || {
        let ended = fixture.perform(&Resource::pods(), "web", &create(pod("web"))).await;
        fixture.pods().delete("web", &DeleteParams::default()).await.ok();
        Ok(matches!(ended.outcome, Outcome::Failed(why) if why.contains("being terminated")))
    })
    .await
}

#[tokio::test]
async fn a_missing_namespace_is_not_found() -> Result<()> {
    let mut fixture = WriterFixture::new("none").await?;
    fixture.namespace = "there-is-none".to_owned();
    let ended = fixture.perform(&Resource::pods(), "web", &create(pod("web"))).await;
    assert_eq!(ended, Outcome::NotFound.into());
    Ok(())
}

#[tokio::test]
async fn a_malformed_object_is_rejected() -> Result<()> {
    let fixture = WriterFixture::new("malformed").await?;
    let mut strange = pod("web");
    strange["spec"]["containers"] = json!("many");
    let why = rejection(fixture.perform(&Resource::pods(), "web", &create(strange)).await)?;
    assert!(why.contains("containers"), "{why}");
    let gone = Write::Delete { uid: "u".into() };
    assert_eq!(fixture.perform(&Resource::pods(), "web", &gone).await, Outcome::NotFound.into());
    Ok(())
}

/// A field conflict (409) of a server-side apply, of an object and of its status.
#[tokio::test]
async fn a_field_conflict_names_the_fields_and_their_manager() -> Result<()> {
    let fixture = WriterFixture::new("fields").await?;
    let by =
        |manager: &str| PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    fixture.pods().create(&PostParams::default(), &object(pod("web"))?).await?;
    let label = Patch::Merge(json!({ "metadata": { "labels": { "app": "theirs", "tier": "theirs" } } }));
    fixture.pods().patch("web", &by("gardener"), &label).await?;
    let ready = |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
    let status = Patch::Merge(json!({ "status": ready("True") }));
    fixture.pods().patch_status("web", &by("kubelet"), &status).await?;

    let path = format!("/api/v1/namespaces/{}/pods/web", fixture.namespace);
    let labels = json!({ "labels": { "app": "ours", "tier": "ours", "new": "ours" } });
    let error = conflict(&fixture, &path, json!({ "metadata": labels })).await?;
    let of = |manager: &str, field: &str| FieldConflict { field: field.into(), manager: manager.into() };
    let mut found: Vec<_> = error.field_conflicts().collect();
    found.sort_unstable_by(|one, other| one.field.cmp(&other.field));
    let expected = [of("gardener", ".metadata.labels.app"), of("gardener", ".metadata.labels.tier")];
    assert_eq!(found, expected);

    let error = conflict(&fixture, &format!("{path}/status"), json!({ "status": ready("False") })).await?;
    let found: Vec<_> = error.field_conflicts().collect();
    assert_eq!(found, [of("kubelet", ".status.conditions[type=\"Ready\"].status")]);
    Ok(())
}

/// The conflict of a server-side apply to a Pod.
async fn conflict(fixture: &WriterFixture, path: &str, mut fields: Value) -> Result<ApiError> {
    fields["apiVersion"] = json!("v1");
    fields["kind"] = json!("Pod");
    let request = Verb::Apply.request(path, fields.to_string().into_bytes());
    match call(&fixture.client, request, REQUEST_TIMEOUT).await {
        Err(CallError::Api(error)) if error.class == ErrorClass::FieldConflict => Ok(error),
        other => bail!("no field conflict: {other:?}"),
    }
}
