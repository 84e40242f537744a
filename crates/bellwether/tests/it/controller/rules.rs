//! HealthRules in a cluster: verdicts change at once; condition Valid is Active, Overridden or Invalid.

use std::time::Duration;

use anyhow::Result;
use bellwether_testkit::eventually;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::{ControllerFixture, TIMEOUT, application, condition, config, controlled_cluster, text, widgets};
use crate::{Run, bellwether};

/// A rule for a kind that no other test uses, because HealthRules are cluster-scoped.
fn rule(name: &str, group: &str, when: &str, state: &str) -> String {
    format!(
        "
---
apiVersion: bellwether.dev/v1alpha1
kind: HealthRule
metadata: {{name: {name}}}
spec:
  for: {{group: {group}, kind: Widget}}
  cel: [{{when: \"{when}\", state: {state}, reason: Assessed, message: \"'by {name}'\"}}]
"
    )
}

async fn validity(fixture: &ControllerFixture, name: &str, reason: &str) -> Result<String> {
    let mut valid = Value::Null;
    eventually(TIMEOUT, &format!("rule {name} is {reason}"), async || {
        let rule = fixture.get(&format!("healthrule/{name}")).await?;
        valid = condition(&rule["status"], "Valid");
        Ok(valid["reason"] == reason
            && rule["status"]["observedGeneration"] == rule["metadata"]["generation"])
    })
    .await?;
    Ok(text(&valid["message"]))
}

#[tokio::test]
async fn they_change_all_verdicts_at_once_and_say_what_they_are() -> Result<()> {
    let fixture = ControllerFixture::new("rules").await?;
    let group = format!("{}.example.com", fixture.namespace);
    let (first, second) = (format!("{}-a", fixture.namespace), format!("{}-b", fixture.namespace));
    fixture.apply(&widgets(&group, "")).await?;
    fixture.kubectl(&format!("wait --for=condition=Established crd/widgets.{group} --timeout=5m")).await?;
    for name in ["one", "two"] {
        let widget = format!(
            "apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: {name}, labels: {{app: shop}}}}\nspec: {{size: 3}}\n"
        );
        eventually(TIMEOUT, "widgets can be made", async || Ok(fixture.apply(&widget).await.is_ok())).await?;
    }
    let kinds = format!("[{{kind: ConfigMap}}, {{group: {group}, kind: Widget}}]");
    fixture.apply(&application("shop", "shop", "").replace("[{kind: ConfigMap}]", &kinds)).await?;
    fixture.apply(&config("settings", "shop", None)).await?;
    // A kind without a status is Ready as soon as it exists.
    fixture.ready_is("shop", "ComponentsReady").await?;

    // A new rule decides the verdicts of both Widgets.
    fixture.apply(&rule(&first, &group, "spec.size > 2", "Failed")).await?;
    assert_eq!(validity(&fixture, &first, "Active").await?, "The rule is active");
    let message = fixture.ready_is("shop", "ComponentsFailed").await?;
    assert_eq!(message, format!("Widget/one: Assessed: by {first}; Widget/two: Assessed: by {first}"));

    // A second, younger rule for the same kind is Overridden. creationTimestamp has whole seconds.
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.apply(&rule(&second, &group, "true", "Suspended")).await?;
    let message = validity(&fixture, &second, "Overridden").await?;
    assert!(message.contains(&first), "{message}");

    // A syntax error is reported with its position. The last valid version stays in force.
    fixture.apply(&rule(&first, &group, "spec.size and true", "Failed")).await?;
    let message = validity(&fixture, &first, "LastValidInForce").await?;
    assert!(message.contains("spec.cel[0].when: line 1, column 11"), "{message}");
    assert!(message.contains("write &&"), "{message}");
    validity(&fixture, &second, "Overridden").await?;
    fixture.ready_is("shop", "ComponentsFailed").await?;
    // Also for readers that never saw it.
    let (kubeconfig, namespace) =
        (controlled_cluster().await?.admin().kubeconfig_file()?, fixture.namespace.clone());
    let explained = spawn_blocking(move || {
        let mut explain = bellwether(&["explain", &format!("widget.{group}/one"), "-n", &namespace]);
        explain.arg("--kubeconfig").arg(&*kubeconfig).output().map(Run::from)
    });
    let explained = explained.await??.stdout;
    assert!(explained.contains(&format!("Assessed: by {first}")), "{explained}");
    fixture.kubectl(&format!("delete healthrule {first}")).await?;
    validity(&fixture, &second, "Active").await?;
    fixture.ready_is("shop", "ComponentsReady").await?;

    // Without rules, the built-in verdicts are back.
    fixture.kubectl(&format!("delete healthrule {second}")).await?;
    let all_ready = |status: &Value| status["objectCounts"]["ready"] == 3;
    fixture.status("shop", "all three are ready", all_ready).await.map(drop)
}
