//! Rollups: conditions of an umbrella operator through install, upgrade, failure, damping and restarts.
//!
//! Each test has a control plane of its own, where no other controller writes the conditions.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Cluster, Kubectl, eventually};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Controller, TIMEOUT, condition, events, example, text};

/// A cluster with the CRDs of the operators. The tests write the conditions in place of the operators.
struct RollupFixture {
    cluster: Cluster,
    kubectl: Kubectl,
}

/// The components of `examples/hyperconverged`.
const VIRT: &str = "kubevirts.kubevirt.io/kubevirt";
const DISKS: &str = "cdis.cdi.kubevirt.io/cdi";
/// An object of a built-in kind, whose conditions no controller writes.
const GATE: &str = "service/gate";

const NAMESPACE: &str = "kubevirt-hyperconverged";
const GOOD: [&str; 3] = ["True", "False", "False"];

impl RollupFixture {
    async fn new(name: &str) -> Result<Self> {
        let cluster = Cluster::builder().name(name).start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        let fixture = Self { kubectl: Kubectl::new(cluster.admin())?.in_namespace(NAMESPACE), cluster };
        fixture.apply(&example("hyperconverged/crds.yaml")?).await?;
        let kinds = ["crd/kubevirts.kubevirt.io", "crd/cdis.cdi.kubevirt.io"];
        for kind in kinds {
            fixture.kubectl.ok(&["wait", "--for=condition=Established", kind, "--timeout=5m"]).await?;
        }
        Ok(fixture)
    }

    async fn controller(&self) -> Result<Controller> {
        Controller::start(self.cluster.admin(), &["--leader-elect=false"]).await
    }

    async fn apply(&self, manifest: &str) -> Result<()> {
        self.kubectl.ok_with_input(&["apply", "-f", "-"], manifest).await.map(drop)
    }

    /// Writes the conditions of an operator. lastTransitionTime is the current time where the status changes.
    async fn report_conditions(&self, object: &str, triple: [&str; 3], why: &str) -> Result<()> {
        let kinds = ["Available", "Progressing", "Degraded"];
        let now = Timestamp::from_second(Timestamp::now().as_second())?.to_string();
        let before = self.get(object).await?["status"]["conditions"].take();
        let since = |kind: &str, status: &str| {
            let mut before = before.as_array().into_iter().flatten();
            let same = before.find(|it| it["type"] == kind && it["status"] == status);
            same.map_or_else(|| json!(now), |it| it["lastTransitionTime"].clone())
        };
        let conditions: Vec<_> = kinds
            .into_iter()
            .zip(triple)
            .map(|(kind, status)| {
                json!({
                    "type": kind, "status": status, "reason": why, "message": format!("{why} it is"),
                    "lastTransitionTime": since(kind, status),
                })
            })
            .collect();
        let patch = json!({ "status": { "conditions": conditions } }).to_string();
        self.kubectl
            .ok(&["patch", object, "--subresource=status", "--type=merge", "-p", &patch])
            .await
            .map(drop)
    }

    async fn get(&self, object: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.kubectl.ok(&["get", object, "-o", "json"]).await?)?)
    }

    async fn status(&self) -> Result<Value> {
        Ok(self.get("rollup/umbrella").await?["status"].take())
    }

    /// Waits until Available, Progressing and Degraded of the Rollup have these statuses, and returns its
    /// status.
    async fn becomes(&self, triple: [&str; 3]) -> Result<Value> {
        self.status_satisfies(&format!("it is {triple:?}"), |status| statuses(status) == triple).await
    }

    async fn status_satisfies(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut status = Value::Null;
        eventually(TIMEOUT, what, async || {
            status = self.status().await?;
            Ok(is_so(&status))
        })
        .await
        .with_context(|| format!("the last status was {status:#}"))?;
        Ok(status)
    }
}

fn statuses(status: &Value) -> [String; 3] {
    ["Available", "Progressing", "Degraded"].map(|kind| text(&condition(status, kind)["status"]))
}

