//! Every kind with kubectl: create, get, describe, explain, apply, patch and delete.

use anyhow::{Context as _, Result, ensure};
use bellwether_api as api;
use bellwether_testkit::Kubectl;
use rstest::rstest;
use serde_json::Value;

use crate::round_trip;

/// An object of one kind, and what kubectl prints.
struct Story {
    short_name: &'static str,
    /// The object, named `story`.
    manifest: &'static str,
    /// A merge patch of `/status`, as the controller would send it.
    status: Option<&'static str>,
    /// A patch of `/status` that the API server rejects, and a part of its message.
    rejected_status: Option<(&'static str, &'static str)>,
    /// Decodes an object into the Rust type and encodes it again.
    read: fn(&Value) -> Result<Value>,
    /// The output of `kubectl get`, without the age.
    table: [&'static str; 2],
    /// A part of the output of `kubectl get -o wide`.
    wide: Option<&'static str>,
    /// A part of the output of `kubectl describe`.
    described: &'static str,
    /// A field for `kubectl explain`, and a part of its output.
    explained: (&'static str, &'static str),
    /// A merge patch, a JSONPath, and the value there afterwards.
    change: (&'static str, &'static str, &'static str),
}

const APPLICATION: Story = Story {
    short_name: "bwapp",
    manifest: "
        apiVersion: bellwether.dev/v1alpha1
        kind: Application
        metadata: {name: story}
        spec:
          type: wordpress
          version: '1.0'
          selector: {matchLabels: {app: wordpress}}
          componentKinds: [{group: apps, kind: StatefulSet}]",
    status: Some(
        r#"{"status": {
            "observedGeneration": 3,
            "state": "InProgress",
            "reason": "ImagePullBackOff",
            "ready": "True",
            "componentsReady": "4/5",
            "progress": 86,
            "installed": ["mysql", "wordpress-mysql", "wordpress-webserver-svc"],
            "missing": ["wordpress-webserver"],
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "ComponentsInProgress", "observedGeneration": 3,
                "message": "StatefulSet/wordpress-mysql: 2 of 3 replicas ready", "lastTransitionTime": "2026-11-14T10:00:00Z"
            }],
            "objects": [{
                "link": "/apis/apps/v1/namespaces/default/statefulsets/wordpress-mysql",
                "name": "wordpress-mysql", "group": "apps", "kind": "StatefulSet", "status": "InProgress",
                "progress": 66, "reason": "LessReady", "message": "2 of 3 replicas ready",
                "since": "2026-11-14T10:00:00Z", "rule": "builtin/StatefulSet",
                "cause": {
                    "kind": "Pod", "name": "wordpress-mysql-2", "reason": "ImagePullBackOff", "message": "not found"
                }
            }],
            "objectCounts": {
                "total": 5, "ready": 4, "inProgress": 1, "failed": 0, "suspended": 0, "terminating": 0,
                "unknown": 0, "missing": 0
            },
            "dependencies": [{"name": "mysql", "installed": true, "ready": "True"}]
        }}"#,
    ),
    rejected_status: Some((
        r#"{"status": {"state": "Suspended"}}"#,
        r#"status.state: Unsupported value: "Suspended""#,
    )),
    read: round_trip::<api::Application>,
    table: ["NAME STATE READY PROGRESS REASON AGE", "story InProgress 4/5 86 ImagePullBackOff"],
    wide: Some("wordpress   1.0       StatefulSet/wordpress-mysql: 2 of 3 replicas ready"),
    described: "StatefulSet/wordpress-mysql: 2 of 3 replicas ready",
    explained: ("application.spec.ownership", "it owns members with the annotation"),
    change: (r#"{"spec": {"ownership": "Observe"}}"#, "{.spec.ownership}", "Observe"),
};

const ROLLUP: Story = Story {
    short_name: "bwru",
    manifest: "
        apiVersion: bellwether.dev/v1alpha1
        kind: Rollup
        metadata: {name: story}
        spec: {components: [{group: kubevirt.io, kind: KubeVirt, namespace: kubevirt, name: kubevirt}]}",
    status: Some(
        r#"{"status": {
            "observedGeneration": 1,
            "health": "Error",
            "state": "InProgress",
            "meaning": "The component has failed; its operator is repairing it",
            "componentCount": 1,
            "components": [{
                "group": "kubevirt.io", "kind": "KubeVirt", "namespace": "kubevirt", "name": "kubevirt",
                "available": "False", "progressing": "True", "degraded": "Unknown", "upgradeable": "False",
                "reason": "HealInProgress", "message": "repairing", "since": "2026-11-14T10:00:00Z"
            }],
            "conditions": [
                {"type": "Available", "status": "False", "reason": "HealInProgress", "message": "repairing",
                 "lastTransitionTime": "2026-11-14T10:00:00Z"},
                {"type": "Progressing", "status": "True", "reason": "HealInProgress", "message": "",
                 "lastTransitionTime": "2026-11-14T10:00:00Z"},
                {"type": "Degraded", "status": "Unknown", "reason": "InstallInvalid", "message": "",
                 "lastTransitionTime": "2026-11-14T10:00:00Z"}
            ]
        }}"#,
    ),
    rejected_status: Some((
        r#"{"status": {"health": "Green"}}"#,
        r#"status.health: Unsupported value: "Green""#,
    )),
    read: round_trip::<api::Rollup>,
    table: [
        "NAME HEALTH STATE AVAILABLE PROGRESSING DEGRADED AGE",
        "story Error InProgress False True Unknown",
    ],
    wide: Some("The component has failed; its operator is repairing it"),
    described: "HealInProgress",
    explained: ("rollup.spec.progressing", "False if a component is stuck"),
    change: (r#"{"spec": {"progressing": "AnyTrue"}}"#, "{.spec.progressing}", "AnyTrue"),
};

