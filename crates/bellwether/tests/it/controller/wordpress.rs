//! The WordPress example: order of creation, status fields, garbage collection, dependencies.

use anyhow::Result;
use bellwether_testkit::{TIMEOUT, eventually};
use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use super::{ControllerFixture, condition, events, example, text, texts};

/// The YAML documents of an example.
fn parts(file: &str) -> Result<Vec<String>> {
    Ok(example(file)?.split("\n---\n").map(str::to_owned).collect())
}

/// PersistentVolumes for the claims of the StatefulSets, because the cluster has no provisioner.
async fn volumes(fixture: &ControllerFixture, claims: &[&str]) -> Result<()> {
    for claim in claims {
        let namespace = &fixture.namespace;
        fixture
            .apply(&format!(
                "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {namespace}-{claim}}}
spec:
  capacity: {{storage: 250Gi}}
  accessModes: [ReadWriteOnce]
  hostPath: {{path: /nowhere}}
  claimRef: {{namespace: {namespace}, name: {claim}}}
"
            ))
            .await?;
    }
    Ok(())
}

const CLAIMS: [&str; 2] =
    ["mysql-persistent-storage-wordpress-mysql-0", "wordpress-persistent-storage-wordpress-webserver-0"];

/// Sets the address of a load balancer, in place of a cloud provider.
async fn give_address(fixture: &ControllerFixture, service: &str) -> Result<()> {
    fixture.report(service, json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } })).await
}

/// The status without times and the name of the namespace.
fn redacted(status: &Value, namespace: &str) -> String {
    let mut status = status.clone();
    for (list, field) in [("conditions", "lastTransitionTime"), ("objects", "since")] {
        for item in status[list].as_array_mut().into_iter().flatten() {
            if let Some(time) = item.get_mut(field) {
                *time = json!("<time>");
            }
        }
    }
    let text = serde_json::to_string_pretty(&status).unwrap_or_default();
    text.replace(namespace, "<namespace>")
}

/// Application Controller, Garbage Collection: components may be created before or after their Application.
/// Installation Status Reporting: components that exist are installed, the others are not.
#[rstest]
#[case::application_first(&[0, 1, 2, 3, 4, 5])]
#[case::application_last(&[5, 4, 3, 2, 1, 0])]
#[case::application_in_between(&[3, 1, 0, 5, 2, 4])]
#[tokio::test]
async fn in_any_order(#[case] order: &[usize]) -> Result<()> {
    let fixture = ControllerFixture::new("wordpress").await?;
    volumes(&fixture, &CLAIMS).await?;
    let mut all = parts("wordpress/application.yaml")?;
    all.extend(parts("wordpress/components.yaml")?);
    for index in order {
        fixture.apply(&all[*index]).await?;
    }
    let message = fixture.ready_is("wordpress", "ComponentsInProgress").await?;
    assert!(
        message.contains("Service/wordpress-webserver-svc: load balancer has no external address"),
        "{message}"
    );
    give_address(&fixture, "service/wordpress-webserver-svc").await?;

    // `kubectl wait` works with condition Ready.
    fixture.kubectl("wait --for=condition=Ready application/wordpress --timeout=5m").await?;
    let status = fixture.get("application/wordpress").await?["status"].take();
    assert_eq!(status["componentsReady"], "5/5");
    assert_eq!(status["progress"], 100);
    assert_eq!(text(&condition(&status, "Ready")["message"]), "All components ready");
    assert_eq!(condition(&status, "Settled")["status"], "True");
    for object in
        ["service/wordpress-mysql-hsvc", "statefulset/wordpress-mysql", "statefulset/wordpress-webserver"]
    {
        fixture.owners_are(object, &["wordpress"]).await?;
    }
    Ok(())
}