/// lastTransitionTime of Available, Progressing and Degraded.
fn times(status: &Value) -> [String; 3] {
    ["Available", "Progressing", "Degraded"].map(|kind| text(&condition(status, kind)["lastTransitionTime"]))
}

fn message(status: &Value, kind: &str) -> String {
    text(&condition(status, kind)["message"])
}

fn umbrella(components: &str, more: &str) -> String {
    format!(
        "
apiVersion: bellwether.dev/v1alpha1
kind: Rollup
metadata: {{name: umbrella}}
spec:
  components: [{components}]
{more}
"
    )
}

/// Components of three kinds: a namespaced and a cluster-scoped one with CRDs, and a built-in one.
fn three(more: &str) -> String {
    let virt = format!("{{group: kubevirt.io, kind: KubeVirt, namespace: {NAMESPACE}, name: kubevirt}}");
    let disks = "{group: cdi.kubevirt.io, kind: CDI, name: cdi}";
    let gates = "{kind: Service, selector: {matchLabels: {tier: core}}}";
    umbrella(&format!("{virt}, {disks}, {gates}"), more)
}

fn gate() -> String {
    let metadata = format!("{{name: gate, namespace: {NAMESPACE}, labels: {{tier: core}}}}");
    format!("apiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {{ports: [{{port: 80}}]}}\n")
}

