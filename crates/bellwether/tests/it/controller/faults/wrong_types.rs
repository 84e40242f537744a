//! Wrong types in every field of an object.
//!
//! For each field of a valid object, and for each of many values that do not belong there, the test creates
//! one object with that value in that field. All of them are members of one Application. Its counts must
//! equal the verdicts of `bellwether assess` on each of them. Another Application, whose members are valid,
//! must stay Ready.

use std::{collections::BTreeMap, fs, time::Instant};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::eventually;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use serde_json::{Value, json};

use super::{
    FaultFixture, SHOP, TIMEOUT,
    namespace_actions::{CLAIMS, DEPLOYMENTS, JOBS, PODS, ResourcePath, TestNamespace},
    recovered,
};
use crate::{controller::widgets, run};

const GROUP: &str = "wrong.example.com";
const WIDGETS: ResourcePath = ResourcePath { root: "/apis/wrong.example.com/v1", plural: "widgets" };

/// The kinds, with a valid object of each. The API server validates all of them except Widgets.
fn kinds() -> Vec<(ResourcePath, Value)> {
    let time = "2026-01-02T03:04:05Z";
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "Fine", "message": "all is well", "lastTransitionTime": time,
        })
    };
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "main" }] });
    let template = json!({ "metadata": { "labels": { "part": "of" } }, "spec": pod });
    let selector = json!({ "matchLabels": { "part": "of" } });
    let resources = json!({ "requests": { "storage": "1Gi" } });
    let mut always = template.clone();
    always["spec"]["restartPolicy"] = json!("Always");
    let widget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "spec": { "replicas": 2, "paused": false, "suspend": false },
        "status": {
            "observedGeneration": 1, "phase": "Running", "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
            "conditions": [condition("Ready"), condition("Available")],
        },
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "spec": { "replicas": 1, "selector": selector, "template": always },
        "status": {
            "observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
            "conditions": [condition("Available")],
        },
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": pod,
        "status": {
            "phase": "Running", "startTime": time, "conditions": [condition("Ready")],
            "containerStatuses": [{
                "name": "main", "ready": true, "restartCount": 0, "image": "main", "imageID": "main",
                "state": { "running": { "startedAt": time } },
            }],
        },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": resources },
        "status": { "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" } },
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "spec": { "template": template },
        "status": {
            "startTime": time, "completionTime": time, "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        },
    });
    vec![(WIDGETS, widget), (DEPLOYMENTS, deployment), (PODS, pod), (CLAIMS, claim), (JOBS, job)]
}

/// Values that are wrong in all or in most fields.
fn strange() -> Vec<Value> {
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "in": [inner] }));
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("nonsense \u{7}\n\u{202e}"),
        json!("x".repeat(5000)),
        json!([]),
        json!({}),
        json!([null, 1, "two", [], {}]),
        json!({ "type": [], "status": {}, "conditions": 1 }),
        deep,
    ]
}

/// The JSON pointers of all fields of a value.
fn places(value: &Value, way: &str) -> Vec<String> {
    let below: Vec<_> = match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (format!("{way}/{name}"), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, value)| (format!("{way}/{at}"), value)).collect()
        }
        _ => Vec::new(),
    };
    let mut found: Vec<_> = below.iter().map(|(way, _)| way.clone()).collect();
    found.extend(below.iter().flat_map(|(way, value)| places(value, way)));
    found
}

/// One object for each field and each strange value.
fn wrong(kind: &ResourcePath, right: &Value) -> Vec<Value> {
    let is_custom = kind.plural == WIDGETS.plural;
    let places = places(right, "").into_iter();
    let places = places.filter(|way| way.starts_with("/status") || (is_custom && way.starts_with("/spec")));
    let mut all = Vec::new();
    for place in places {
        for value in strange() {
            let mut object = right.clone();
            if let Some(there) = object.pointer_mut(&place) {
                *there = value;
            }
            object["metadata"] = json!({ "name": format!("wrong-{}", all.len()), "labels": { "app": SHOP } });
            all.push(object);
        }
    }
    all
}

/// Creates an object with its status. Returns whether the API server accepted the status.
async fn make(namespace: &TestNamespace, kind: ResourcePath, mut object: Value) -> Result<bool> {
    let status = object["status"].take();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let mut made = namespace.create(kind, &object).await?;
    made["status"] = status;
    let path = format!("{}/status", namespace.path(kind, made["metadata"]["name"].as_str()));
    Ok(namespace.request(Method::PUT, &path, &made).await.is_ok())
}

