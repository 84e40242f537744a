//! OLM (Operator Lifecycle Manager): the leader writes Upgradeable into an OperatorCondition.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Access, Cluster, Fault, FaultProxy, Requests, Verb, eventually, rule};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Controller, ControllerFixture, TIMEOUT, condition, operator_condition, operator_conditions, rollup, text,
    widgets,
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
    fixture: ControllerFixture,
    proxy: FaultProxy,
    /// Has the permissions that OLM grants, and those that the controller needs without OLM.
    user: Access,
}

impl Operator {
    async fn new(name: &str) -> Result<Self> {
        let cluster = Cluster::builder().name(name).start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        let fixture = ControllerFixture::in_cluster(&cluster, name).await?;
        for (definition, kind) in
            [(DEFINITION, RESOURCE), (&widgets(GROUP, "status: {}"), "widgets.shop.example.com")]
        {
            fixture.apply(definition).await?;
            fixture.kubectl(&format!("wait --for=condition=Established crd/{kind} --timeout=5m")).await?;
        }
        let user = cluster.service_account(&fixture.namespace, "controller").await?;
        let everywhere = vec![
            rule(&["*"], "bellwether.dev", &["*"]),
            rule(&["*"], "events.k8s.io", &["events"]),
            rule(&["get", "list", "watch"], "apiextensions.k8s.io", &["customresourcedefinitions"]),
            rule(&["get", "list", "watch"], GROUP, &["widgets"]),
        ];
        cluster.grant(&user, None, everywhere).await?;
        let leases = vec![rule(&["get", "create", "update"], "coordination.k8s.io", &["leases"])];
        cluster.grant(&user, Some(&fixture.namespace), leases).await?;
        let proxy = FaultProxy::before(&cluster).await?;
        Ok(Self { cluster, fixture, proxy, user })
    }

    /// What OLM grants: get, update and patch on this one object, neither list nor watch.
    async fn grant(&self) -> Result<bellwether_testkit::Grant> {
        let mut own = rule(&["get", "update", "patch"], "operators.coreos.com", &["operatorconditions"]);
        own.resource_names = Some(vec![NAME.to_owned()]);
        self.cluster.grant(&self.user, Some(&self.fixture.namespace), vec![own]).await
    }

    /// Starts a controller that writes the OperatorCondition, behind a proxy.
    async fn controller(&self, proxy: &FaultProxy, elect: bool) -> Result<Controller> {
        let place = format!("{}/{NAME}", self.fixture.namespace);
        let elect = format!("--leader-elect={elect}");
        let namespace = &self.fixture.namespace;
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
        self.fixture.kubectl.ok_with_input(&["create", "-f", "-"], &condition.to_string()).await.map(drop)
    }

    /// Reports the component as Progressing, with these further conditions.
    async fn report(&self, more: &[Value]) -> Result<()> {
        let widget = format!("apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: one}}\n");
        self.fixture.apply(&widget).await?;
        let mut conditions = operator_conditions(["True", "True", "False"]);
        conditions.extend_from_slice(more);
        self.fixture.report("widget/one", json!({ "conditions": conditions })).await
    }

    /// Waits until the Rollup has this status of Upgradeable, and returns the condition.
    async fn rollup_upgradeable(&self, upgradeable: &str) -> Result<Value> {
        let mut condition_of_rollup = Value::Null;
        eventually(TIMEOUT, "the Rollup has this status of Upgradeable", async || {
            condition_of_rollup = condition(&self.fixture.get("rollup/all").await?["status"], "Upgradeable");
            Ok(condition_of_rollup["status"] == upgradeable)
        })
        .await?;
        Ok(condition_of_rollup)
    }

    /// Waits until Upgradeable in the OperatorCondition satisfies `is_so`, and returns it.
    async fn upgradeable_satisfies(&self, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut spec = Value::Null;
        eventually(TIMEOUT, "Upgradeable in the OperatorCondition is as expected", async || {
            spec = self.fixture.get(&format!("{RESOURCE}/{NAME}")).await?["spec"].take();
            Ok(is_so(&condition(&spec, "Upgradeable")))
        })
        .await
        .with_context(|| format!("the last was {spec:#}"))?;
        assert_eq!(spec["conditions"][0], theirs(), "the condition of the operator is unchanged");
        assert_eq!(
            (&spec["deployments"], spec["conditions"].as_array().map(Vec::len)),
            (&json!(["shop"]), Some(2))
        );
        Ok(condition(&spec, "Upgradeable"))
    }

    async fn reason_is(&self, reason: &str) -> Result<Value> {
        self.upgradeable_satisfies(|upgradeable| upgradeable["reason"] == reason).await
    }
}