/// Install, upgrade, failure, recovery, deletion and recreation. A restart in between changes nothing.
/// lastTransitionTime changes with the status only.
#[tokio::test]
async fn a_life() -> Result<()> {
    let fixture = RollupFixture::new("rollup-life").await?;
    let controller = fixture.controller().await?;
    fixture.apply(&three("")).await?;
    let status = fixture.becomes(["False", "Unknown", "Unknown"]).await?;
    assert_eq!(status["health"], "Error");
    assert!(message(&status, "Available").contains("KubeVirt/kubevirt: not found"), "{status:#}");
    assert_eq!(condition(&status, "Available")["reason"], "InstallInvalid");
    assert_eq!(condition(&status, "Resolved")["reason"], "NoObjectsSelected");

    // The components exist and have no conditions.
    fixture.apply(&example("hyperconverged/components.yaml")?).await?;
    fixture.apply(&gate()).await?;
    let all_there =
        |status: &Value| status["componentCount"] == 3 && !message(status, "Available").contains("not found");
    let status = fixture.status_satisfies("all are there", all_there).await?;
    assert!(message(&status, "Available").contains("no Available condition"), "{status:#}");
    assert_eq!(condition(&status, "Resolved")["status"], "True");

    // KubeVirt is being installed; the others are installed.
    fixture.report_conditions(VIRT, ["False", "True", "False"], "InstallInProgress").await?;
    fixture.report_conditions(DISKS, GOOD, "InstallSucceeded").await?;
    fixture.report_conditions(GATE, GOOD, "InstallSucceeded").await?;
    let status = fixture.becomes(["False", "True", "False"]).await?;
    assert_eq!(status["meaning"], "Operator is deploying the component");
    fixture.report_conditions(VIRT, GOOD, "InstallSucceeded").await?;
    let status = fixture.becomes(GOOD).await?;
    assert_eq!(status["health"], "Healthy");
    let installed = times(&status);

    // One component upgrades, and the Rollup is Progressing.
    fixture.report_conditions(VIRT, ["True", "True", "False"], "UpgradeInProgress").await?;
    let status = fixture.becomes(["True", "True", "False"]).await?;
    assert_eq!(status["health"], "Warning");
    assert_eq!(message(&status, "Progressing"), "KubeVirt/kubevirt: UpgradeInProgress it is");
    let upgrading = times(&status);
    assert_eq!([&upgrading[0], &upgrading[2]], [&installed[0], &installed[2]]);

    // The upgrade fails. Progressing=True of another component does not hide that. In the first ten seconds of the
    // Rollup, nothing would be an Event.
    let created: Timestamp =
        text(&fixture.get("rollup/umbrella").await?["metadata"]["creationTimestamp"]).parse()?;
    let rest = (created + SignedDuration::from_secs(11)).duration_since(Timestamp::now());
    sleep(Duration::try_from(rest).unwrap_or_default()).await;
    fixture.report_conditions(DISKS, ["True", "True", "False"], "UpgradeInProgress").await?;
    fixture.report_conditions(VIRT, ["False", "False", "True"], "UpgradeFailed").await?;
    let status = fixture.becomes(["False", "False", "True"]).await?;
    assert!(text(&status["meaning"]).contains("requires human intervention"), "{status:#}");
    assert_eq!(
        message(&status, "Progressing"),
        "KubeVirt/kubevirt: requires manual intervention: UpgradeFailed it is"
    );
    assert_eq!(status["components"][0]["name"], "kubevirt");

    // A restarted controller writes nothing.
    let before = fixture.get("rollup/umbrella").await?;
    controller.program.kill();
    let controller = fixture.controller().await?;
    let after = fixture.get("rollup/umbrella").await?;
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    fixture.report_conditions(DISKS, GOOD, "UpgradeSucceeded").await?;
    let healed = |status: &Value| status["components"][1]["progressing"] == "False";
    let status = fixture.status_satisfies("the disks are at rest", healed).await?;
    assert_eq!(times(&status), times(&before["status"]), "the statuses are the same");

    // KubeVirt recovers; CDI is deleted and recreated.
    fixture.report_conditions(VIRT, GOOD, "HealSucceeded").await?;
    let status = fixture.becomes(GOOD).await?;
    assert_eq!(condition(&status, "Available")["reason"], "HealSucceeded", "the most recent");
    fixture.kubectl.ok(&["delete", DISKS]).await?;
    let status = fixture.becomes(["False", "Unknown", "Unknown"]).await?;
    assert_eq!(message(&status, "Available"), "CDI/cdi: not found");
    fixture.apply(&example("hyperconverged/components.yaml")?).await?;
    fixture.report_conditions(DISKS, GOOD, "InstallSucceeded").await?;
    fixture.becomes(GOOD).await?;

    // `kubectl get` shows health, state and conditions, and `kubectl describe` the Events of their transitions.
    let table = fixture.kubectl.ok(&["get", "rollup", "umbrella", "--no-headers"]).await?;
    assert_eq!(
        table.split_whitespace().take(6).collect::<Vec<_>>(),
        ["umbrella", "Healthy", "Ready", "True", "False", "False"]
    );
    let described = fixture.kubectl.ok(&["describe", "rollup", "umbrella"]).await?;
    let failure = "KubeVirt/kubevirt: UpgradeFailed it is";
    assert!(described.contains(failure), "{described}");
    // Those of cluster-scoped objects are in the namespace default.
    let kubectl = Kubectl::new(fixture.cluster.admin())?.in_namespace("default");
    let events = events(&kubectl, "bellwether.dev/v1alpha1/umbrella").await?;
    let warnings: Vec<_> = events.iter().filter(|event| event.starts_with("Warning")).collect();
    let expected = [format!("Warning Failed {failure}"), "Warning Missing CDI/cdi: not found".to_owned()];
    assert_eq!(warnings, expected.iter().collect::<Vec<_>>(), "{events:#?}");
    // The controller updates this metric once a second.
    eventually(TIMEOUT, "it is counted as healthy", async || {
        Ok(controller.metric("bellwether_rollups{health=\"healthy\"}").await? == 1)
    })
    .await
}

