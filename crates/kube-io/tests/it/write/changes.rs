//! Each change, done and not done.

use anyhow::Result;
use bellwether_engine::{Change, Dialect, Exists, FieldConflict, NamespacedName, Outcome, Owner};
use bellwether_testkit::eventually;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_status_is_merged_into_what_is_there() -> Result<()> {
    let stage = Stage::set("status").await?;
    let new = stage.application("web").await?;
    let foreign = json!({
        "type": "Audited", "status": "True", "reason": "Looked", "message": "by somebody else",
        "lastTransitionTime": "2026-11-14T10:00:00Z",
    });
    let patch = json!({ "status": { "progress": 10, "componentsReady": "1/2", "conditions": [foreign] } });
    let before =
        stage.applications().patch_status("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    assert_ne!(version(&before), version(&new));

    let change = status(&before, json!({ "ready": "True", "progress": 50, "componentsReady": null }));
    let ended = stage.perform(&What::applications(), "web", &change).await;
    let after = stage.applications().get("web").await?;
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
async fn what_was_changed_in_the_meantime_is_not_overwritten() -> Result<()> {
    let stage = Stage::set("meantime").await?;
    let old = stage.application("web").await?;
    let theirs = Patch::Merge(json!({ "status": { "progress": 10 } }));
    let new = stage.applications().patch_status("web", &PatchParams::default(), &theirs).await?;

    let change = status(&old, json!({ "progress": 50 }));
    assert_eq!(stage.perform(&What::applications(), "web", &change).await, Outcome::Conflict.into());
    assert_eq!(stage.applications().get("web").await?, new);
    Ok(())
}

#[tokio::test]
async fn another_object_of_the_same_name_is_left_alone() -> Result<()> {
    let stage = Stage::set("another").await?;
    let what = What::applications();
    let old = stage.application("web").await?;
    stage.applications().delete("web", &DeleteParams::default()).await?;
    let gone = stage.perform(&what, "web", &status(&old, json!({ "progress": 50 }))).await;
    assert_eq!(gone, Outcome::Absent.into());

    let new = stage.application("web").await?;
    let outdated = stage.perform(&what, "web", &status(&old, json!({ "progress": 50 }))).await;
    assert_eq!(outdated, Outcome::Conflict.into());
    assert_eq!(stage.applications().get("web").await?, new);
    Ok(())
}

fn owner(application: &Application) -> Owner {
    Owner {
        api_version: "bellwether.dev/v1alpha1".into(),
        kind: "Application".into(),
        name: application.name_any().into(),
        uid: uid(application),
        controller: Some(false),
        block_owner_deletion: Some(true),
    }
}

fn owners(of: &impl ResourceExt, owners: &[Owner], requires: Option<Box<Exists>>) -> Change {
    Change::Owners { uid: uid(of), version: version(of), owners: owners.into(), requires }
}

#[tokio::test]
async fn owners_come_and_go_and_nothing_else_does() -> Result<()> {
    let stage = Stage::set("owners").await?;
    let what = What::maps();
    let (first, second) = (stage.application("first").await?, stage.application("second").await?);
    let map = stage.map("map").await?;

    let both = owners(&map, &[owner(&first), owner(&second)], None);
    let ended = stage.perform(&what, "map", &both).await;
    let owned = stage.maps().get("map").await?;
    assert_eq!(ended, done(&owned));
    let found: Vec<_> = owned.owner_references().iter().map(|owner| owner.uid.clone()).collect();
    assert_eq!(found, [first.uid().unwrap(), second.uid().unwrap()]);
    assert_eq!(owned.owner_references()[0].block_owner_deletion, Some(true));
    assert_eq!(owned.data, map.data);

    assert_eq!(stage.perform(&what, "map", &owners(&map, &[], None)).await, Outcome::Conflict.into());
    // Another object cannot be in this version, but let us pretend.
    let other =
        Change::Owners { uid: uid(&first), version: version(&owned), owners: [].into(), requires: None };
    assert_eq!(stage.perform(&what, "map", &other).await, Outcome::Conflict.into());
    let ended = stage.perform(&what, "map", &owners(&owned, &[owner(&second)], None)).await;
    let one = stage.maps().get("map").await?;
    assert_eq!((ended, one.owner_references().len()), (done(&one), 1));
    let ended = stage.perform(&what, "map", &owners(&one, &[], None)).await;
    let none = stage.maps().get("map").await?;
    assert_eq!((ended, none.owner_references().len()), (done(&none), 0));
    Ok(())
}

#[tokio::test]
async fn who_is_gone_or_going_adopts_nothing() -> Result<()> {
    let stage = Stage::set("adopters").await?;
    let what = What::maps();
    let application = stage.application("web").await?;
    let map = stage.map("map").await?;
    let adopter = |uid: Box<str>| {
        Some(Box::new(Exists {
            kind: Dialect::Bellwether.kind(),
            version: Dialect::Bellwether.version().into(),
            plural: "applications".into(),
            name: NamespacedName::new(&stage.namespace, "web"),
            uid,
        }))
    };
    let adopt = |uid| owners(&map, &[owner(&application)], adopter(uid));

    // Another one has its name.
    let not_there =
        Outcome::Failed(format!("Application {}/web is not there to take it over", stage.namespace).into());
    let not_there = Done::from(not_there);
    assert_eq!(stage.perform(&what, "map", &adopt("another".into())).await, not_there);

    // It is being deleted, and a finalizer holds it.
    let hold = |finalizers: &[&str]| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let applications = stage.applications();
    applications.patch("web", &PatchParams::default(), &hold(&["bellwether.dev/test"])).await?;
    applications.delete("web", &DeleteParams::default()).await?;
    assert_eq!(stage.perform(&what, "map", &adopt(uid(&application))).await, not_there);

    // It is gone.
    applications.patch("web", &PatchParams::default(), &hold(&[])).await?;
    assert_eq!(stage.perform(&what, "map", &adopt(uid(&application))).await, not_there);
    assert_eq!(stage.maps().get("map").await?, map);

    // It is there.
    let application = stage.application("web").await?;
    let change = owners(&map, &[owner(&application)], adopter(uid(&application)));
    let ended = stage.perform(&what, "map", &change).await;
    assert_eq!(ended, done(&stage.maps().get("map").await?));
    Ok(())
}

#[tokio::test]
async fn an_object_is_created_once() -> Result<()> {
    let stage = Stage::set("create").await?;
    let ended = stage.perform(&What::pods(), "web", &create(pod("web"))).await;
    let created = stage.pods().get("web").await?;
    assert_eq!(ended, done(&created));
    let again = stage.perform(&What::pods(), "web", &create(pod("web"))).await;
    assert_eq!(again, Outcome::Conflict.into());
    assert_eq!(stage.pods().get("web").await?.uid(), created.uid());
    Ok(())
}

#[tokio::test]
async fn a_dry_run_leaves_nothing_behind() -> Result<()> {
    let stage = Stage::set("dry-run").await?;
    let dry_run =
        |manifest: Value| Change::Create { manifest: manifest.into(), owner: "".into(), dry_run: true };
    let good = stage.perform(&What::pods(), "web", &dry_run(pod("web"))).await;
    assert_eq!(good, Outcome::Done(None).into());

    let mut bad = pod("web");
    bad["spec"]["containers"][0]["readinessProbe"] = json!({ "httpGet": { "port": 99_999 } });
    let why = refused(stage.perform(&What::pods(), "web", &dry_run(bad)).await)?;
    assert!(why.contains("readinessProbe.httpGet.port") && why.contains("between 1 and 65535"), "{why}");
    assert_eq!(stage.pods().get_opt("web").await?, None);
    Ok(())
}

#[tokio::test]
async fn only_the_object_that_is_meant_is_deleted() -> Result<()> {
    let stage = Stage::set("delete").await?;
    let what = What::applications();
    let application = stage.application("web").await?;
    let other = stage.perform(&what, "web", &Change::Delete { uid: "another".into() }).await;
    assert_eq!(other, Outcome::Absent.into());
    assert_eq!(stage.applications().get("web").await?, application);

    let delete = Change::Delete { uid: uid(&application) };
    assert!(matches!(stage.perform(&what, "web", &delete).await.outcome, Outcome::Done(_)));
    eventually(SOON, "it is gone", async || Ok(stage.applications().get_opt("web").await?.is_none())).await?;
    assert_eq!(stage.perform(&what, "web", &delete).await, Outcome::Absent.into());
    Ok(())
}

#[tokio::test]
async fn an_object_is_replaced_as_it_was_known() -> Result<()> {
    let stage = Stage::set("replace").await?;
    let what = What::maps();
    let map = stage.map("map").await?;
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "map", "namespace": stage.namespace },
        "data": { "only": "this" },
    });
    let replace = |of: &ConfigMap| Change::Replace {
        uid: uid(of),
        version: version(of),
        manifest: manifest.clone().into(),
    };
    let ended = stage.perform(&what, "map", &replace(&map)).await;
    let after = stage.maps().get("map").await?;
    assert_eq!(ended, done(&after));
    assert_eq!(serde_json::to_value(&after.data)?, json!({ "only": "this" }));
    assert_eq!(stage.perform(&what, "map", &replace(&map)).await, Outcome::Conflict.into());
    Ok(())
}

