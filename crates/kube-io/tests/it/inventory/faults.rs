//! Clusters that hang, restart, or are rebuilt under the same name.

use std::fs;

use bellwether_engine::SINGLETON_LABEL;
use bellwether_testkit::{Cluster as ControlPlane, Fault, FaultProxy, Part, Requests, Verb};
use http::StatusCode;
use k8s_openapi::api::apps::v1::Deployment;
use tokio::net::TcpListener;

use super::*;

/// It accepts connections and never answers. More clusters hang than may connect at once.
#[tokio::test]
async fn a_cluster_that_hangs_delays_no_other() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let hanging = tokio::spawn(async move {
        let mut accepted = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            accepted.push(connection);
        }
    });
    let fixture = InventoryFixture::with_settings("hangs", &["east", "hangs-1"], |settings| {
        settings.max_connecting = 2;
    })
    .await?;
    create_map(fixture.hub, &fixture.namespace, "one").await?;
    for number in 0..6 {
        let kubeconfig = fixture.hub.admin().via(address).kubeconfig();
        fixture.register(&format!("hangs-{number}"), json!({}), &kubeconfig).await?;
    }
    fixture.register("east", json!({}), &fixture.hub.admin().kubeconfig()).await?;
    fixture.is_read("east").await?;
    fixture.objects_are(1).await?;
    create_map(fixture.hub, &fixture.namespace, "two").await?;
    fixture.objects_are(2).await?;
    fixture
        .cluster_is("hangs-1", "never heard from", |status| {
            status.last_heard.is_none() && status.uid.is_none()
        })
        .await?;
    hanging.abort();
    Ok(())
}

/// The engine hears from a cluster more often than bookmarks arrive.
#[tokio::test]
async fn a_cluster_is_heard_from_while_nothing_changes_and_not_while_it_is_frozen() -> Result<()> {
    let east = ControlPlane::start().await?;
    let fixture = InventoryFixture::start("heard", &["east"]).await?;
    create_namespace(&east, &fixture.namespace).await?;
    fixture.register("east", json!({}), &east.admin().kubeconfig()).await?;
    fixture.is_read("east").await?;
    let heard = || fixture.cluster("east").and_then(|status| status.last_heard);
    let mut last = heard();
    for _ in 0..5 {
        eventually(TIMEOUT, "it is heard from again", async || Ok(heard() > last)).await?;
        last = heard();
    }
    east.pause_part(Part::ApiServer)?;
    eventually(TIMEOUT, "it is not heard from", async || {
        let age = heard().map(|heard| heard.duration_until(Timestamp::now()).as_secs());
        Ok(age.is_some_and(|age| age > 10))
    })
    .await?;
    east.resume_part(Part::ApiServer)?;
    let resumed = Timestamp::now();
    fixture
        .cluster_is("east", "heard from again", |status| {
            status.last_heard.is_some_and(|heard| heard > resumed) && status.disconnected_since.is_none()
        })
        .await
}

#[tokio::test]
async fn a_cluster_that_restarts_is_the_same_and_a_rebuilt_one_is_not() -> Result<()> {
    let east = ControlPlane::start().await?;
    let fixture = InventoryFixture::start("rebuilt", &["east"]).await?;
    create_namespace(&east, &fixture.namespace).await?;
    for name in ["one", "two"] {
        create_map(&east, &fixture.namespace, name).await?;
    }
    fixture.register("east", json!({}), &east.admin().kubeconfig()).await?;
    fixture.is_read("east").await?;
    fixture.objects_are(2).await?;
    let uid = uid_of(&east).await?;

    east.kill_part(Part::ApiServer)?;
    fixture.cluster_is("east", "lost", |status| status.disconnected_since.is_some()).await?;
    assert_eq!(fixture.objects(), 2, "what was known stays");
    east.start_part(Part::ApiServer).await?;
    fixture.is_read("east").await?;
    create_map(&east, &fixture.namespace, "three").await?;
    fixture.objects_are(3).await?;
    assert_eq!(fixture.cluster("east").and_then(|status| status.uid).as_deref(), Some(&*uid));

    east.kill_part(Part::ApiServer)?;
    east.kill_part(Part::Etcd)?;
    fs::remove_dir_all(east.directory().join("etcd"))?;
    east.start_part(Part::Etcd).await?;
    east.start_part(Part::ApiServer).await?;
    let rebuilt = uid_of(&east).await?;
    assert_ne!(rebuilt, uid);
    create_namespace(&east, &fixture.namespace).await?;
    create_map(&east, &fixture.namespace, "other").await?;
    fixture.cluster_is("east", "another cluster", |status| status.uid.as_deref() == Some(&*rebuilt)).await?;
    fixture.objects_are(1).await
}

/// An earlier process wrote a status. At the start there is no cluster any more, and the kind cannot be listed for a
/// while.
#[tokio::test]
async fn a_leftover_status_is_cleared_when_its_kind_can_be_listed() -> Result<()> {
    let hub = shared::cluster().await?;
    let proxy = FaultProxy::before(hub).await?;
    let error = Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None };
    let outage = proxy.inject(Requests::of(Verb::List, "deployments.apps"), error);
    let engine = Engine::new().with_combined_statuses();
    let access = hub.admin().via(proxy.address());
    let fixture = InventoryFixture::with_access("leftover", engine, &access, |_| {}).await?;
    let deployments: Api<Deployment> = Api::namespaced(hub.admin().client().await?, &fixture.namespace);
    let web = json!({
        "metadata": {"name": "web", "labels": {SINGLETON_LABEL: "true"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(web)?).await?;
    let status = Patch::Merge(json!({"status": {"replicas": 1}}));
    deployments.patch_status("web", &PatchParams::default(), &status).await?;
    eventually(TIMEOUT, "the list has failed", async || Ok(outage.strikes() >= 4)).await?;
    outage.lift();
    eventually(TIMEOUT, "the status is cleared, and the label removed", async || {
        let web = deployments.get("web").await?;
        let replicas = web.status.as_ref().and_then(|status| status.replicas);
        Ok(replicas.is_none() && !web.labels().contains_key(SINGLETON_LABEL))
    })
    .await
}
