//! Tables of objects: the API server accepts each one, or rejects it with the message in the table.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use bellwether_api as api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind, Status},
};
use rstest::rstest;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::round_trip;

/// A row of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The name of the case.
    #[serde(rename = "case")]
    shows: String,
    /// The object, without apiVersion, kind and name.
    object: Value,
    /// The stored object with defaults, to compare exactly.
    #[serde(default)]
    stored: Option<Value>,
    /// A merge patch to send after the object was created.
    #[serde(default)]
    change: Option<Value>,
    /// Text in the message of the rejection: of `change` if it is set, else of `object`.
    #[serde(default)]
    rejected: Option<String>,
}

/// Decodes an object into the Rust type and encodes it again.
type RoundTrip = fn(&Value) -> Result<Value>;

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
async fn each_object_is_accepted_or_rejected(
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
    let mut broken = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let name = format!("{namespace}-{number}");
        match check(&objects, kind, &name, case, round_trip).await {
            Ok(rules) => broken.extend(rules),
            Err(error) => failures.push(format!("{}: {error:#}", case.shows)),
        }
    }
    // The API server prefixes the message of the rule with the value.
    let breaks =
        |rule: &Rule, broken: &Rule| broken.place == rule.place && broken.message.ends_with(&rule.message);
    for rule in rules(&crd)?.iter().filter(|rule| !broken.iter().any(|broken| breaks(rule, broken))) {
        failures.push(format!("no case violates the rule at {}: {}", rule.place, rule.message));
    }
    ensure!(failures.is_empty(), "{} of {kind}:\n- {}", failures.len(), failures.join("\n- "));
    Ok(())
}

/// A rule of a CRD, or a violation of one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    /// The path of the field, without indexes and keys.
    place: String,
    message: String,
}

/// Runs one case and returns the rules that it violates.
async fn check(
    objects: &Api<DynamicObject>,
    kind: &str,
    name: &str,
    case: &Case,
    round_trip: RoundTrip,
) -> Result<Vec<Rule>> {
    let mut given = case.object.clone();
    given["apiVersion"] = json!(format!("{}/{}", api::GROUP, api::VERSION));
    given["kind"] = json!(kind);
    given["metadata"]["name"] = json!(name);

    let created = objects.create(&PostParams::default(), &serde_json::from_value(given.clone())?).await;
    let answer = match (&case.change, created) {
        (Some(change), Ok(_)) => objects.patch(name, &PatchParams::default(), &Patch::Merge(change)).await,
        (Some(_), Err(error)) => bail!("the object itself was rejected: {error}"),
        (None, created) => created,
    };
    let stored = match (answer, &case.rejected) {
        (Ok(stored), None) => serde_json::to_value(stored)?,
        (Ok(_), Some(expected)) => bail!("accepted; want a rejection with: {expected}"),
        (Err(kube::Error::Api(status)), Some(expected)) if status.message.contains(expected) => {
            return Ok(broken_rules(&status));
        }
        (Err(error), Some(expected)) => bail!("rejected, but not with {expected:?}: {error}"),
        (Err(error), None) => bail!("rejected: {error}"),
    };

    let expected = case.change.as_ref().unwrap_or(&given);
    ensure!(contains(&stored, expected), "stored a different object:\n{stored:#}\nwant:\n{expected:#}");
    let read = round_trip(&stored).context("cannot decode into the Rust type")?;
    ensure!(contains(&read, expected), "the Rust type encodes a different object:\n{read:#}");
    if let Some(exactly) = &case.stored {
        assert_eq!(&own_fields(&stored), exactly, "{}", case.shows);
        assert_eq!(&own_fields(&read), exactly, "{}, through the Rust type", case.shows);
    }

    // Server-side apply must store the same object.
    objects.delete(name, &DeleteParams::default()).await?;
    let apply = PatchParams::apply("validation");
    let applied =
        objects.patch(name, &apply, &Patch::Apply(&given)).await.context("rejected by server-side apply")?;
    ensure!(contains(&serde_json::to_value(applied)?, &given), "server-side apply stored a different object");
    Ok(Vec::new())
}

/// An object without apiVersion, kind and metadata.
fn own_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    }
    object
}

