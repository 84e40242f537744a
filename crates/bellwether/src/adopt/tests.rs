//! Plans, and what speaks against them.

use bellwether_api::ApplicationSpec;
use bellwether_engine::{GroupKind, NamespacedName};
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    plan::{Existing, Marks, Plan, RequestedObject},
    problem::Problem,
    render::Others,
    request::AdoptRequest,
};
use crate::cli::{Adopt, Cli, Command};
use bellwether_terminal::Screen;
use clap::Parser as _;

const SCREEN: Screen = Screen { colours: false, width: None };

fn command(arguments: &[&str]) -> Adopt {
    let words = ["bellwether", "adopt"].iter().chain(arguments);
    match Cli::try_parse_from(words).expect("it is a command").command {
        Command::Adopt(command) => command,
        _ => panic!("it is another command"),
    }
}

fn wish(arguments: &[&str]) -> Result<AdoptRequest, Vec<Problem>> {
    AdoptRequest::of(&command(arguments), "shop")
}

fn sought(group: &str, kind: &str, name: &str, marks: Option<Value>) -> RequestedObject {
    let marks = marks.map(|metadata| Marks::of_json(json!({ "metadata": metadata })).expect("metadata"));
    RequestedObject { kind: GroupKind::new(group, kind), name: NamespacedName::new("shop", name), marks }
}

/// A Deployment.
fn web(metadata: Value) -> RequestedObject {
    sought("apps", "Deployment", "web", Some(metadata))
}

fn plan(
    wish: &AdoptRequest,
    objects: Vec<RequestedObject>,
    existing: Option<&Existing>,
) -> Result<Plan, Vec<Problem>> {
    Plan::make(wish, objects, existing, "in namespace shop")
}

/// What speaks against it, a sentence each, with the exit code.
fn objections(arguments: &[&str], object: RequestedObject) -> Vec<(bool, String)> {
    let problems =
        wish(arguments).and_then(|wish| plan(&wish, vec![object], None)).expect_err("it cannot be done");
    problems.into_iter().map(|problem| (problem.is_input, problem.text)).collect()
}

#[test]
fn labels_and_annotations_are_added_and_the_application_names_all() {
    let wish = wish(&["wordpress", "-", "--type", "blog"]).expect("it makes sense");
    let objects = vec![
        web(json!({ "labels": { "app": "web" } })),
        sought("", "Service", "web", Some(json!({ "annotations": { "kubernetes.io/application": "" } }))),
        sought(
            "",
            "ConfigMap",
            "settings",
            Some(json!({
                "labels": { "app.kubernetes.io/part-of": "wordpress" },
                "annotations": { "kubernetes.io/application": "wordpress" },
            })),
        ),
    ];
    let plan = plan(&wish, objects, None).expect("it can be done");
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
    let told = "\
Application shop/wordpress of 3 objects:

  Deployment.apps web
    label app.kubernetes.io/part-of: none → wordpress
    annotation kubernetes.io/application: none → wordpress
  Service web
    label app.kubernetes.io/part-of: none → wordpress
    annotation kubernetes.io/application: \"\" → wordpress
  ConfigMap settings
    has its labels and its annotation already
  Application wordpress
    created, with the selector app.kubernetes.io/part-of=wordpress
    and the components settings, web-deployment, web-service

It will own these objects: whoever deletes Application wordpress deletes these objects with it.
";
    assert_eq!(plan.told(&Others::default(), SCREEN), told);
}