const HEALTH_RULE: Story = Story {
    short_name: "bwhr",
    manifest: "
        apiVersion: bellwether.dev/v1alpha1
        kind: HealthRule
        metadata: {name: story}
        spec:
          for: {group: acme.io, kind: Widget}
          cel: [{when: \"status.phase = 'Up'\", state: Ready}]",
    status: Some(
        r#"{"status": {"observedGeneration": 1, "conditions": [{
            "type": "Valid", "status": "False", "reason": "SyntaxError",
            "message": "cel[0].when, column 14: expected ==", "lastTransitionTime": "2026-11-14T10:00:00Z"
        }]}}"#,
    ),
    rejected_status: Some((
        r#"{"status": {"conditions": [{"type": "Valid", "status": "Yes", "reason": "A", "message": "", "lastTransitionTime": "2026-11-14T10:00:00Z"}]}}"#,
        r#"status.conditions[0].status: Unsupported value: "Yes""#,
    )),
    read: round_trip::<api::HealthRule>,
    table: ["NAME GROUP KIND VALID AGE", "story acme.io Widget False"],
    wide: Some("cel[0].when, column 14: expected =="),
    described: "cel[0].when, column 14: expected ==",
    explained: ("healthrule.spec.cel", "The first clause whose `when` is true decides"),
    change: (r#"{"spec": {"for": {"version": "v1"}}}"#, "{.spec.for.version}", "v1"),
};

const STATUS_COLLECTOR: Story = Story {
    short_name: "bwsc",
    manifest: "
        apiVersion: bellwether.dev/v1alpha1
        kind: StatusCollector
        metadata: {name: story}
        spec: {combinedFields: [{name: total, type: SUM}]}",
    status: Some(
        r#"{"status": {
            "observedGeneration": 1,
            "errors": ["combinedFields[0].subject: SUM needs a subject"],
            "conditions": [{
                "type": "Valid", "status": "False", "reason": "InvalidExpression",
                "message": "combinedFields[0].subject: SUM needs a subject",
                "lastTransitionTime": "2026-11-14T10:00:00Z"
            }]
        }}"#,
    ),
    rejected_status: Some((
        r#"{"status": {"conditions": [{"type": "Valid", "status": "True", "reason": "not one word", "message": "", "lastTransitionTime": "2026-11-14T10:00:00Z"}]}}"#,
        "status.conditions[0].reason: Invalid value",
    )),
    read: round_trip::<api::StatusCollector>,
    table: ["NAME VALID LIMIT AGE", "story False 20"],
    wide: Some("combinedFields[0].subject: SUM needs a subject"),
    described: "combinedFields[0].subject: SUM needs a subject",
    explained: ("statuscollector.spec.filter", "like WHERE"),
    change: (r#"{"spec": {"limit": 5}}"#, "{.spec.limit}", "5"),
};