/// Every field of a status, while one component is missing and another is InProgress.
#[tokio::test]
async fn every_field() -> Result<()> {
    let fixture = ControllerFixture::new("fields").await?;
    volumes(&fixture, &["mysql-persistent-storage-wordpress-mysql-0"]).await?;
    let application = example("wordpress/application.yaml")?;
    let more = "  dependencies: [mysql]\n  healthCheck: {template: {spec: {schedulerName: no-scheduler, containers: \
                [{name: check, image: check, readinessProbe: {tcpSocket: {port: 80}}}]}}}\n";
    fixture.apply(&format!("{application}{more}")).await?;
    // All but the StatefulSet of the web server.
    for part in parts("wordpress/components.yaml")?.iter().take(4) {
        fixture.apply(part).await?;
    }
    let is_so = |status: &Value| {
        status["componentsReady"] == "2/5"
            && condition(status, "HealthCheckValid")["status"] == "True"
            && status["objectCounts"]["missing"] == 1
            && ["no external address", "no ready endpoints"]
                .iter()
                .all(|reason| text(&condition(status, "Ready")["message"]).contains(reason))
    };
    let status = fixture.status("wordpress", "two of five are ready", is_so).await?;
    assert_snapshot!("status", redacted(&status, &fixture.namespace));

    // `kubectl get` shows the status in columns, and `kubectl describe` the reason in Events.
    let table = fixture.kubectl("get application wordpress --no-headers").await?;
    let columns: Vec<_> = table.split_whitespace().take(5).collect();
    assert_eq!(columns, ["wordpress", "Missing", "2/5", "40", "NotFound"]);
    eventually(TIMEOUT, "an Event is recorded", async || {
        let described = fixture.kubectl("describe application wordpress").await?;
        let events = described.split_once("Events:").map(|(_, events)| events.to_owned()).unwrap_or_default();
        Ok(events.contains("StatefulSet/wordpress-webserver: not found"))
    })
    .await?;
    let events = events(&fixture.kubectl, "bellwether.dev/v1alpha1/wordpress").await?;
    assert_eq!(events.len(), 1, "{events:#?}");
    assert!(events[0].starts_with("Warning Missing "), "{events:#?}");
    Ok(())
}

/// Garbage Collection: deleting an Application deletes the objects that have the annotation, and no others.
#[tokio::test]
async fn deleting_it_deletes_what_was_handed_over() -> Result<()> {
    let fixture = ControllerFixture::new("deleting").await?;
    let mut components = example("wordpress/components.yaml")?;
    // One Service matches the selector and has no annotation.
    let handed_over =
        "component: wordpress-webserver-svc\n  annotations:\n    kubernetes.io/application: wordpress\n";
    assert!(components.contains(handed_over));
    components = components.replace(handed_over, "component: wordpress-webserver-svc\n");
    fixture.apply(&components).await?;
    fixture.apply(&example("wordpress/application.yaml")?).await?;
    for object in
        ["service/wordpress-mysql-hsvc", "statefulset/wordpress-mysql", "statefulset/wordpress-webserver"]
    {
        fixture.owners_are(object, &["wordpress"]).await?;
    }
    let status = fixture
        .status("wordpress", "all are installed", |status| texts(&status["installed"]).len() == 5)
        .await?;
    assert_eq!(status["objectCounts"]["total"], 5, "also what was not handed over is counted");
    fixture.owners_are("service/wordpress-webserver-svc", &[]).await?;

    fixture.kubectl("delete application wordpress").await?;
    for object in
        ["service/wordpress-mysql-hsvc", "statefulset/wordpress-mysql", "statefulset/wordpress-webserver"]
    {
        fixture.is_gone(object).await?;
    }
    // The garbage collector also deletes the Pods of the components.
    fixture.is_gone("pod/wordpress-mysql-0").await?;
    assert!(fixture.exists("service/wordpress-webserver-svc").await?);
    Ok(())
}

/// Retrieving Dependencies: a dependency that is not found is not installed. Installation Status Reporting:
/// creating and deleting an Application updates those that depend on it. Garbage Collection: an Application
/// does not own its dependencies.
#[tokio::test]
async fn a_database_of_others() -> Result<()> {
    let fixture = ControllerFixture::new("shared").await?;
    let claims = ["mysql-persistent-storage-mysql-0", "wordpress-persistent-storage-wordpress-webserver-0"];
    volumes(&fixture, &claims).await?;
    fixture.apply(&example("wordpress/shared-mysql/wordpress.yaml")?).await?;
    let is_missing = |status: &Value| texts(&status["missing"]) == ["mysql"];
    let status = fixture.status("wordpress", "mysql is missing", is_missing).await?;
    assert_eq!(status["dependencies"], json!([{ "name": "mysql", "installed": false, "ready": "Unknown" }]));
    assert_eq!(condition(&status, "Installed")["reason"], "DependenciesMissing");

    fixture.apply(&example("wordpress/shared-mysql/mysql.yaml")?).await?;
    let is_ready = |status: &Value| {
        status["dependencies"][0] == json!({ "name": "mysql", "installed": true, "ready": "True" })
    };
    let status = fixture.status("wordpress", "mysql is there and ready", is_ready).await?;
    assert_eq!(condition(&status, "Installed")["status"], "True");
    let owners = fixture.get("application/mysql").await?["metadata"]["ownerReferences"].take();
    assert!(owners.is_null(), "{owners}");

    fixture.kubectl("delete application mysql").await?;
    fixture.status("wordpress", "mysql is missing again", is_missing).await?;
    fixture.is_gone("statefulset/mysql").await?;
    assert!(fixture.exists("statefulset/wordpress-webserver").await?);
    Ok(())
}
