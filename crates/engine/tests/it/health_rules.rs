//! HealthRules: activation, invalid rules, precedence, relists.

use bellwether_api::State;
use bellwether_engine::{Cluster, ClusterEvent, DiscoveredKinds, Effect, Event, ServedResource, Unreadable};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    against_oracle::compare,
    objects::{self, app, app_of_kinds, deployment, widget},
    world::World,
};

const RULE: &str = "HealthRule.bellwether.dev";

fn rule(name: &str, created: &str, when: &str, state: &str) -> Value {
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"for": {"group": "acme.io", "kind": "Widget"}, "cel": [{"when": when, "state": state, "reason": "Said"}]},
    })
}

fn always(name: &str, state: &str) -> Value {
    rule(name, "2026-11-14T09:00:00Z", "metadata.name != ''", state)
}

/// The state of the Widget, after a comparison with the oracle.
fn state(world: &World) -> State {
    compare(world);
    world.status("web").objects.iter().find(|it| it.name == "one").expect("it is listed").status
}

/// The kinds that were relisted since.
fn listed_since(world: &World, before: usize) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Follow { kind, .. } => Some(kind.to_string()),
        _ => None,
    };
    world.effects[before..].iter().filter_map(kind).collect()
}

/// A rule overrides all others while it exists, and only its kind is relisted.
#[test]
fn a_rule_is_created_changed_and_deleted() {
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True")), deployment("two", 3, 3)]);
    assert_eq!(state(&world), State::Ready);
    let before = world.effects.len();
    world.put(always("widgets", "Failed"));
    assert_eq!(state(&world), State::Failed);
    assert_eq!(world.status("web").objects[0].rule.as_deref(), Some("user/widgets"));
    assert_eq!(world.condition(RULE, "widgets", "Valid"), "True Active: The rule is active");
    world.put(always("widgets", "Suspended"));
    assert_eq!(state(&world), State::Suspended);
    world.delete(RULE, "widgets");
    assert_eq!(state(&world), State::Ready);
    assert_eq!(listed_since(&world, before), ["Widget.acme.io"; 3]);
}

/// A new valid rule gets no Event, a new invalid rule gets a Warning at once.
#[test]
fn only_an_invalid_rule_is_an_event_from_the_start() {
    let created = "2026-11-14T10:00:00Z";
    let mut world = World::with([rule("good", created, "metadata.name != ''", "Ready")]);
    assert_eq!(world.transitions, []);
    world.delete(RULE, "good");
    world.put(rule("bad", created, "metadata.name !=", "Ready"));
    world.put(rule("bad", created, "metadata.name != 'x'", "Ready"));
    let transitions: Vec<_> =
        world.transitions.iter().map(|it| (&*it.object.name.name, it.to, it.good)).collect();
    assert_eq!(transitions, [("bad", "False", false), ("bad", "True", true)]);
}

/// The condition Valid has the position of the error, and its kind is Unknown.
#[test]
fn an_invalid_rule_reports_the_position() {
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True"))]);
    let before = world.effects.len();
    world.put(rule("widgets", "2026-11-14T09:00:00Z", "status.phase ==", "Failed"));
    let valid = world.condition(RULE, "widgets", "Valid");
    assert!(
        valid.starts_with("False Invalid: spec.cel[0].when: ") && valid.contains("line 1, column 16"),
        "{valid}"
    );
    assert_eq!(state(&world), State::Unknown, "no weaker rule takes its place");
    assert_eq!(world.status("web").objects[0].reason.as_deref(), Some("RuleInvalid"));
    assert_eq!(listed_since(&world, before), ["Widget.acme.io"]);
    world.put(always("widgets", "Failed"));
    assert_eq!(world.condition(RULE, "widgets", "Valid"), "True Active: The rule is active");
    assert_eq!(state(&world), State::Failed);
}

/// The older rule wins; the other one names it in its condition.
#[test]
fn the_older_of_two_rules_takes_precedence() {
    let younger = rule("a", "2026-11-14T09:30:00Z", "metadata.name != ''", "Failed");
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True")), younger]);
    assert_eq!(state(&world), State::Failed);
    world.put(always("b", "Suspended"));
    assert_eq!(state(&world), State::Suspended);
    let valid = world.condition(RULE, "a", "Valid");
    assert!(
        valid.starts_with("False Overridden: overridden by HealthRule/b") && valid.contains("Widget.acme.io"),
        "{valid}"
    );
    world.delete(RULE, "b");
    assert_eq!(world.condition(RULE, "a", "Valid"), "True Active: The rule is active");
    assert_eq!(state(&world), State::Failed);
    let transitions: Vec<_> =
        world.transitions.iter().filter(|it| it.subject == "Valid").map(|it| it.good).collect();
    assert_eq!(transitions, [false, true], "it was overridden, and is active again");
}

