//! Roll-outs that nobody holds still: of all that the controllers wrote on the way, nothing is called ready too early.

use anyhow::{Context as _, Result};
use bellwether_testkit::eventually;
use rstest::rstest;
use serde_json::Value;

use super::{PATIENCE, Said, Story};

/// A workload of Pods that the scheduler and kwok take care of.
fn workload(kind: &str, spec: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: {kind}
metadata: {{name: web}}
spec:
  {{{spec} selector: {{matchLabels: {{app: web}}}}, template: {{
    metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: server, image: 'shop/web:1'}}]}},
  }}}}
"
    )
}

#[rstest]
#[case::deployment("Deployment", "replicas: 4,")]
#[case::stateful_set("StatefulSet", "replicas: 3, serviceName: web,")]
#[case::daemon_set("DaemonSet", "")]
#[tokio::test]
async fn ready_only_at_the_end(#[case] kind: &str, #[case] spec: &str) -> Result<()> {
    let mut story = Story::begin("roll-out").await?;
    let (plural, web) = (format!("{}s", kind.to_lowercase()), format!("{kind}/web"));
    let address = format!("/apis/apps/v1/namespaces/{}/{plural}", story.namespace);
    let before: Value = serde_json::from_str(&story.kubectl(&format!("get --raw {address}")).await?)?;
    story.apply(&workload(kind, spec)).await?;
    story.is("created", &web, "Ready").await?;
    story.kubectl(&format!("set image {web} server=shop/web:2")).await?;
    story.is("changed", &web, "Ready").await?;

    // The API server remembers every version that there was.
    let start = before["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
    let watch = format!("get --raw {address}?watch=1&resourceVersion={start}&timeoutSeconds=1");
    let last = story.kubectl(&format!("get {web} -o jsonpath={{.metadata.resourceVersion}}")).await?;
    let mut events = String::new();
    eventually(PATIENCE, "the API server tells the whole of it", async || {
        events = story.kubectl(&watch).await?;
        Ok(events.contains(&format!(r#""resourceVersion":"{last}""#)))
    })
    .await?;
    let mut told: Vec<(i64, bool)> = Vec::new();
    for event in events.lines() {
        let object = serde_json::from_str::<Value>(event)?["object"].take();
        let generation = object["metadata"]["generation"].as_i64().context("no generation")?;
        told.push((generation, Said::of(&object.to_string(), None)?.line.starts_with("Ready")));
    }
    // Of either generation: first not ready, then ready, and nothing else.
    told.dedup();
    assert_eq!(told, [(1, false), (1, true), (2, false), (2, true)], "{events}");
    Ok(())
}
