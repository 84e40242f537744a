//! Plans of `bellwether adopt`, and the problems that prevent them.

use bellwether_api::ApplicationSpec;
use bellwether_engine::{GroupKind, NamespacedName};
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    plan::{Existing, Metadata, Plan, RequestedObject},
    problem::Problem,
    render::Others,
    request::AdoptRequest,
};
use crate::cli::{Adopt, Cli, Command};
use bellwether_terminal::Screen;
use clap::Parser as _;

const SCREEN: Screen = Screen { color: false, width: None };

fn command(arguments: &[&str]) -> Adopt {
    let words = ["bellwether", "adopt"].iter().chain(arguments);
    match Cli::try_parse_from(words).expect("valid arguments").command {
        Command::Adopt(command) => command,
        _ => panic!("another command"),
    }
}

fn request(arguments: &[&str]) -> Result<AdoptRequest, Vec<Problem>> {
    AdoptRequest::of(&command(arguments), "shop")
}

fn object(group: &str, kind: &str, name: &str, metadata: Option<Value>) -> RequestedObject {
    let metadata =
        metadata.map(|metadata| Metadata::of_json(json!({ "metadata": metadata })).expect("metadata"));
    RequestedObject { kind: GroupKind::new(group, kind), name: NamespacedName::new("shop", name), metadata }
}

/// The Deployment `web`.
fn web(metadata: Value) -> RequestedObject {
    object("apps", "Deployment", "web", Some(metadata))
}

fn plan(
    request: &AdoptRequest,
    objects: Vec<RequestedObject>,
    existing: Option<&Existing>,
) -> Result<Plan, Vec<Problem>> {
    Plan::make(request, objects, existing, "in namespace shop")
}

/// Each problem, and whether the input is invalid.
fn problems(arguments: &[&str], object: RequestedObject) -> Vec<(bool, String)> {
    let problems =
        request(arguments).and_then(|request| plan(&request, vec![object], None)).expect_err("a problem");
    problems.into_iter().map(|problem| (problem.is_input, problem.text)).collect()
}

#[test]
fn labels_and_annotations_are_added_and_the_application_names_all() {
    let request = request(&["wordpress", "-", "--type", "blog"]).expect("a valid request");
    let objects = vec![
        web(json!({ "labels": { "app": "web" } })),
        object("", "Service", "web", Some(json!({ "annotations": { "kubernetes.io/application": "" } }))),
        object(
            "",
            "ConfigMap",
            "settings",
            Some(json!({
                "labels": { "app.kubernetes.io/part-of": "wordpress" },
                "annotations": { "kubernetes.io/application": "wordpress" },
            })),
        ),
    ];
    let plan = plan(&request, objects, None).expect("a plan");
    assert_eq!(
        plan.manifest,
        json!({
            "apiVersion": "bellwether.dev/v1alpha1",
            "kind": "Application",
            "metadata": { "name": "wordpress", "namespace": "shop" },
            "spec": {
                "type": "blog",
                "selector": { "matchLabels": { "app.kubernetes.io/part-of": "wordpress" } },
                "components": {
                    "settings": { "kind": "ConfigMap" },
                    "web-deployment": { "group": "apps", "kind": "Deployment", "name": "web" },
                    "web-service": { "kind": "Service", "name": "web" },
                },
            },
        })
    );
    let expected = "\
Application shop/wordpress with 3 objects:

  Deployment/web
    label app.kubernetes.io/part-of: <none> → wordpress
    annotation kubernetes.io/application: <none> → wordpress
  Service/web
    label app.kubernetes.io/part-of: <none> → wordpress
    annotation kubernetes.io/application: \"\" → wordpress
  ConfigMap/settings
    no changes
  Application/wordpress
    create
    selector: app.kubernetes.io/part-of=wordpress
    components: settings, web-deployment, web-service

The Application owns the objects: deleting Application wordpress deletes them.
";
    assert_eq!(plan.text(&Others::default(), SCREEN), expected);
}