#[test]
fn a_restart_writes_no_rule_status() {
    let broken = rule("broken", "2026-11-14T09:30:00Z", "(", "Failed");
    let mut world =
        World::with([app_of_kinds("web"), widget("one", None), always("widgets", "Failed"), broken]);
    let writes = world.writes.len();
    world.restart();
    world.settle();
    assert_eq!(world.writes.len(), writes);
    assert_eq!(state(&world), State::Failed);
}

/// An edit that makes a rule invalid does not turn red into green.
#[test]
fn the_last_valid_version_of_a_rule_stays_in_force() {
    let widgets = || [app_of_kinds("web"), widget("one", Some("True"))];
    let mut world = World::with(widgets());
    world.put(always("widgets", "Failed"));
    let before = world.effects.len();
    world.put(rule("widgets", "2026-11-14T09:00:00Z", "status.phase ==", "Failed"));
    let object = |world: &World| world.status("web").objects[0].clone();
    assert_eq!(object(&world).status, State::Failed);
    let valid = world.condition(RULE, "widgets", "Valid");
    assert!(
        valid.starts_with("False LastValidInForce: spec.cel[0].when: ")
            && valid.ends_with("; the last valid version stays in force"),
        "{valid}"
    );
    assert_eq!(listed_since(&world, before), [""; 0]);

    // A controller that starts reads the last valid version from the status.
    world.restart();
    world.settle();
    assert_eq!(object(&world).status, State::Failed);
    assert_eq!(world.condition(RULE, "widgets", "Valid"), valid);
    let edit_while_down = |world: &mut World, operator: &str| {
        let (kind, name) = objects::key(RULE, "widgets");
        world.server.edit(&kind, &name, |rule| {
            rule["spec"]["cel"][0]["when"] = format!("status.phase {operator}").into();
        });
    };
    edit_while_down(&mut world, ">");
    world.restart();
    world.settle();
    assert_eq!(object(&world).status, State::Failed);

    // A version that no controller has seen may have been valid.
    edit_while_down(&mut world, "<");
    edit_while_down(&mut world, "<=");
    world.restart();
    world.settle();
    assert_eq!(
        (object(&world).status, object(&world).reason.as_deref()),
        (State::Unknown, Some("RuleInvalid"))
    );
    assert!(world.condition(RULE, "widgets", "Valid").starts_with("False Invalid: "));
    let (kind, name) = objects::key(RULE, "widgets");
    assert!(world.server.get(&kind, &name).is_some_and(|rule| rule["status"].get("lastValidSpec").is_none()));
    world.put(always("widgets", "Suspended"));
    assert_eq!(state(&world), State::Suspended);

    // The invalid edit also changed the target.
    world.edit(RULE, "widgets", |rule| {
        rule["spec"]["for"] = json!({"group": "apps", "kind": "Deployment"});
        rule["spec"]["cel"][0]["when"] = "(".into();
    });
    world.put(deployment("front", 3, 3));
    let states: Vec<_> = world.status("web").objects.into_iter().map(|it| (it.kind, it.status)).collect();
    let expected = [("Deployment".to_owned(), State::Unknown), ("Widget".to_owned(), State::Suspended)];
    assert_eq!(states, expected);
    assert!(world.condition(RULE, "widgets", "Valid").starts_with("False Invalid: "));
    world.delete(RULE, "widgets");
    assert_eq!(state(&world), State::Ready);
}