/// The number of objects in each state, by the verdict of `bellwether assess` on each.
async fn assessed(namespace: &TestNamespace) -> Result<BTreeMap<String, u64>> {
    let mut items = Vec::new();
    for (kind, right) in kinds() {
        let mut list = namespace.request(Method::GET, &namespace.path(kind, None), &Value::Null).await?;
        for mut item in list["items"].as_array_mut().map(std::mem::take).context("no list")? {
            if item["metadata"]["labels"]["app"] == SHOP {
                (item["apiVersion"], item["kind"]) = (right["apiVersion"].clone(), right["kind"].clone());
                items.push(item);
            }
        }
    }
    let file = tempfile::Builder::new().suffix(".json").tempfile()?;
    fs::write(file.path(), json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string())?;
    let path = file.path().to_str().context("a path that is no text")?.to_owned();
    let assessed = tokio::task::spawn_blocking(move || run(&["assess", &path, "-o", "json"])).await?;
    let verdicts: Vec<Value> =
        serde_json::from_str(&assessed.stdout).with_context(|| assessed.to_string())?;
    ensure!(verdicts.len() == items.len(), "{} verdicts on {} objects", verdicts.len(), items.len());
    let mut counts = BTreeMap::from([("total".to_owned(), 0)]);
    for verdict in &verdicts {
        let state = verdict["state"].as_str().context("no state")?;
        let (first, rest) = state.split_at(1);
        *counts.entry(format!("{}{rest}", first.to_lowercase())).or_default() += 1;
        *counts.entry("total".to_owned()).or_default() += 1;
    }
    Ok(counts)
}

#[tokio::test]
async fn every_field_is_wrong() -> Result<()> {
    let fixture = FaultFixture::new("wrong").await?;
    let namespace = &fixture.namespace;
    let definition: Value = serde_saphyr::from_str(&widgets(GROUP, "status: {}"))?;
    namespace
        .request(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)
        .await?;
    let kinds = kinds();
    for (kind, right) in &kinds {
        let mut right = right.clone();
        right["metadata"] = json!({ "name": "right", "labels": { "app": "others" } });
        let made = async || make(namespace, *kind, right.clone()).await;
        eventually(TIMEOUT, &format!("{} can be made", kind.plural), made).await?;
    }
    let of_all: Vec<_> = kinds
        .iter()
        .map(|(_, right)| {
            let group = right["apiVersion"].as_str().and_then(|version| version.rsplit_once('/'));
            json!({ "group": group.map(|(group, _)| group).unwrap_or_default(), "kind": right["kind"] })
        })
        .collect();
    namespace.application("others", json!({ "componentKinds": of_all })).await?;
    namespace.application(SHOP, json!({ "componentKinds": of_all })).await?;
    let controller = fixture.controller().await?;

    let mut taken = BTreeMap::new();
    for (kind, right) in &kinds {
        let made =
            stream::iter(wrong(kind, right)).map(|object| make(namespace, *kind, object)).buffer_unordered(8);
        let made: Vec<bool> = made.try_collect().await?;
        taken.insert(kind.plural, (made.iter().filter(|taken| **taken).count(), made.len()));
    }
    let since = Instant::now();
    // The API server accepts all Widgets, and some objects of every other kind.
    assert!(
        taken.iter().all(|(kind, (taken, all))| *taken > 0 && (*kind != "widgets" || taken == all)),
        "{taken:?}"
    );

    let expected = assessed(namespace).await?;
    let is_so =
        |status: &Value| expected.iter().all(|(state, count)| status["objectCounts"][state] == *count);
    let at = fixture.observer.until("all are counted as they are assessed", |observer| {
        let statuses = observer.statuses(SHOP);
        statuses.last().filter(|revision| is_so(&revision.object["status"])).map(|revision| revision.at)
    });
    let at = at.await.with_context(|| format!("{expected:?}, and not {:#}", last(&fixture)))?;
    recovered("wrong types in every field", since, at)?;
    assert!(expected.len() >= 4, "they differ: {expected:?}");
    assert_eq!(fixture.observer.reasons("others"), ["ComponentsReady"]);
    fixture.check_invariants(controller, 60).await
}

fn last(fixture: &FaultFixture<'_>) -> Value {
    let statuses = fixture.observer.statuses(SHOP);
    statuses.last().map(|revision| revision.object["status"]["objectCounts"].clone()).unwrap_or_default()
}