fn broken_rules(status: &Status) -> Vec<Rule> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .map(|cause| Rule {
            place: without_keys(&cause.field),
            message: cause
                .message
                .split_once(": ")
                .map_or(&*cause.message, |(_, message)| message)
                .to_owned(),
        })
        .collect()
}

/// `spec.components[web].kind` is `spec.components[].kind`.
fn without_keys(path: &str) -> String {
    let mut depth = 0;
    let outside = |letter: &char| match letter {
        '[' => {
            depth += 1;
            depth == 1
        }
        ']' => {
            depth -= 1;
            depth == 0
        }
        _ => depth == 0,
    };
    path.chars().filter(outside).collect()
}

fn api_for(crd: &CustomResourceDefinition, client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(api::GROUP, api::VERSION, &crd.spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
    match crd.spec.scope.as_str() {
        "Namespaced" => Api::namespaced_with(client, namespace, &resource),
        _ => Api::all_with(client, &resource),
    }
}

/// Whether `whole` has every field of `part`; lists are compared element by element.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| match whole.get(key) {
                Some(whole) => contains(whole, part),
                // The API server drops nulls, the Rust types omit empty lists.
                None => part.is_null() || part.as_array().is_some_and(Vec::is_empty),
            })
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}

/// All rules of a CRD with their places. Some case must violate each of them.
fn rules(crd: &CustomResourceDefinition) -> Result<BTreeSet<Rule>> {
    fn collect(place: &str, schema: &Value, rules: &mut BTreeSet<Rule>) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let message = rule["message"].as_str().unwrap_or_default().to_owned();
            rules.insert(Rule { place: place.to_owned(), message });
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            collect(format!("{place}.{name}").trim_start_matches('.'), property, rules);
        }
        for inner in ["items", "additionalProperties"] {
            if schema[inner].is_object() {
                collect(&format!("{place}[]"), &schema[inner], rules);
            }
        }
    }
    let mut rules = BTreeSet::new();
    for version in &crd.spec.versions {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        collect("", &serde_json::to_value(schema)?, &mut rules);
    }
    Ok(rules)
}

/// Server-side apply stores a required expression that is null as an absent field.
#[tokio::test]
async fn a_null_expression_does_not_break_decoding_of_a_list() -> Result<()> {
    let client = crate::cluster().await?.admin().client().await?;
    let collectors: Api<api::StatusCollector> = Api::all(client);
    let odd = json!({
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "StatusCollector",
        "metadata": { "name": "odd" },
        "spec": { "select": [{ "name": "a", "def": null }] },
    });
    let stored = collectors.patch("odd", &PatchParams::apply("validation"), &Patch::Apply(&odd)).await?;
    assert_eq!(stored.spec.select[0].def, None);
    assert!(collectors.list(&ListParams::default()).await?.items.iter().any(|one| one.spec == stored.spec));
    Ok(())
}

/// What the schema allows is within the cost budget of the rules.
#[tokio::test]
async fn the_largest_application_is_accepted() -> Result<()> {
    let cluster = crate::cluster().await?;
    let namespace = cluster.namespace("largest").await?;
    let apps: Api<api::Application> = Api::namespaced(cluster.admin().client().await?, &namespace);
    let long = |length: usize, number: usize| format!("{}{number:03}", "a".repeat(length - 3));
    let components = |names: usize| {
        let component = |number| {
            let (kind, name) = (format!("K{}", "a".repeat(62)), long(253, number % names));
            (long(253, number), json!({"group": "a".repeat(253), "kind": kind, "name": name}))
        };
        Value::Object((0..100).map(component).collect())
    };
    let app = |name: &str, names: usize| {
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "components": components(names)});
        serde_json::from_value::<api::Application>(json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "metadata": {"name": name}, "spec": spec,
        }))
    };
    apps.create(&PostParams::default(), &app("largest", 100)?).await?;
    let Err(kube::Error::Api(status)) = apps.create(&PostParams::default(), &app("twice", 99)?).await else {
        bail!("a duplicate component is accepted");
    };
    ensure!(status.message.contains("duplicate component: "), "{status:?}");
    Ok(())
}