#[rstest]
#[case::other_application(
    &["wordpress", "-"],
    web(json!({ "annotations": { "kubernetes.io/application": "blog" } })),
    &[(false, "Deployment/web belongs to Application \"blog\" by its annotation kubernetes.io/application. Leave it out, or \
               release it: kubectl annotate deployment.apps/web -n shop kubernetes.io/application-")],
)]
#[case::other_labels(
    &["wordpress", "-", "--selector", "app=wordpress,tier=front"],
    web(json!({ "labels": { "app": "web", "tier": "back" } })),
    &[(false, "Deployment/web has label app=web, but the selector requires app=wordpress. Existing labels are not \
               overwritten. Choose another label with --selector"),
      (false, "Deployment/web has label tier=back, but the selector requires tier=front. Existing labels are not \
               overwritten. Choose another label with --selector")],
)]
#[case::not_found(
    &["wordpress", "-"],
    object("apps", "Deployment", "web", None),
    &[(false, "Deployment/web not found in namespace shop. Create it first, or leave it out")],
)]
#[case::being_deleted(
    &["wordpress", "-"],
    web(json!({ "deletionTimestamp": "2026-11-14T12:00:00Z" })),
    &[(false, "Deployment/web is being deleted. Leave it out")],
)]
#[case::cluster_scoped(
    &["wordpress", "-"],
    RequestedObject { name: NamespacedName::new("", "web"), ..object("", "Node", "web", None) },
    &[(false, "Node/web is cluster-scoped and cannot be a member. Leave it out")],
)]
#[case::selector_without_value(
    &["wordpress", "-", "--selector", "app"],
    web(json!({})),
    &[(true, "invalid --selector \"app\": use KEY=VALUE, e.g. app=wordpress")],
)]
#[case::two_values(
    &["wordpress", "-", "--selector", "app=a,app=b"],
    web(json!({})),
    &[(true, "conflicting values in --selector: app=a and app=b. Use one of them")],
)]
fn problems_of_objects_and_selectors(
    #[case] arguments: &[&str],
    #[case] object: RequestedObject,
    #[case] expected: &[(bool, &str)],
) {
    let expected: Vec<_> = expected.iter().map(|(is_input, text)| (*is_input, (*text).to_owned())).collect();
    assert_eq!(problems(arguments, object), expected);
}

