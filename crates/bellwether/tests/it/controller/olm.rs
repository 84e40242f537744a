//! OLM (Operator Lifecycle Manager): the leader writes Upgradeable into an OperatorCondition.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Access, Cluster, Fault, FaultProxy, Requests, Verb, eventually, rule};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Controller, Story, TIMEOUT, condition, operator_condition, operator_conditions, rollup, text, widgets,
};

const RESOURCE: &str = "operatorconditions.operators.coreos.com";

/// OLM names the OperatorCondition after the ClusterServiceVersion.
const NAME: &str = "shop.v1.2.0";

/// The API group of the components.
const GROUP: &str = "shop.example.com";

/// A subset of OLM's CRD: operators write whole conditions into the spec, and OLM copies them into the
/// status.
const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: operatorconditions.operators.coreos.com}
spec:
  group: operators.coreos.com
  names: {kind: OperatorCondition, plural: operatorconditions}
  scope: Namespaced
  versions:
  - name: v2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            properties:
              deployments: {type: array, items: {type: string}}
              conditions:
                type: array
                items:
                  type: object
                  required: [type, status, reason, message, lastTransitionTime]
                  properties:
                    type: {type: string, minLength: 1}
                    status: {type: string, enum: ['True', 'False', Unknown]}
                    reason: {type: string, minLength: 1, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'}
                    message: {type: string, maxLength: 32768}
                    lastTransitionTime: {type: string, format: date-time}
                    observedGeneration: {type: integer, format: int64}
";

/// An operator whose components are Widgets, and the objects that OLM creates for it.
struct Operator {
    cluster: Cluster,
    story: Story,
    proxy: FaultProxy,
    /// Has the permissions that OLM grants, and those that the controller needs without OLM.
    user: Access,
}

impl Operator {
    async fn begin(name: &str) -> Result<Self> {
        let cluster = Cluster::builder().name(name).start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        let story = Story::within(&cluster, name).await?;
        for (definition, kind) in
            [(DEFINITION, RESOURCE), (&widgets(GROUP, "status: {}"), "widgets.shop.example.com")]
        {
            story.apply(definition).await?;
            story.kubectl(&format!("wait --for=condition=Established crd/{kind} --timeout=5m")).await?;
        }
        let user = cluster.service_account(&story.namespace, "controller").await?;
        let everywhere = vec![
            rule(&["*"], "bellwether.dev", &["*"]),
            rule(&["*"], "events.k8s.io", &["events"]),
            rule(&["get", "list", "watch"], "apiextensions.k8s.io", &["customresourcedefinitions"]),
            rule(&["get", "list", "watch"], GROUP, &["widgets"]),
        ];
        cluster.grant(&user, None, everywhere).await?;
        let leases = vec![rule(&["get", "create", "update"], "coordination.k8s.io", &["leases"])];
        cluster.grant(&user, Some(&story.namespace), leases).await?;
        let proxy = FaultProxy::before(&cluster).await?;
        Ok(Self { cluster, story, proxy, user })
    }

    /// What OLM grants: get, update and patch on this one object, neither list nor watch.
    async fn grant(&self) -> Result<bellwether_testkit::Grant> {
        let mut own = rule(&["get", "update", "patch"], "operators.coreos.com", &["operatorconditions"]);
        own.resource_names = Some(vec![NAME.to_owned()]);
        self.cluster.grant(&self.user, Some(&self.story.namespace), vec![own]).await
    }

    /// Starts a controller that writes the OperatorCondition, behind a proxy.
    async fn controller(&self, proxy: &FaultProxy, elect: bool) -> Result<Controller> {
        let place = format!("{}/{NAME}", self.story.namespace);
        let elect = format!("--leader-elect={elect}");
        let namespace = &self.story.namespace;
        let arguments =
            [&elect, "--namespace", namespace, "--olm-operator-condition", &place, "--olm-rollup", "all"];
        Controller::start(&self.user.via(proxy.address()), &arguments).await
    }

    /// Creates the OperatorCondition as OLM does, with a condition that the operator itself owns.
    async fn make_condition(&self) -> Result<()> {
        let condition = json!({
            "apiVersion": "operators.coreos.com/v2",
            "kind": "OperatorCondition",
            "metadata": { "name": NAME },
            "spec": { "deployments": ["shop"], "conditions": [theirs()] },
        });
        self.story.kubectl.ok_with_input(&["create", "-f", "-"], &condition.to_string()).await.map(drop)
    }

    /// Reports the component as Progressing, with these further conditions.
    async fn report(&self, more: &[Value]) -> Result<()> {
        let widget = format!("apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: one}}\n");
        self.story.apply(&widget).await?;
        let mut conditions = operator_conditions(["True", "True", "False"]);
        conditions.extend_from_slice(more);
        self.story.report("widget/one", json!({ "conditions": conditions })).await
    }

    /// Waits until the Rollup has this status of Upgradeable, and returns the condition.
    async fn of_rollup(&self, upgradeable: &str) -> Result<Value> {
        let mut said = Value::Null;
        eventually(TIMEOUT, "the Rollup says so", async || {
            said = condition(&self.story.get("rollup/all").await?["status"], "Upgradeable");
            Ok(said["status"] == upgradeable)
        })
        .await?;
        Ok(said)
    }

    /// Waits until Upgradeable in the OperatorCondition satisfies `is_so`, and returns it.
    async fn olm_is_told(&self, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut spec = Value::Null;
        eventually(TIMEOUT, "OLM is told", async || {
            spec = self.story.get(&format!("{RESOURCE}/{NAME}")).await?["spec"].take();
            Ok(is_so(&condition(&spec, "Upgradeable")))
        })
        .await
        .with_context(|| format!("the last was {spec:#}"))?;
        assert_eq!(spec["conditions"][0], theirs(), "what is the operator's own business stays");
        assert_eq!(
            (&spec["deployments"], spec["conditions"].as_array().map(Vec::len)),
            (&json!(["shop"]), Some(2))
        );
        Ok(condition(&spec, "Upgradeable"))
    }

    async fn reason_is(&self, reason: &str) -> Result<Value> {
        self.olm_is_told(|upgradeable| upgradeable["reason"] == reason).await
    }
}

/// The number of GETs and PATCHes of the OperatorCondition.
fn asked(proxy: &FaultProxy) -> (usize, usize) {
    let of = |verb| proxy.count(&Requests::of(verb, RESOURCE));
    (of(Verb::Get), of(Verb::Patch))
}

fn theirs() -> Value {
    json!({"type": "Synced", "status": "True", "reason": "AllSynced", "message": "", "observedGeneration": 3,
        "lastTransitionTime": "2026-11-14T10:00:00Z"})
}

fn refusal(status: StatusCode) -> Fault {
    Fault::Answer { status, retry_after: None }
}

/// How often the log has these words.
fn times(controller: &Controller, words: &str) -> usize {
    controller.program.log().matches(words).count()
}

/// The controller logs each error once, keeps running, and retries until it succeeds.
#[tokio::test]
async fn what_goes_wrong_is_told_and_tried_on() -> Result<()> {
    let operator = Operator::begin("olm-faults").await?;
    let controller = operator.controller(&operator.proxy, false).await?;
    let told =
        async |words: &str| eventually(TIMEOUT, words, async || Ok(times(&controller, words) == 1)).await;
    // First 403, then 404: OLM has not created its objects yet.
    told("Grant Bellwether the verbs get and patch on operatorconditions").await?;
    let grant = operator.grant().await?;
    told("Check that OLM is installed, and that --olm-operator-condition names").await?;
    operator.make_condition().await?;
    let unknown = operator.reason_is("RollupNotFound").await?;
    assert_eq!(unknown["status"], "Unknown", "OLM lets that pass");
    assert_eq!(unknown["message"], "Rollup/all not found. Create it, or set --olm-rollup to another Rollup.");
    for once in ["Grant Bellwether the verbs get and patch", "Check that OLM is installed"] {
        assert_eq!(times(&controller, once), 1, "{}", controller.program.log());
    }

    // A restarted controller reads the OperatorCondition once, and has nothing to write.
    controller.program.stop().await?;
    operator.proxy.forget();
    let conflict = Requests::of(Verb::Patch, RESOURCE).times(2);
    let conflicts = operator.proxy.inject(conflict, refusal(StatusCode::CONFLICT));
    let controller = operator.controller(&operator.proxy, false).await?;
    eventually(TIMEOUT, "it has looked", async || Ok(asked(&operator.proxy).0 == 1)).await?;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(asked(&operator.proxy), (1, 0));

    // After a 409 conflict, the controller reads and writes again at once.
    controller.program.stop().await?;
    let unasked = json!({"spec": {"conditions": [theirs()]}});
    operator.story.patch(&format!("{RESOURCE}/{NAME}"), unasked).await?;
    operator.proxy.forget();
    let controller = operator.controller(&operator.proxy, false).await?;
    operator.reason_is("RollupNotFound").await?;
    assert_eq!((conflicts.strikes(), asked(&operator.proxy)), (2, (3, 3)));
    assert_eq!(times(&controller, "cannot update condition Upgradeable"), 0, "{}", controller.program.log());
    grant.revoke().await?;
    Ok(())
}

/// The leader writes Upgradeable whenever its status, reason or message differs, and never otherwise.
#[tokio::test]
async fn olm_is_told_once_for_each_change() -> Result<()> {
    let operator = Operator::begin("olm").await?;
    let (story, namespace) = (&operator.story, operator.story.namespace.as_str());
    operator.grant().await?;
    operator.make_condition().await?;
    let first = operator.controller(&operator.proxy, true).await?;
    operator.reason_is("RollupNotFound").await?;
    assert_eq!(asked(&operator.proxy), (1, 1));

    // The Rollup exists and does not report Upgradeable.
    story.apply(&rollup("all", GROUP, namespace, &["one"], false)).await?;
    let unknown = operator.reason_is("UpgradeableNotEnabled").await?;
    assert_eq!(
        unknown["message"],
        "Rollup/all does not report Upgradeable. Set its spec.upgradeable to true."
    );
    assert_eq!(asked(&operator.proxy), (2, 2));
    let before = unknown["lastTransitionTime"].clone();

    // A component reports Upgradeable=False. lastTransitionTime has whole seconds; after a second it must
    // differ.
    operator.report(&[operator_condition("Upgradeable", "False")]).await?;
    sleep(Duration::from_secs(1)).await;
    story.apply(&rollup("all", GROUP, namespace, &["one"], true)).await?;
    let no = operator.olm_is_told(|upgradeable| upgradeable["status"] == "False").await?;
    assert_eq!(asked(&operator.proxy), (3, 3));
    assert_ne!(no["lastTransitionTime"], before);
    let said = operator.of_rollup("False").await?;
    assert_eq!((&no["reason"], &no["message"]), (&said["reason"], &said["message"]));

    // Another message with the same status does not change lastTransitionTime.
    let mut other = operator_condition("Upgradeable", "False");
    other["message"] = json!("there is a backup under way");
    operator.report(&[other]).await?;
    let words = |said: &Value| text(&said["message"]).contains("there is a backup under way");
    let still_no = operator.olm_is_told(words).await?;
    assert_eq!(
        (&still_no["status"], &still_no["lastTransitionTime"]),
        (&no["status"], &no["lastTransitionTime"])
    );
    assert_eq!(asked(&operator.proxy), (4, 4));

    // Other changes cause no requests for the OperatorCondition.
    operator.proxy.forget();
    let second_proxy = FaultProxy::before(&operator.cluster).await?;
    let second = operator.controller(&second_proxy, true).await?;
    for number in 0..3 {
        story.kubectl(&format!("annotate widget one heartbeat={number} --overwrite")).await?;
        story.kubectl(&format!("annotate rollup all heartbeat={number} --overwrite")).await?;
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!((asked(&operator.proxy), asked(&second_proxy)), ((0, 0), (0, 0)));

    // The standby sees a change and leaves the write to the leader.
    operator.report(&[operator_condition("Upgradeable", "True")]).await?;
    operator.olm_is_told(|upgradeable| upgradeable["status"] == "True").await?;
    second
        .probed("/readyz/rollups/all", 503, |said| condition(said, "Upgradeable")["status"] == "True")
        .await?;
    assert_eq!((asked(&operator.proxy), asked(&second_proxy)), ((1, 1), (0, 0)));

    // A new leader reads the OperatorCondition once, and then writes each change.
    first.program.stop().await?;
    eventually(TIMEOUT, "the second has looked", async || Ok(asked(&second_proxy).0 == 1)).await?;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(asked(&second_proxy), (1, 0));
    operator.report(&[operator_condition("Upgradeable", "False")]).await?;
    operator.olm_is_told(|upgradeable| upgradeable["status"] == "False").await?;
    assert_eq!((asked(&operator.proxy), asked(&second_proxy)), ((1, 1), (2, 1)));

    // No controller lists or watches it: OLM does not grant that.
    for proxy in [&operator.proxy, &second_proxy] {
        let others = Requests::all().verb(Verb::List).verb(Verb::Watch).verb(Verb::Update).resource(RESOURCE);
        assert_eq!(proxy.count(&others), 0);
    }
    Ok(())
}

#[test]
fn flags_that_are_refused() {
    for (arguments, sentence) in [
        (&["--olm-rollup", "all"][..], "--olm-operator-condition <NAMESPACE/NAME>"),
        (&["--olm-operator-condition", "operators/shop"], "--olm-rollup <NAME>"),
        (
            &["--olm-operator-condition", "shop", "--olm-rollup", "all"],
            "invalid value 'shop' for '--olm-operator-condition <NAMESPACE/NAME>': use NAMESPACE/NAME of the operator's \
             ClusterServiceVersion, such as operators/shop.v1.2.0\n",
        ),
        (
            &["--readiness-rollup", "all", "--watch-namespace", "shop"],
            "'--readiness-rollup <NAME>' cannot be used with '--watch-namespace <NAME>'",
        ),
        (
            &["--olm-operator-condition", "a/b", "--olm-rollup", "all", "--watch-namespace", "shop"],
            "'--olm-rollup <NAME>' cannot be used with '--watch-namespace <NAME>'",
        ),
        (
            &["--readiness-rollup", "a/b"],
            "invalid value 'a/b' for '--readiness-rollup <NAME>': invalid name: use lower-case letters, \
             digits, '-' and '.', starting and ending with a letter or digit\n",
        ),
    ] {
        let run = crate::run(&[&["controller"], arguments].concat());
        assert_eq!(run.code, Some(2), "{run}");
        assert!(run.stderr.contains(sentence), "{run}");
    }
}