#[rstest]
#[case::of_another(
    &["wordpress", "-"],
    web(json!({ "annotations": { "kubernetes.io/application": "blog" } })),
    &[(false, "Deployment.apps \"web\" was handed over to Application \"blog\" already: leave it out, or take it back with \
               kubectl annotate deployment.apps/web -n shop kubernetes.io/application-")],
)]
#[case::other_labels(
    &["wordpress", "-", "--selector", "app=wordpress,tier=front"],
    web(json!({ "labels": { "app": "web", "tier": "back" } })),
    &[(false, "Deployment.apps \"web\" has the label app=web, and would have to have app=wordpress: whoever selects it by \
               that label would lose it, so choose a label with --selector that it has or has not yet"),
      (false, "Deployment.apps \"web\" has the label tier=back, and would have to have tier=front: whoever selects it by \
               that label would lose it, so choose a label with --selector that it has or has not yet")],
)]
#[case::absent(
    &["wordpress", "-"],
    sought("apps", "Deployment", "web", None),
    &[(false, "there is no Deployment.apps \"web\" in namespace shop: create it first, or leave it out")],
)]
#[case::going(
    &["wordpress", "-"],
    web(json!({ "deletionTimestamp": "2026-11-14T12:00:00Z" })),
    &[(false, "Deployment.apps \"web\" is being deleted: leave it out")],
)]
#[case::of_the_cluster(
    &["wordpress", "-"],
    RequestedObject { name: NamespacedName::new("", "web"), ..sought("", "Node", "web", None) },
    &[(false, "Node \"web\" is in no namespace, and an Application has members in its own only: leave it out")],
)]
#[case::no_label(
    &["wordpress", "-", "--selector", "app"],
    web(json!({})),
    &[(true, "--selector \"app\" is no label: write KEY=VALUE, such as app=wordpress")],
)]
#[case::two_values(
    &["wordpress", "-", "--selector", "app=a,app=b"],
    web(json!({})),
    &[(true, "--selector asks for app=a and for app=b, and no object can have both: give one of them")],
)]
#[case::no_key(
    &["wordpress", "-", "--selector", "a/b/c=a"],
    web(json!({})),
    &[(true, "there can be no such Application: spec.selector.matchLabels: invalid label key: use at most 63 letters, \
              digits, '-', '_' and '.', starting and ending with a letter or digit, after an optional DNS prefix and '/'")],
)]
#[case::no_value(
    &["wordpress", "-", "--selector", "app=a b"],
    web(json!({})),
    &[(true, "there can be no such Application: spec.selector.matchLabels.app: invalid label value \"a b\": use at most 63 \
              letters, digits, '-', '_' and '.', starting and ending with a letter or digit")],
)]
#[case::no_name(
    &["Word_Press", "-", "--selector", "app=web"],
    web(json!({})),
    &[(true, "there can be no such Application: metadata.name: invalid name \"Word_Press\": use lower-case letters, \
              digits, '-' and '.', starting and ending with a letter or digit")],
)]
#[case::a_name_that_is_no_label(
    &["a234567890b234567890c234567890d234567890e234567890f234567890g234", "-"],
    web(json!({})),
    &[(true, "there can be no such Application: spec.selector.matchLabels.app.kubernetes.io/part-of: must have at most 63 \
              characters, has 64: choose a label with --selector")],
)]
fn what_speaks_against_it(
    #[case] arguments: &[&str],
    #[case] object: RequestedObject,
    #[case] expected: &[(bool, &str)],
) {
    let expected: Vec<_> = expected.iter().map(|(is_input, text)| (*is_input, (*text).to_owned())).collect();
    assert_eq!(objections(arguments, object), expected);
}

/// All of it is said at once.
#[test]
fn several_objections_come_together() {
    let wish = wish(&["wordpress", "-"]).expect("it makes sense");
    let objects = vec![
        web(json!({ "annotations": { "kubernetes.io/application": "blog" } })),
        sought("", "Service", "web", None),
    ];
    assert_eq!(plan(&wish, objects, None).expect_err("it cannot be done").len(), 2);
}

/// What has its own name may look like what was made up for another.
#[test]
fn components_never_share_a_key() {
    let wish = wish(&["wordpress", "-"]).expect("it makes sense");
    let there = || Some(json!({}));
    let objects = vec![
        web(json!({})),
        sought("", "Service", "web", there()),
        sought("serving.knative.dev", "Service", "web", there()),
        sought("", "ConfigMap", "web-deployment", there()),
    ];
    let plan = plan(&wish, objects, None).expect("it can be done");
    let components = plan.manifest["spec"]["components"].as_object().expect("a map");
    let keys: Vec<_> = components.keys().map(String::as_str).collect();
    assert_eq!(keys, ["web-deployment", "web-deployment-2", "web-service", "web-service-2"]);
    assert_eq!(components["web-deployment"], json!({ "kind": "ConfigMap" }));
}

fn existing(spec: &Value) -> Existing {
    let spec: ApplicationSpec = serde_json::from_value(spec.clone()).expect("a spec");
    Existing { spec: Some(spec), uid: "a".to_owned(), is_deleted: false }
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
fn an_application_that_is_there(
    #[case] components: Value,
    #[case] label: &str,
    #[case] more: &[&str],
    #[case] is_it: bool,
) {
    let there = existing(&json!({
        "selector": { "matchLabels": { "app.kubernetes.io/part-of": label } },
        "components": components,
    }));
    let arguments: Vec<_> = ["wordpress", "-"].iter().chain(more).copied().collect();
    let wish = wish(&arguments).expect("it makes sense");
    let marks = json!({
        "labels": { "app.kubernetes.io/part-of": "wordpress" },
        "annotations": { "kubernetes.io/application": "wordpress" },
    });
    let planned = plan(&wish, vec![web(marks)], Some(&there));
    match planned {
        Ok(plan) => assert!(is_it && plan.is_done()),
        Err(problems) => {
            let expected = "Application \"wordpress\" exists already, and selects or names something else: choose another \
                            name, or change it with kubectl edit application/wordpress -n shop";
            assert_eq!((is_it, problems), (false, vec![Problem::refusal(expected.to_owned())]));
        }
    }
}

/// Who lost a label gets it back, and the Application stays as it is.
#[test]
fn an_application_that_is_there_may_miss_something() {
    let there = existing(&json!({
        "selector": { "matchLabels": { "app.kubernetes.io/part-of": "wordpress" } },
        "components": { "web": { "group": "apps", "kind": "Deployment" } },
    }));
    let wish = wish(&["wordpress", "-"]).expect("it makes sense");
    let plan = plan(&wish, vec![web(json!({}))], Some(&there)).expect("it can be done");
    assert!(!plan.creates && !plan.is_done());
    assert!(plan.told(&Others::default(), SCREEN).contains("is there already, and names just these"));
}