const BINDING_POLICY: Story = Story {
    short_name: "bwbp",
    manifest: "
        apiVersion: bellwether.dev/v1alpha1
        kind: BindingPolicy
        metadata: {name: story}
        spec:
          clusterSelectors: [{matchLabels: {location-group: edge}}]
          downsync: [{apiGroup: apps, resources: [deployments], statusCollectors: [sad-ones]}]",
    status: Some(
        r#"{"status": {"observedGeneration": 1, "objects": 12, "clusters": 3, "conditions": [{
            "type": "CollectorsAvailable", "status": "False", "reason": "CollectorMissing",
            "message": "StatusCollector sad-ones not found", "lastTransitionTime": "2026-11-14T10:00:00Z"
        }]}}"#,
    ),
    rejected_status: Some((r#"{"status": {"objects": -1}}"#, "status.objects: Invalid value: -1")),
    read: round_trip::<api::BindingPolicy>,
    table: ["NAME OBJECTS CLUSTERS COLLECTORS AGE", "story 12 3 False"],
    wide: None,
    described: "StatusCollector sad-ones not found",
    explained: ("bindingpolicy.spec.downsync.resources", "such as deployments"),
    change: (r#"{"spec": {"stalenessThreshold": "5m"}}"#, "{.spec.stalenessThreshold}", "5m"),
};

const COMBINED_STATUS: Story = Story {
    short_name: "bwcs",
    manifest: "
        apiVersion: bellwether.dev/v1alpha1
        kind: CombinedStatus
        metadata:
          name: story
          labels:
            status.bellwether.dev/api-group: apps
            status.bellwether.dev/resource: deployments
            status.bellwether.dev/namespace: shop
            status.bellwether.dev/name: web
            status.bellwether.dev/binding-policy: edge
        results:
          - name: number
            columnNames: [count]
            rows: [{columns: [{type: Number, number: '3'}]}]
            totalRows: 1
        clusters: {bound: 3, reporting: 2, stale: 1, missing: 0}",
    status: None,
    rejected_status: None,
    read: round_trip::<api::CombinedStatus>,
    table: [
        "NAME GROUP RESOURCE OBJECT POLICY CLUSTERS REPORTING STALE MISSING AGE",
        "story apps deployments web edge 3 2 1 0",
    ],
    wide: None,
    described: "Column Names:",
    explained: ("combinedstatus.results.truncated", "Whether rows were dropped because of the limit"),
    change: (r#"{"clusters": {"stale": 0}}"#, "{.clusters.stale}", "0"),
};

#[rstest]
#[case::application(APPLICATION)]
#[case::rollup(ROLLUP)]
#[case::health_rule(HEALTH_RULE)]
#[case::status_collector(STATUS_COLLECTOR)]
#[case::binding_policy(BINDING_POLICY)]
#[case::combined_status(COMBINED_STATUS)]
#[tokio::test]
async fn kubectl_works_with_each_kind(#[case] story: Story) -> Result<()> {
    let cluster = crate::cluster().await?;
    let namespace = cluster.namespace("kubectl").await?;
    let kubectl = Kubectl::new(cluster.admin())?.in_namespace(&namespace);
    let object = format!("{}/story", story.short_name);
    let manifest = story.manifest.replace("\n        ", "\n");

    kubectl.ok_with_input(&["create", "-f", "-"], &manifest).await?;
    if let Some(status) = story.status {
        kubectl.ok(&["patch", &object, "--subresource=status", "--type=merge", "-p", status]).await?;
        // The API server and the Rust type keep every field.
        let stored: Value = serde_json::from_str(&kubectl.ok(&["get", &object, "-o", "json"]).await?)?;
        let given: Value = serde_json::from_str(status)?;
        assert_eq!(stored["status"], given["status"]);
        assert_eq!((story.read)(&stored)?["status"], given["status"], "in the Rust type");
    }
    if let Some(rejected) = story.rejected_status {
        let patch = ["patch", &object, "--subresource=status", "--type=merge", "-p", rejected.0];
        let answer = kubectl.run(&patch).await?;
        assert!(!answer.success && answer.stderr.contains(rejected.1), "{}", answer.stderr);
    }
    let table = kubectl.ok(&["get", &object]).await?;
    let words: Vec<String> =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let [header, row] = words.as_slice() else {
        anyhow::bail!("not a table with one row: {table}");
    };
    assert_eq!(header, story.table[0]);
    let (row, age) = row.rsplit_once(' ').context("a row with one word")?;
    assert_eq!(row, story.table[1]);
    assert!(age.ends_with('s'), "{age} is not an age in seconds");
    if let Some(expected) = story.wide {
        let wide = kubectl.ok(&["get", &object, "-o", "wide"]).await?;
        assert!(wide.contains(expected), "{wide}");
    }
    let described = kubectl.ok(&["describe", &object]).await?;
    assert!(described.contains("Name:         story"), "{described}");
    assert!(described.contains(story.described), "{described}");

    let (field, answer) = story.explained;
    let explained = kubectl.ok(&["explain", "--api-version=bellwether.dev/v1alpha1", field]).await?;
    let one_line = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(answer), "{explained}");

    let applied = kubectl.ok_with_input(&["apply", "-f", "-"], &manifest).await?;
    assert!(applied.ends_with("/story configured\n"), "{applied}");
    let applied =
        kubectl.ok_with_input(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &manifest).await?;
    assert!(applied.contains("serverside-applied"), "{applied}");
    let (change, path, value) = story.change;
    kubectl.ok(&["patch", &object, "--type=merge", "-p", change]).await?;
    let found = kubectl.ok(&["get", &object, "-o", &format!("jsonpath={path}")]).await?;
    assert_eq!(found, value);

    kubectl.ok(&["delete", &object]).await?;
    let gone = kubectl.run(&["get", &object]).await?;
    ensure!(!gone.success && gone.stderr.contains("NotFound"), "{}", gone.stderr);
    Ok(())
}