/// Server-side apply of a part of a status that is not ours: the fields of other managers stay theirs.
#[tokio::test]
async fn a_part_of_a_status_is_applied_beside_others() -> Result<()> {
    let stage = Stage::set("apply").await?;
    let what = What::applications();
    let application = stage.application("web").await?;
    let apply = |of: &Application, manager: &str, status: Value, force: bool| Change::Apply {
        uid: uid(of),
        version: version(of),
        manager: manager.into(),
        status: status.into(),
        force,
    };
    let first =
        apply(&application, "bellwether-a", json!({ "progress": 10, "componentsReady": "1/2" }), false);
    let ended = stage.perform(&what, "web", &first).await;
    let after = stage.applications().get("web").await?;
    assert_eq!(ended, done(&after));
    let outdated = apply(&application, "bellwether-a", json!({ "progress": 30 }), true);
    assert_eq!(stage.perform(&what, "web", &outdated).await, Outcome::Conflict.into());

    let second = apply(&after, "bellwether-b", json!({ "progress": 20, "ready": "True" }), false);
    let conflict = FieldConflict { field: ".status.progress".into(), manager: "bellwether-a".into() };
    let ended = stage.perform(&what, "web", &second).await;
    assert_eq!(ended, Outcome::FieldConflict([conflict].into()).into());

    let forced = apply(&after, "bellwether-b", json!({ "progress": 20, "ready": "True" }), true);
    let ended = stage.perform(&what, "web", &forced).await;
    let after = stage.applications().get("web").await?;
    assert_eq!(ended, done(&after));
    let status = serde_json::to_value(&after.status)?;
    assert_eq!(status, json!({ "progress": 20, "ready": "True", "componentsReady": "1/2" }));

    // What a manager does not apply any more is gone with its last manager.
    let less = apply(&after, "bellwether-b", json!({ "ready": "True" }), false);
    stage.perform(&what, "web", &less).await;
    let status = serde_json::to_value(stage.applications().get("web").await?.status)?;
    assert_eq!(status, json!({ "ready": "True", "componentsReady": "1/2" }));
    assert_eq!(stage.perform(&what, "gone", &less).await, Outcome::Absent.into());
    Ok(())
}