/// Damping (`degradedAfter`): the Rollup reports a degradation only if it lasts, and a recovery at once. A
/// restart does not extend the delay.
#[tokio::test]
async fn held_back() -> Result<()> {
    // Longer than a loaded machine takes to observe a change.
    const HOLD: SignedDuration = SignedDuration::from_secs(40);
    let fixture = RollupFixture::new("rollup-held").await?;
    fixture.apply(&example("hyperconverged/components.yaml")?).await?;
    for object in [VIRT, DISKS] {
        fixture.report_conditions(object, GOOD, "InstallSucceeded").await?;
    }
    let virt = format!("{{group: kubevirt.io, kind: KubeVirt, namespace: {NAMESPACE}, name: kubevirt}}");
    fixture.apply(&umbrella(&virt, "  degradedAfter: 40s")).await?;
    let controller = fixture.controller().await?;
    let first = times(&fixture.becomes(GOOD).await?);

    // A flap. `status.components` shows it, which proves that the controller has seen it.
    let is_seen = |wanted: &'static str| move |status: &Value| status["components"][0]["degraded"] == wanted;
    fixture.report_conditions(VIRT, ["False", "False", "True"], "HealInProgress").await?;
    let status = fixture.status_satisfies("the flap is seen", is_seen("True")).await?;
    assert_eq!((statuses(&status), times(&status)), (GOOD.map(str::to_owned), first.clone()));
    fixture.report_conditions(VIRT, GOOD, "HealSucceeded").await?;
    let status = fixture.status_satisfies("the end of it is seen", is_seen("False")).await?;
    assert_eq!(times(&status), first);

    // A lasting degradation. The controller that saw its start is killed before the delay is over.
    fixture.report_conditions(VIRT, ["False", "True", "True"], "HealInProgress").await?;
    let began: Timestamp =
        text(&condition(&fixture.get(VIRT).await?["status"], "Degraded")["lastTransitionTime"]).parse()?;
    let status = fixture.status_satisfies("it is seen again", is_seen("True")).await?;
    assert_eq!(statuses(&status), ["True", "True", "False"]);
    controller.program.kill();
    let _controller = fixture.controller().await?;
    let status = fixture.becomes(["False", "True", "True"]).await?;
    let reported: Timestamp = times(&status)[2].parse()?;
    assert!(reported >= began + HOLD, "reported at {reported}, began at {began}");

    fixture.report_conditions(VIRT, GOOD, "HealSucceeded").await?;
    fixture.becomes(GOOD).await?;
    Ok(())
}

/// Each invalid spec has its reason in condition Resolved.
#[tokio::test]
async fn bad_specs() -> Result<()> {
    let fixture = RollupFixture::new("rollup-bad").await?;
    fixture.apply(&example("hyperconverged/components.yaml")?).await?;
    fixture.report_conditions(DISKS, GOOD, "InstallSucceeded").await?;
    let _controller = fixture.controller().await?;
    let disks = "{group: cdi.kubevirt.io, kind: CDI, name: cdi}";
    let cases = [
        ("{group: typo.io, kind: CDI, name: cdi}", "NotServed", "kind not served by the cluster"),
        (disks, "DuplicateComponent", "spec.components[1]: duplicate of spec.components[0]"),
        (
            "{group: cdi.kubevirt.io, kind: CDI, selector: {matchLabels: {a: b}}}",
            "NoObjectsSelected",
            "matches selector a=b",
        ),
        (
            "{group: kubevirt.io, kind: KubeVirt, name: kubevirt}",
            "NamespaceRequired",
            "set the namespace of kubevirt",
        ),
    ];
    for (other, reason, text) in cases {
        fixture.apply(&umbrella(&format!("{disks}, {other}"), "")).await?;
        let is_so = |status: &Value| condition(status, "Resolved")["reason"] == reason;
        let status = fixture.status_satisfies(reason, is_so).await?;
        assert!(message(&status, "Resolved").contains(text), "{status:#}");
    }
    let both = "{group: cdi.kubevirt.io, kind: CDI, name: cdi, selector: {matchLabels: {a: b}}}";
    let refused = fixture.kubectl.run_with_input(&["apply", "-f", "-"], &umbrella(both, "")).await?;
    assert!(refused.stderr.contains("set exactly one of name and selector"), "{}", refused.stderr);
    fixture.apply(&umbrella(disks, "")).await?;
    fixture
        .status_satisfies("all is well again", |status| condition(status, "Resolved")["status"] == "True")
        .await?;
    fixture.becomes(GOOD).await?;
    Ok(())
}
