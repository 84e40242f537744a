//! Each change: status patch, owner references, create, dry run, delete, replace, server-side apply; conflict
//! (409) and resourceVersion.

use anyhow::Result;
use bellwether_engine::{
    Dialect, FieldConflict, NamespacedName, Outcome, OwnerReference, Patched, RequiredOwner, Write,
};
use bellwether_testkit::eventually;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_status_patch_keeps_fields_of_others() -> Result<()> {
    let fixture = WriterFixture::new("status").await?;
    let new = fixture.application("web").await?;
    let foreign = json!({
        "type": "Audited", "status": "True", "reason": "Looked", "message": "by another controller",
        "lastTransitionTime": "2026-11-14T10:00:00Z",
    });
    let patch = json!({ "status": { "progress": 10, "componentsReady": "1/2", "conditions": [foreign] } });
    let before =
        fixture.applications().patch_status("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    assert_ne!(version(&before), version(&new));

    let change = status(&before, json!({ "ready": "True", "progress": 50, "componentsReady": null }));
    let ended = fixture.perform(&Resource::applications(), "web", &change).await;
    let after = fixture.applications().get("web").await?;
    assert_eq!(ended, done(&after));
    let now = serde_json::to_value(after.status)?;
    assert_eq!(now, json!({ "ready": "True", "progress": 50, "conditions": [foreign] }));
    assert_eq!(after.spec, new.spec);

    let managers = after.metadata.managed_fields.unwrap_or_default();
    let ours = managers.iter().find(|entry| entry.manager.as_deref() == Some("bellwether"));
    assert_eq!(ours.and_then(|entry| entry.subresource.as_deref()), Some("status"));
    Ok(())
}

#[tokio::test]
async fn a_newer_resource_version_is_a_conflict() -> Result<()> {
    let fixture = WriterFixture::new("meantime").await?;
    let old = fixture.application("web").await?;
    let theirs = Patch::Merge(json!({ "status": { "progress": 10 } }));
    let new = fixture.applications().patch_status("web", &PatchParams::default(), &theirs).await?;

    let change = status(&old, json!({ "progress": 50 }));
    assert_eq!(fixture.perform(&Resource::applications(), "web", &change).await, Outcome::Conflict.into());
    assert_eq!(fixture.applications().get("web").await?, new);
    Ok(())
}

#[tokio::test]
async fn an_object_with_another_uid_is_left_alone() -> Result<()> {
    let fixture = WriterFixture::new("another").await?;
    let resource = Resource::applications();
    let old = fixture.application("web").await?;
    fixture.applications().delete("web", &DeleteParams::default()).await?;
    let gone = fixture.perform(&resource, "web", &status(&old, json!({ "progress": 50 }))).await;
    assert_eq!(gone, Outcome::NotFound.into());

    let new = fixture.application("web").await?;
    let outdated = fixture.perform(&resource, "web", &status(&old, json!({ "progress": 50 }))).await;
    assert_eq!(outdated, Outcome::Conflict.into());
    assert_eq!(fixture.applications().get("web").await?, new);
    Ok(())
}

fn owner(application: &Application) -> OwnerReference {
    OwnerReference {
        api_version: "bellwether.dev/v1alpha1".into(),
        kind: "Application".into(),
        name: application.name_any().into(),
        uid: uid(application),
        controller: Some(false),
        block_owner_deletion: Some(true),
    }
}

fn owners(of: &impl ResourceExt, owners: &[OwnerReference], requires: Option<Box<RequiredOwner>>) -> Write {
    Write::OwnerReferences {
        uid: uid(of),
        resource_version: version(of),
        owners: owners.into(),
        required_owner: requires,
    }
}

#[tokio::test]
async fn owner_references_are_added_and_removed() -> Result<()> {
    let fixture = WriterFixture::new("owners").await?;
    let resource = Resource::maps();
    let (first, second) = (fixture.application("first").await?, fixture.application("second").await?);
    let map = fixture.map("map").await?;

    let both = owners(&map, &[owner(&first), owner(&second)], None);
    let ended = fixture.perform(&resource, "map", &both).await;
    let owned = fixture.maps().get("map").await?;
    assert_eq!(ended, done(&owned));
    let found: Vec<_> = owned.owner_references().iter().map(|owner| owner.uid.clone()).collect();
    assert_eq!(found, [first.uid().unwrap(), second.uid().unwrap()]);
    assert_eq!(owned.owner_references()[0].block_owner_deletion, Some(true));
    assert_eq!(owned.data, map.data);

    assert_eq!(fixture.perform(&resource, "map", &owners(&map, &[], None)).await, Outcome::Conflict.into());
    // Another UID with the current resourceVersion.
    let other = Write::OwnerReferences {
        uid: uid(&first),
        resource_version: version(&owned),
        owners: [].into(),
        required_owner: None,
    };
    assert_eq!(fixture.perform(&resource, "map", &other).await, Outcome::Conflict.into());
    let ended = fixture.perform(&resource, "map", &owners(&owned, &[owner(&second)], None)).await;
    let one = fixture.maps().get("map").await?;
    assert_eq!((ended, one.owner_references().len()), (done(&one), 1));
    let ended = fixture.perform(&resource, "map", &owners(&one, &[], None)).await;
    let none = fixture.maps().get("map").await?;
    assert_eq!((ended, none.owner_references().len()), (done(&none), 0));
    Ok(())
}

#[tokio::test]
async fn an_owner_that_does_not_exist_is_not_set() -> Result<()> {
    let fixture = WriterFixture::new("adopters").await?;
    let resource = Resource::maps();
    let application = fixture.application("web").await?;
    let map = fixture.map("map").await?;
    let adopter = |uid: Box<str>| {
        Some(Box::new(RequiredOwner {
            kind: Dialect::Bellwether.kind(),
            api_version: Dialect::Bellwether.version().into(),
            plural: "applications".into(),
            name: NamespacedName::new(&fixture.namespace, "web"),
            uid,
        }))
    };
    let adopt = |uid| owners(&map, &[owner(&application)], adopter(uid));

    // An object of the same name has another UID.
    let not_found = format!("owner Application {}/web does not exist or is being deleted", fixture.namespace);
    let not_found = WriteResult::from(Outcome::Failed(not_found.into()));
    assert_eq!(fixture.perform(&resource, "map", &adopt("another".into())).await, not_found);

    // It is being deleted, and has a finalizer.
    let hold = |finalizers: &[&str]| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let applications = fixture.applications();
    applications.patch("web", &PatchParams::default(), &hold(&["bellwether.dev/test"])).await?;
    applications.delete("web", &DeleteParams::default()).await?;
    assert_eq!(fixture.perform(&resource, "map", &adopt(uid(&application))).await, not_found);

    // It is deleted.
    applications.patch("web", &PatchParams::default(), &hold(&[])).await?;
    assert_eq!(fixture.perform(&resource, "map", &adopt(uid(&application))).await, not_found);
    assert_eq!(fixture.maps().get("map").await?, map);

    // It exists.
    let application = fixture.application("web").await?;
    let change = owners(&map, &[owner(&application)], adopter(uid(&application)));
    let ended = fixture.perform(&resource, "map", &change).await;
    assert_eq!(ended, done(&fixture.maps().get("map").await?));
    Ok(())
}

#[tokio::test]
async fn an_object_is_created_once() -> Result<()> {
    let fixture = WriterFixture::new("create").await?;
    let ended = fixture.perform(&Resource::pods(), "web", &create(pod("web"))).await;
    let created = fixture.pods().get("web").await?;
    assert_eq!(ended, done(&created));
    let again = fixture.perform(&Resource::pods(), "web", &create(pod("web"))).await;
    assert_eq!(again, Outcome::Conflict.into());
    assert_eq!(fixture.pods().get("web").await?.uid(), created.uid());
    Ok(())
}

#[tokio::test]
async fn a_dry_run_creates_nothing() -> Result<()> {
    let fixture = WriterFixture::new("dry-run").await?;
    let dry_run =
        |manifest: Value| Write::Create { manifest: manifest.into(), owner: "".into(), dry_run: true };
    let good = fixture.perform(&Resource::pods(), "web", &dry_run(pod("web"))).await;
    assert_eq!(good, Outcome::Written(None).into());

    let mut bad = pod("web");
    bad["spec"]["containers"][0]["readinessProbe"] = json!({ "httpGet": { "port": 99_999 } });
    let why = rejection(fixture.perform(&Resource::pods(), "web", &dry_run(bad)).await)?;
    assert!(why.contains("readinessProbe.httpGet.port") && why.contains("between 1 and 65535"), "{why}");
    assert_eq!(fixture.pods().get_opt("web").await?, None);
    Ok(())
}

#[tokio::test]
async fn only_the_object_with_the_uid_is_deleted() -> Result<()> {
    let fixture = WriterFixture::new("delete").await?;
    let resource = Resource::applications();
    let application = fixture.application("web").await?;
    let other = fixture.perform(&resource, "web", &Write::Delete { uid: "another".into() }).await;
    assert_eq!(other, Outcome::NotFound.into());
    assert_eq!(fixture.applications().get("web").await?, application);

    let delete = Write::Delete { uid: uid(&application) };
    assert!(matches!(fixture.perform(&resource, "web", &delete).await.outcome, Outcome::Written(_)));
    eventually(SOON, "it is deleted", async || Ok(fixture.applications().get_opt("web").await?.is_none()))
        .await?;
    assert_eq!(fixture.perform(&resource, "web", &delete).await, Outcome::NotFound.into());
    Ok(())
}

#[tokio::test]
async fn fields_are_set_as_they_are() -> Result<()> {
    let fixture = WriterFixture::new("set-fields").await?;
    let resource = Resource::maps();
    let map = fixture.map("map").await?;
    let set = |uid: &str, of: &ConfigMap| Write::SetFields {
        uid: uid.into(),
        resource_version: version(of),
        part: Patched::Object,
        fields: [(["data".into()].into(), json!({ "only": "this" }))].into(),
    };
    let ended = fixture.perform(&resource, "map", &set(&uid(&map), &map)).await;
    let after = fixture.maps().get("map").await?;
    assert_eq!(ended, done(&after));
    assert_eq!(serde_json::to_value(&after.data)?, json!({ "only": "this" }));
    let outdated = fixture.perform(&resource, "map", &set(&uid(&map), &map)).await;
    assert_eq!(outdated, Outcome::Conflict.into());
    let other = fixture.perform(&resource, "map", &set("another", &after)).await;
    assert_eq!(other, Outcome::Conflict.into());
    Ok(())
}

/// Server-side apply of a part of a status: fields of other managers stay theirs.
#[tokio::test]
async fn fields_of_a_status_are_applied_by_two_managers() -> Result<()> {
    let fixture = WriterFixture::new("apply").await?;
    let resource = Resource::applications();
    let application = fixture.application("web").await?;
    let apply = |of: &Application, manager: &str, status: Value, force: bool| Write::Apply {
        uid: uid(of),
        resource_version: version(of),
        manager: manager.into(),
        status: status.into(),
        force,
    };
    let first =
        apply(&application, "bellwether-a", json!({ "progress": 10, "componentsReady": "1/2" }), false);
    let ended = fixture.perform(&resource, "web", &first).await;
    let after = fixture.applications().get("web").await?;
    assert_eq!(ended, done(&after));
    let outdated = apply(&application, "bellwether-a", json!({ "progress": 30 }), true);
    assert_eq!(fixture.perform(&resource, "web", &outdated).await, Outcome::Conflict.into());

    let second = apply(&after, "bellwether-b", json!({ "progress": 20, "ready": "True" }), false);
    let conflict = FieldConflict { field: ".status.progress".into(), manager: "bellwether-a".into() };
    let ended = fixture.perform(&resource, "web", &second).await;
    assert_eq!(ended, Outcome::FieldConflict([conflict].into()).into());

    let forced = apply(&after, "bellwether-b", json!({ "progress": 20, "ready": "True" }), true);
    let ended = fixture.perform(&resource, "web", &forced).await;
    let after = fixture.applications().get("web").await?;
    assert_eq!(ended, done(&after));
    let status = serde_json::to_value(&after.status)?;
    assert_eq!(status, json!({ "progress": 20, "ready": "True", "componentsReady": "1/2" }));

    // A field without a manager is removed.
    let less = apply(&after, "bellwether-b", json!({ "ready": "True" }), false);
    fixture.perform(&resource, "web", &less).await;
    let status = serde_json::to_value(fixture.applications().get("web").await?.status)?;
    assert_eq!(status, json!({ "ready": "True", "componentsReady": "1/2" }));
    assert_eq!(fixture.perform(&resource, "gone", &less).await, Outcome::NotFound.into());
    Ok(())
}