/// The number of GETs and PATCHes of the OperatorCondition.
fn request_counts(proxy: &FaultProxy) -> (usize, usize) {
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
fn log_count(controller: &Controller, words: &str) -> usize {
    controller.program.log().matches(words).count()
}

/// The controller logs each error once, keeps running, and retries until it succeeds.
#[tokio::test]
async fn failures_are_logged_and_retried() -> Result<()> {
    let operator = Operator::new("olm-faults").await?;
    let controller = operator.controller(&operator.proxy, false).await?;
    let logged_once =
        async |words: &str| eventually(TIMEOUT, words, async || Ok(log_count(&controller, words) == 1)).await;
    // First 403, then 404: OLM has not created its objects yet.
    logged_once("Grant Bellwether the verbs get and patch on operatorconditions").await?;
    let grant = operator.grant().await?;
    logged_once("Check that OLM is installed, and that --olm-operator-condition names").await?;
    operator.make_condition().await?;
    let unknown = operator.reason_is("RollupNotFound").await?;
    assert_eq!(unknown["status"], "Unknown", "OLM lets that pass");
    assert_eq!(unknown["message"], "Rollup/all not found. Create it, or set --olm-rollup to another Rollup.");
    for once in ["Grant Bellwether the verbs get and patch", "Check that OLM is installed"] {
        assert_eq!(log_count(&controller, once), 1, "{}", controller.program.log());
    }

    // A restarted controller reads the OperatorCondition once, and has nothing to write.
    controller.program.stop().await?;
    operator.proxy.forget();
    let conflict = Requests::of(Verb::Patch, RESOURCE).times(2);
    let conflicts = operator.proxy.inject(conflict, refusal(StatusCode::CONFLICT));
    let controller = operator.controller(&operator.proxy, false).await?;
    eventually(TIMEOUT, "the controller has read it", async || Ok(request_counts(&operator.proxy).0 == 1))
        .await?;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(request_counts(&operator.proxy), (1, 0));

    // After a 409 conflict, the controller reads and writes again at once.
    controller.program.stop().await?;
    let without_upgradeable = json!({"spec": {"conditions": [theirs()]}});
    operator.fixture.patch(&format!("{RESOURCE}/{NAME}"), without_upgradeable).await?;
    operator.proxy.forget();
    let controller = operator.controller(&operator.proxy, false).await?;
    operator.reason_is("RollupNotFound").await?;
    assert_eq!((conflicts.strikes(), request_counts(&operator.proxy)), (2, (3, 3)));
    assert_eq!(
        log_count(&controller, "cannot update condition Upgradeable"),
        0,
        "{}",
        controller.program.log()
    );
    grant.revoke().await?;
    Ok(())
}

/// The leader writes Upgradeable whenever its status, reason or message differs, and never otherwise.
#[tokio::test]
async fn upgradeable_is_written_once_for_each_change() -> Result<()> {
    let operator = Operator::new("olm").await?;
    let (fixture, namespace) = (&operator.fixture, operator.fixture.namespace.as_str());
    operator.grant().await?;
    operator.make_condition().await?;
    let first = operator.controller(&operator.proxy, true).await?;
    operator.reason_is("RollupNotFound").await?;
    assert_eq!(request_counts(&operator.proxy), (1, 1));

    // The Rollup exists and does not report Upgradeable.
    fixture.apply(&rollup("all", GROUP, namespace, &["one"], false)).await?;
    let unknown = operator.reason_is("UpgradeableNotEnabled").await?;
    assert_eq!(
        unknown["message"],
        "Rollup/all does not report Upgradeable. Set its spec.upgradeable to true."
    );
    assert_eq!(request_counts(&operator.proxy), (2, 2));
    let before = unknown["lastTransitionTime"].clone();

    // A component reports Upgradeable=False. lastTransitionTime has whole seconds; after a second it must
    // differ.
    operator.report(&[operator_condition("Upgradeable", "False")]).await?;
    sleep(Duration::from_secs(1)).await;
    fixture.apply(&rollup("all", GROUP, namespace, &["one"], true)).await?;
    let no = operator.upgradeable_satisfies(|upgradeable| upgradeable["status"] == "False").await?;
    assert_eq!(request_counts(&operator.proxy), (3, 3));
    assert_ne!(no["lastTransitionTime"], before);
    let of_rollup = operator.rollup_upgradeable("False").await?;
    assert_eq!((&no["reason"], &no["message"]), (&of_rollup["reason"], &of_rollup["message"]));

    // Another message with the same status does not change lastTransitionTime.
    let mut other = operator_condition("Upgradeable", "False");
    other["message"] = json!("there is a backup under way");
    operator.report(&[other]).await?;
    let has_message =
        |upgradeable: &Value| text(&upgradeable["message"]).contains("there is a backup under way");
    let still_no = operator.upgradeable_satisfies(has_message).await?;
    assert_eq!(
        (&still_no["status"], &still_no["lastTransitionTime"]),
        (&no["status"], &no["lastTransitionTime"])
    );
    assert_eq!(request_counts(&operator.proxy), (4, 4));

    // Other changes cause no requests for the OperatorCondition.
    operator.proxy.forget();
    let second_proxy = FaultProxy::before(&operator.cluster).await?;
    let second = operator.controller(&second_proxy, true).await?;
    for number in 0..3 {
        fixture.kubectl(&format!("annotate widget one heartbeat={number} --overwrite")).await?;
        fixture.kubectl(&format!("annotate rollup all heartbeat={number} --overwrite")).await?;
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!((request_counts(&operator.proxy), request_counts(&second_proxy)), ((0, 0), (0, 0)));

    // The standby sees a change and leaves the write to the leader.
    operator.report(&[operator_condition("Upgradeable", "True")]).await?;
    operator.upgradeable_satisfies(|upgradeable| upgradeable["status"] == "True").await?;
    second
        .probed("/readyz/rollups/all", 503, |body| condition(body, "Upgradeable")["status"] == "True")
        .await?;
    assert_eq!((request_counts(&operator.proxy), request_counts(&second_proxy)), ((1, 1), (0, 0)));

    // A new leader reads the OperatorCondition once, and then writes each change.
    first.program.stop().await?;
    eventually(TIMEOUT, "the second has read it", async || Ok(request_counts(&second_proxy).0 == 1)).await?;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(request_counts(&second_proxy), (1, 0));
    operator.report(&[operator_condition("Upgradeable", "False")]).await?;
    operator.upgradeable_satisfies(|upgradeable| upgradeable["status"] == "False").await?;
    assert_eq!((request_counts(&operator.proxy), request_counts(&second_proxy)), ((1, 1), (2, 1)));

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
