//! Tables of objects, good and bad: each is accepted, or refused with the message that its table expects.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use bellwether_api as api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, Duration, GroupVersionKind},
};
use rstest::rstest;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A row of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What it shows.
    #[serde(rename = "case")]
    shows: String,
    /// The object, without apiVersion, kind and name.
    object: Value,
    /// A merge patch that is applied after the object was accepted.
    #[serde(default)]
    change: Option<Value>,
    /// What the message of the refusal must contain: of the change if there is one, else of the object.
    #[serde(default)]
    refused: Option<String>,
}

/// How the Rust type reads an object and writes it again.
type RoundTrip = fn(&Value) -> Result<Value>;

fn round_trip<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value> {
    Ok(serde_json::to_value(K::deserialize(object)?)?)
}

#[rstest]
#[case::application("Application", include_str!("cases/application.yaml"), round_trip::<api::Application>)]
#[case::rollup("Rollup", include_str!("cases/rollup.yaml"), round_trip::<api::Rollup>)]
#[case::health_rule("HealthRule", include_str!("cases/health_rule.yaml"), round_trip::<api::HealthRule>)]
#[case::status_collector(
    "StatusCollector",
    include_str!("cases/status_collector.yaml"),
    round_trip::<api::StatusCollector>
)]
#[case::binding_policy(
    "BindingPolicy",
    include_str!("cases/binding_policy.yaml"),
    round_trip::<api::BindingPolicy>
)]
#[case::combined_status(
    "CombinedStatus",
    include_str!("cases/combined_status.yaml"),
    round_trip::<api::CombinedStatus>
)]
#[tokio::test]
async fn each_object_is_accepted_or_refused(
    #[case] kind: &str,
    #[case] table: &str,
    #[case] round_trip: RoundTrip,
) -> Result<()> {
    let crd = api::crds().into_iter().find(|crd| crd.spec.names.kind == kind).context("no such kind")?;
    let cases: Vec<Case> = serde_saphyr::from_str(table)?;
    let cluster = crate::cluster().await?;
    let namespace = cluster.namespace("validation").await?;
    let objects = api_for(&crd, cluster.admin().client().await?, &namespace);

    let mut failures = Vec::new();
    let mut refusals = String::new();
    for (number, case) in cases.iter().enumerate() {
        let name = format!("{}-{number}", namespace.trim_end_matches('-'));
        match check(&objects, kind, &name, case, round_trip).await {
            Ok(refusal) => refusals.push_str(&refusal),
            Err(error) => failures.push(format!("{}: {error:#}", case.shows)),
        }
    }
    for message in rule_messages(&crd)? {
        if !refusals.contains(&message) {
            failures.push(format!("no case is refused with: {message}"));
        }
    }
    ensure!(failures.is_empty(), "{} of {kind}:\n- {}", failures.len(), failures.join("\n- "));
    Ok(())
}

/// Plays one case, and gives back the message of its refusal, or nothing.
async fn check(
    objects: &Api<DynamicObject>,
    kind: &str,
    name: &str,
    case: &Case,
    round_trip: RoundTrip,
) -> Result<String> {
    let mut given = case.object.clone();
    given["apiVersion"] = json!(format!("{}/{}", api::GROUP, api::VERSION));
    given["kind"] = json!(kind);
    given["metadata"]["name"] = json!(name);

    let mut answer = objects.create(&PostParams::default(), &serde_json::from_value(given.clone())?).await;
    if let (Some(change), Ok(_)) = (&case.change, &answer) {
        answer = objects.patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
    } else if case.change.is_some() {
        bail!(
            "the object itself was refused: {}",
            answer.err().map(|error| error.to_string()).unwrap_or_default()
        );
    }
    match (answer, &case.refused) {
        (Ok(stored), None) if case.change.is_none() => {
            let stored = serde_json::to_value(stored)?;
            ensure!(
                contains(&stored, &given),
                "it was stored as something else:\n{stored:#}\ngiven:\n{given:#}"
            );
            let read = round_trip(&stored).context("the Rust type cannot read it")?;
            ensure!(contains(&read, &given), "the Rust type made something else of it:\n{read:#}");
            Ok(String::new())
        }
        (Ok(stored), None) => {
            let (stored, change) =
                (serde_json::to_value(stored)?, case.change.as_ref().unwrap_or(&Value::Null));
            ensure!(contains(&stored, change), "it was changed to something else:\n{stored:#}");
            Ok(String::new())
        }
        (Ok(_), Some(expected)) => bail!("it was accepted, but should be refused with: {expected}"),
        (Err(kube::Error::Api(status)), Some(expected)) if status.message.contains(expected) => {
            Ok(status.message)
        }
        (Err(error), Some(expected)) => bail!("refused, but not with {expected:?}: {error}"),
        (Err(error), None) => bail!("refused: {error}"),
    }
}

fn api_for(crd: &CustomResourceDefinition, client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(api::GROUP, api::VERSION, &crd.spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
    match crd.spec.scope.as_str() {
        "Namespaced" => Api::namespaced_with(client, namespace, &resource),
        _ => Api::all_with(client, &resource),
    }
}

/// Whether everything in `part` is also in `whole`, lists element by element.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| match whole.get(key) {
                Some(whole) => contains(whole, part),
                // The API server drops a null where none is allowed, the Rust types leave out what is empty.
                None => part.is_null() || part.as_array().is_some_and(Vec::is_empty),
            })
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (Value::String(whole), Value::String(part)) => whole == part || same_duration(whole, part),
        _ => whole == part,
    }
}

/// Whether both are spellings of one length of time: 90s and 1m30s.
fn same_duration(one: &str, other: &str) -> bool {
    matches!((one.parse::<Duration>(), other.parse::<Duration>()), (Ok(one), Ok(other)) if one == other)
}

/// The messages of all rules in a CRD, each of which some case must meet.
fn rule_messages(crd: &CustomResourceDefinition) -> Result<BTreeSet<String>> {
    fn collect(value: &Value, messages: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (key, field) in fields {
                    if key == "x-kubernetes-validations" {
                        let rules = field.as_array().into_iter().flatten();
                        messages.extend(rules.filter_map(|rule| rule["message"].as_str()).map(str::to_owned));
                    }
                    collect(field, messages);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, messages)),
            _ => {}
        }
    }
    let mut messages = BTreeSet::new();
    collect(&serde_json::to_value(crd)?, &mut messages);
    Ok(messages)
}
