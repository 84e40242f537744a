//! Rollouts at full speed: no version of the workload is assessed as Ready too early.

use anyhow::{Context as _, Result};
use bellwether_testkit::eventually;
use rstest::rstest;
use serde_json::Value;

use super::{AssessedLine, LifecycleFixture, TIMEOUT};

/// A workload whose Pods the scheduler and kwok run.
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
    let mut fixture = LifecycleFixture::new("rollout").await?;
    let (plural, web) = (format!("{}s", kind.to_lowercase()), format!("{kind}/web"));
    let address = format!("/apis/apps/v1/namespaces/{}/{plural}", fixture.namespace);
    let before: Value = serde_json::from_str(&fixture.kubectl(&format!("get --raw {address}")).await?)?;
    fixture.apply(&workload(kind, spec)).await?;
    fixture.is("created", &web, "Ready").await?;
    fixture.kubectl(&format!("set image {web} server=shop/web:2")).await?;
    fixture.is("changed", &web, "Ready").await?;

    // The API server still has every version.
    let start = before["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
    let workloads = history(&fixture, &address, start, &web).await?;
    let pods = format!("/api/v1/namespaces/{}/pods", fixture.namespace);
    let pods = history(&fixture, &pods, start, "pods").await?;
    let wanted = running(&pods, u64::MAX, 2);
    assert!(wanted > 0, "Pods exist at the end");

    // When a version is Ready, all Pods run the image of its generation. The controller may write a stale
    // status in between, from its cache.
    let mut verdicts: Vec<(i64, bool)> = Vec::new();
    for (version, _, workload) in &workloads {
        let generation = workload["metadata"]["generation"].as_i64().context("no generation")?;
        let ready = AssessedLine::of(&workload.to_string(), None)?.line.starts_with("Ready");
        let ran = running(&pods, *version, generation);
        assert!(!ready || ran == wanted, "{ran} of {wanted} ran when this was ready: {workload}");
        verdicts.push((generation, ready));
    }
    verdicts.dedup();
    assert_eq!(verdicts.first(), Some(&(1, false)));
    assert!(verdicts.contains(&(1, true)) && verdicts.contains(&(2, false)), "{verdicts:?}");
    assert_eq!(verdicts.last(), Some(&(2, true)));
    Ok(())
}

/// A watch event: resourceVersion, type (`ADDED`, `MODIFIED`, `DELETED`), object.
type Version = (u64, String, Value);

/// The watch events at `address` since `start`, up to the version that `kubectl get WHAT` returns now.
async fn history(fixture: &LifecycleFixture, address: &str, start: &str, what: &str) -> Result<Vec<Version>> {
    let watch = format!("get --raw {address}?watch=1&resourceVersion={start}&timeoutSeconds=1");
    let newest = "jsonpath={.metadata.resourceVersion}{.items[*].metadata.resourceVersion}";
    let newest = fixture.kubectl(&format!("get {what} -o {newest}")).await?;
    let mut versions: Vec<Version> = Vec::new();
    eventually(TIMEOUT, "the watch has every version", async || {
        versions.clear();
        for line in fixture.kubectl(&watch).await?.lines() {
            let mut event: Value = serde_json::from_str(line)?;
            let version =
                event["object"]["metadata"]["resourceVersion"].as_str().context("no version")?.parse()?;
            let type_ = event["type"].as_str().context("no type")?.to_owned();
            versions.push((version, type_, event["object"].take()));
        }
        let is_seen = |wanted: &str| versions.iter().any(|(version, ..)| version.to_string() == wanted);
        Ok(newest.split_whitespace().all(is_seen))
    })
    .await?;
    Ok(versions)
}

/// How many Pods were ready with the image of `generation` at this resourceVersion.
fn running(pods: &[Version], version: u64, generation: i64) -> usize {
    let mut latest = std::collections::BTreeMap::new();
    for (_, type_, pod) in pods.iter().filter(|(at, ..)| *at <= version) {
        latest.insert(pod["metadata"]["name"].to_string(), (type_ == "DELETED", pod));
    }
    let image = format!("shop/web:{generation}");
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
    };
    latest
        .values()
        .filter(|(is_deleted, pod)| {
            !is_deleted && pod["spec"]["containers"][0]["image"] == image.as_str() && ready(pod)
        })
        .count()
}