/// Without the right to read rules, no verdict is certain, except that of a terminating object.
#[rstest]
#[case::forbidden(
    Unreadable::Forbidden { resource: "healthrules".into() },
    "forbidden; grant get, list and watch on healthrules.bellwether.dev, or start Bellwether with --without-health-rules"
)]
#[case::failing(
    Unreadable::Failing { why: "overloaded".into() },
    "API server error: overloaded, or start Bellwether with --without-health-rules"
)]
fn rules_that_cannot_be_read(
    #[case] why: Unreadable,
    #[case] resolved: &str,
    #[values(false, true)] restart: bool,
) {
    let mut world = World::with([
        app_of_kinds("web"),
        widget("one", Some("True")),
        deployment("front", 3, 3),
        always("widgets", "Failed"),
    ]);
    assert_eq!(state(&world), State::Failed);
    world.unreadable(RULE, Some(why));
    if restart {
        world.restart();
    }
    world.settle();
    assert_eq!(state(&world), State::Unknown);
    let status = world.status("web");
    assert!(status.objects.iter().all(|it| it.reason.as_deref() == Some("RulesUnreadable")), "{status:?}");
    let ready = world.of_app("web", "Ready");
    assert!(ready.starts_with("Unknown ComponentsUnknown: "), "{ready}");
    assert_eq!(
        world.of_app("web", "Resolved"),
        format!("False RulesUnreadable: HealthRule.bellwether.dev: {resolved}")
    );
    assert!(world.of_app("web", "Settled").starts_with("True "));
    world.edit("Deployment.apps", "front", |it| {
        it["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into();
    });
    assert!(world.of_app("web", "Ready").starts_with("False ComponentsTerminating: Deployment/front: "));
    world.delete("Deployment.apps", "front");
    world.unreadable(RULE, None);
    world.settle();
    assert_eq!(state(&world), State::Failed);
    assert!(world.of_app("web", "Resolved").starts_with("True "));
}

/// No kind of the Application is relisted with the rules.
#[test]
fn rules_can_be_read_again_and_no_kind_is_served() {
    let gone = json!({"componentKinds": [{"group": "no.where", "kind": "Gone"}]});
    let mut world = World::with([app("web", &gone)]);
    let before = world.of_app("web", "Resolved");
    world.unreadable(RULE, Some(Unreadable::Failing { why: "overloaded".into() }));
    world.restart();
    world.settle();
    let resolved = world.of_app("web", "Resolved");
    assert!(resolved.contains("HealthRule.bellwether.dev: API server error: overloaded"), "{resolved}");
    // It is reported once that the kind is not served.
    world.held.insert(objects::kind("Gone.no.where"));
    world.unreadable(RULE, None);
    world.settle();
    assert_eq!(world.of_app("web", "Resolved"), before);
}

/// Without the CRD there are no rules, and with the flag none are wanted.
#[test]
fn without_rules() {
    let mut world = World::new();
    world.unreadable(RULE, Some(Unreadable::NotServed));
    let objects = || [app_of_kinds("web"), widget("one", Some("True"))];
    for object in objects() {
        world.server.put(object);
    }
    world.settle();
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");

    let mut world = World::new();
    world.engine = bellwether_engine::Engine::new().without_health_rules();
    world.unreadable(RULE, Some(Unreadable::Forbidden { resource: "healthrules".into() }));
    for object in objects() {
        world.server.put(object);
    }
    world.settle();
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
    assert_eq!(world.of_app("web", "Resolved"), "True AllKindsResolved: All kinds resolved");
}

/// Objects are read in one version: a rule for another one is not in force.
#[test]
fn a_rule_for_a_version_that_is_not_read() {
    let for_version = |version: &str| {
        let mut rule = always("widgets", "Failed");
        rule["spec"]["for"]["version"] = version.into();
        rule
    };
    let mut world = World::with([for_version("v9")]);
    let valid = |world: &World| world.condition(RULE, "widgets", "Valid");
    assert_eq!(valid(&world), "True Active: The rule is active", "before discovery");
    let discover = |world: &mut World| {
        let served = world.server.kinds.clone().into_iter().collect();
        let kinds = DiscoveredKinds { served, ..DiscoveredKinds::default() };
        world.step(Event::Cluster(Cluster::hub(), ClusterEvent::Kinds(kinds.into())));
        world.settle();
    };
    discover(&mut world);
    assert_eq!(
        valid(&world),
        "False VersionNotServed: the rule is for version v9, but Widget.acme.io is served in v2, v1 only: change or \
         remove spec.for.version"
    );
    let writes = world.writes.len();
    world.restart();
    world.settle();
    assert_eq!(world.writes.len(), writes, "before discovery, the stored condition may be right");
    discover(&mut world);
    world.put(for_version("v1"));
    assert_eq!(
        valid(&world),
        "False VersionNotPreferred: the rule is for version v1, but Widget.acme.io is read in version v2, which the \
         cluster prefers: change or remove spec.for.version"
    );
    world.put(for_version("v2"));
    assert_eq!(valid(&world), "True Active: The rule is active");
    let kind = objects::kind("Widget.acme.io");
    let served = world.server.kinds.remove(&kind).expect("it is served");
    discover(&mut world);
    assert_eq!(valid(&world), "True Active: The rule is active", "the kind may come");
    world
        .server
        .kinds
        .insert(kind, ServedResource { version: "v3".into(), versions: ["v3".into()].into(), ..served });
    discover(&mut world);
    assert!(valid(&world).starts_with("False VersionNotServed: "));
}