/// The messages after the field are those of the CRD.
#[rstest]
#[case::label_key(&["wordpress", "-", "--selector", "a/b/c=a"], "spec.selector.matchLabels: ", "")]
#[case::label_value(&["wordpress", "-", "--selector", "app=a b"], "spec.selector.matchLabels.app: ", "")]
#[case::name(&["Word_Press", "-", "--selector", "app=web"], "metadata.name: ", "")]
#[case::name_too_long_for_the_default_label(
    &["a234567890b234567890c234567890d234567890e234567890f234567890g234", "-"],
    "spec.selector.matchLabels.app.kubernetes.io/part-of: ",
    ". Choose a label with --selector"
)]
fn invalid_applications(#[case] arguments: &[&str], #[case] field: &str, #[case] way_out: &str) {
    match &*problems(arguments, web(json!({}))) {
        [(true, text)] => {
            assert!(text.starts_with(&format!("invalid Application: {field}")), "{text}");
            assert!(text.ends_with(way_out), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let request = request(&["wordpress", "-"]).expect("a valid request");
    let objects = vec![
        web(json!({ "annotations": { "kubernetes.io/application": "blog" } })),
        object("", "Service", "web", None),
    ];
    assert_eq!(plan(&request, objects, None).expect_err("problems").len(), 2);
}

/// The name of an object may equal the key that was made for another.
#[test]
fn component_keys_are_unique() {
    let request = request(&["wordpress", "-"]).expect("a valid request");
    let metadata = || Some(json!({}));
    let objects = vec![
        web(json!({})),
        object("", "Service", "web", metadata()),
        object("serving.knative.dev", "Service", "web", metadata()),
        object("", "ConfigMap", "web-deployment", metadata()),
    ];
    let plan = plan(&request, objects, None).expect("a plan");
    let components = plan.manifest["spec"]["components"].as_object().expect("a map");
    let keys: Vec<_> = components.keys().map(String::as_str).collect();
    assert_eq!(keys, ["web-deployment", "web-deployment-2", "web-service", "web-service-2"]);
    assert_eq!(components["web-deployment"], json!({ "kind": "ConfigMap" }));
}

fn existing(spec: &Value) -> Existing {
    let spec: ApplicationSpec = serde_json::from_value(spec.clone()).expect("a spec");
    Existing { spec: Some(spec), uid: "a".to_owned(), is_deleting: false }
}

#[rstest]
#[case::the_same(json!({ "web": { "group": "apps", "kind": "Deployment" } }), "wordpress", &[], true)]
#[case::under_another_key(
    json!({ "front": { "group": "apps", "kind": "Deployment", "name": "web" } }), "wordpress", &[], true,
)]
#[case::more(
    json!({ "web": { "group": "apps", "kind": "Deployment" }, "db": { "kind": "Service" } }), "wordpress", &[], false,
)]
#[case::another_group(json!({ "web": { "group": "acme.io", "kind": "Deployment" } }), "wordpress", &[], false)]
#[case::another_selector(json!({ "web": { "group": "apps", "kind": "Deployment" } }), "blog", &[], false)]
#[case::another_type(
    json!({ "web": { "group": "apps", "kind": "Deployment" } }), "wordpress", &["--type", "blog"], false,
)]
fn an_existing_application(
    #[case] components: Value,
    #[case] label: &str,
    #[case] more: &[&str],
    #[case] is_it: bool,
) {
    let existing = existing(&json!({
        "selector": { "matchLabels": { "app.kubernetes.io/part-of": label } },
        "components": components,
    }));
    let arguments: Vec<_> = ["wordpress", "-"].iter().chain(more).copied().collect();
    let request = request(&arguments).expect("a valid request");
    let metadata = json!({
        "labels": { "app.kubernetes.io/part-of": "wordpress" },
        "annotations": { "kubernetes.io/application": "wordpress" },
    });
    let planned = plan(&request, vec![web(metadata)], Some(&existing));
    match planned {
        Ok(plan) => assert!(is_it && plan.is_done()),
        Err(problems) => {
            let expected = "Application \"wordpress\" already exists with another selector, type or components. Choose \
                            another name, or edit it: kubectl edit applications.bellwether.dev/wordpress -n shop";
            assert_eq!((is_it, problems), (false, vec![Problem::refusal(expected.to_owned())]));
        }
    }
}

#[test]
fn kubectl_commands_use_the_same_cluster() {
    let metadata = json!({ "annotations": { "kubernetes.io/application": "blog" } });
    let found = problems(&["wordpress", "-", "--context", "staging"], web(metadata));
    let command = "kubectl annotate deployment.apps/web -n shop --context staging kubernetes.io/application-";
    assert!(found[0].1.ends_with(command), "{found:?}");
}

#[test]
fn an_existing_application_gets_back_an_object_that_lost_its_label() {
    let existing = existing(&json!({
        "selector": { "matchLabels": { "app.kubernetes.io/part-of": "wordpress" } },
        "components": { "web": { "group": "apps", "kind": "Deployment" } },
    }));
    let request = request(&["wordpress", "-"]).expect("a valid request");
    let plan = plan(&request, vec![web(json!({}))], Some(&existing)).expect("a plan");
    assert!(!plan.creates && !plan.is_done());
    assert!(plan.text(&Others::default(), SCREEN).contains("  Application/wordpress\n    no changes\n"));
}
