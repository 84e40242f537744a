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
    let workloads = history(&story, &address, start, &web).await?;
    let pods = format!("/api/v1/namespaces/{}/pods", story.namespace);
    let pods = history(&story, &pods, start, "pods").await?;
    let wanted = running(&pods, u64::MAX, 2);
    assert!(wanted > 0, "at the end there are Pods");

    // What was called ready was so: Pods enough ran what that generation asks for. How often the controller takes back
    // what it wrote (from a cache that is behind, it may) is its own affair.
    let mut told: Vec<(i64, bool)> = Vec::new();
    for (version, _, workload) in &workloads {
        let generation = workload["metadata"]["generation"].as_i64().context("no generation")?;
        let ready = Said::of(&workload.to_string(), None)?.line.starts_with("Ready");
        let ran = running(&pods, *version, generation);
        assert!(!ready || ran == wanted, "{ran} of {wanted} ran when this was ready: {workload}");
        told.push((generation, ready));
    }
    told.dedup();
    assert_eq!(told.first(), Some(&(1, false)));
    assert!(told.contains(&(1, true)) && told.contains(&(2, false)), "{told:?}");
    assert_eq!(told.last(), Some(&(2, true)));
    Ok(())
}

/// One version of an object: its number, what happened (`ADDED`, `MODIFIED`, `DELETED`), the object.
type Version = (u64, String, Value);

/// Every version of what is at `address` since `start`, up to what `kubectl get WHAT` says now.
async fn history(story: &Story, address: &str, start: &str, what: &str) -> Result<Vec<Version>> {
    let watch = format!("get --raw {address}?watch=1&resourceVersion={start}&timeoutSeconds=1");
    let newest = "jsonpath={.metadata.resourceVersion}{.items[*].metadata.resourceVersion}";
    let newest = story.kubectl(&format!("get {what} -o {newest}")).await?;
    let mut versions: Vec<Version> = Vec::new();
    eventually(PATIENCE, "the API server tells the whole of it", async || {
        versions.clear();
        for line in story.kubectl(&watch).await?.lines() {
            let mut event: Value = serde_json::from_str(line)?;
            let version =
                event["object"]["metadata"]["resourceVersion"].as_str().context("no version")?.parse()?;
            let happened = event["type"].as_str().context("no type")?.to_owned();
            versions.push((version, happened, event["object"].take()));
        }
        let seen = |wanted: &str| versions.iter().any(|(version, ..)| version.to_string() == wanted);
        Ok(newest.split_whitespace().all(seen))
    })
    .await?;
    Ok(versions)
}

/// How many Pods ran the image of `generation`, and were ready, when the cluster was at `version`.
fn running(pods: &[Version], version: u64, generation: i64) -> usize {
    let mut latest = std::collections::BTreeMap::new();
    for (_, happened, pod) in pods.iter().filter(|(at, ..)| *at <= version) {
        latest.insert(pod["metadata"]["name"].to_string(), (happened == "DELETED", pod));
    }
    let image = format!("shop/web:{generation}");
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
    };
    latest
        .values()
        .filter(|(gone, pod)| !gone && pod["spec"]["containers"][0]["image"] == image.as_str() && ready(pod))
        .count()
}
