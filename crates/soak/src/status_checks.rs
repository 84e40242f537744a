//! Checks every published status, with a delay, when all earlier changes have been observed.
//!
//! A status is wrong if its statement about the objects of a kind was not true at any moment at which the
//! controller may have seen them. These moments end with the write of the status and begin with the start of
//! the fault that may have delayed the events of the kind (see `fault_windows`). Each kind has its own
//! moments, because watches of two kinds are not ordered; so has the HealthRule for Widgets. Within a kind,
//! one moment must explain all objects.
//!
//! In addition, `observedGeneration` must match, and the status must be consistent in itself.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use bellwether_engine::GroupKind;
use bellwether_simulation::{
    known::Known,
    object::Object,
    oracle::{Oracle, belongs, counts, readiness},
};
use jiff::Timestamp;
use serde_json::Value as Json;
use tokio::time::sleep;

use crate::{
    alarm::Alarms,
    fault_windows::FaultWindows,
    objects::Kind,
    observer::{Deleted, Observations, Observer, Published, WatchTarget},
    statement::{Statement, condition, kinds},
};

/// The delay of a check if the watches have reached the revision of the status.
const DELAY: Duration = Duration::from_secs(3);

/// The delay of a check otherwise: the watches are connected but idle.
const IDLE_DELAY: Duration = Duration::from_secs(20);

/// After this time a status is skipped.
const DEADLINE: Duration = Duration::from_mins(2);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckCounts {
    pub(crate) statuses: usize,
    /// Not checked, because the observer had missed changes.
    pub(crate) skipped: usize,
}

/// Runs for ever and keeps `result` up to date.
pub(crate) async fn check_statuses(
    observer: Observer,
    windows: FaultWindows,
    alarms: Alarms,
    result: Rc<Cell<CheckCounts>>,
) {
    let mut counts = CheckCounts::default();
    loop {
        sleep(Duration::from_millis(500)).await;
        let mut seen = observer.seen();
        let now = Instant::now();
        while let Some(published) = seen.published.front().cloned() {
            match before(&seen, &published, now) {
                Preceding::NotYetKnown => break,
                Preceding::Known => match check(&seen, &published, &windows) {
                    Ok(()) => counts.statuses += 1,
                    Err(Failure::Skipped) => counts.skipped += 1,
                    Err(Failure::Wrong(what)) => {
                        counts.statuses += 1;
                        alarms.raise(&format!("Application {}: {what}", published.name));
                    }
                },
                Preceding::NeverKnown => counts.skipped += 1,
            }
            seen.published.pop_front();
        }
        while let Some(deleted) = seen.deleted.pop_front_if(|deleted| now - deleted.seen > DELAY * 2) {
            if !is_explained(&seen, &deleted) {
                let object = &deleted.object;
                alarms.raise(&format!(
                    "{} {} was deleted, neither by the load nor by the garbage collector: {}",
                    object.kind,
                    object.name,
                    object.metadata()
                ));
            }
        }
        seen.history.forget(now);
        result.set(counts);
    }
}

enum Failure {
    Wrong(String),
    Skipped,
}

/// Whether all changes before a status have been observed.
enum Preceding {
    Known,
    NotYetKnown,
    NeverKnown,
}

fn before(seen: &Observations, published: &Published, now: Instant) -> Preceding {
    let age = now - published.seen;
    let is_known = |kind: &Kind| {
        let (since, revision) = seen.watched(WatchTarget::Members(*kind));
        let for_long = since.is_some_and(|since| now - since > IDLE_DELAY);
        (revision >= published.revision && age > DELAY) || (age > IDLE_DELAY && for_long)
    };
    if kinds(&published.app).iter().all(is_known) {
        Preceding::Known
    } else if age > DEADLINE {
        Preceding::NeverKnown
    } else {
        Preceding::NotYetKnown
    }
}

/// Checks one status.
fn check(seen: &Observations, published: &Published, windows: &FaultWindows) -> Result<(), Failure> {
    let Published { app, revision, .. } = published;
    let at = seen.history.time_of(*revision).unwrap_or(published.seen).min(published.seen);
    let status = app.status.clone().unwrap_or_default();
    let Some(ready) = condition(&status, "Ready") else {
        return Err(Failure::Wrong("status has no condition Ready".to_owned()));
    };
    if status.observed_generation != app.metadata.generation {
        return Err(Failure::Wrong(format!(
            "observedGeneration is {:?}, generation is {:?}",
            status.observed_generation, app.metadata.generation
        )));
    }
    if condition(&status, "Resolved").is_none_or(|(status, _)| status != "True") {
        let is_so = kinds(app).iter().any(|kind| windows.was_unreadable(*kind, at));
        return match (is_so, ready.0) {
            (true, "False" | "Unknown") => Ok(()),
            (true, _) => Err(Failure::Wrong("Ready=True although a kind cannot be read".to_owned())),
            (false, _) => Err(Failure::Wrong(format!(
                "Resolved is not True ({:?}), but all kinds were readable",
                status.conditions
            ))),
        };
    }
    let listed: Vec<_> = status.objects.iter().map(|it| it.status).collect();
    if ready != readiness(&listed) || status.object_counts != Some(counts(&listed)) {
        let objects: Vec<_> =
            status.objects.iter().map(|it| format!("{}/{} {}", it.kind, it.name, it.status.name())).collect();
        return Err(Failure::Wrong(format!(
            "Ready={ready:?} and counts {:?} do not match the listed objects {objects:?}",
            status.object_counts
        )));
    }
    kinds(app).into_iter().try_for_each(|kind| was_so(seen, published, kind, at, windows))
}

/// Checks that the statement about a kind was true at some moment.
fn was_so(
    seen: &Observations,
    published: &Published,
    kind: Kind,
    at: Instant,
    windows: &FaultWindows,
) -> Result<(), Failure> {
    let Published { name, app, revision, .. } = published;
    let since = windows.since(kind, at);
    let from = seen.history.revision_at(since).min(*revision);
    let status = app.status.clone().unwrap_or_default();
    let published_statement = Statement::published(app, &status, kind);
    let (group_kind, rule_kind) = (kind.api_resource().group_kind(), GroupKind::bellwether("HealthRule"));
    let mut last = None;
    // An `Object` caches the verdict of one rule, so the outer loop is over rules.
    let was_so = seen.history.rules_between(from, *revision).into_iter().any(|rule| {
        let objects = rule.map(|rule| (rule.name.clone(), Rc::clone(rule))).into_iter().collect();
        let rules = Known { listed: true, objects, ..Known::default() };
        let concerns = |object: &Object| belongs(app, object);
        seen.history.was_ever((kind, &name.namespace), (from, *revision), concerns, |known| {
            let kinds = [(group_kind.clone(), known), (rule_kind.clone(), &rules)].into();
            let share = Oracle { kinds, now: Timestamp::now() }.share(app, &group_kind);
            let statement = Statement::from(share);
            let is_so = statement == published_statement;
            last = Some(statement);
            is_so
        })
    });
    if was_so {
        return Ok(());
    }
    if seen.history.has_gap(kind, from, *revision) {
        return Err(Failure::Skipped);
    }
    let last = last.unwrap_or_default();
    let differs = |one: &Statement, other: &Statement| -> Vec<String> {
        let objects = one.objects.iter().filter(|(name, state)| other.objects.get(*name) != Some(*state));
        objects.map(|(name, state)| format!("{name} {}", state.name())).collect()
    };
    Err(Failure::Wrong(format!(
        "revision {revision}: Ready={:?}, {}s {:?}, installed {:?}, missing {:?} was not true at any moment in the {:.1} s \
         since revision {from}; last state: {:?}, installed {:?}, missing {:?}",
        condition(&status, "Ready"),
        kind.name(),
        differs(&published_statement, &last),
        published_statement.installed,
        published_statement.missing,
        (at - since).as_secs_f64(),
        differs(&last, &published_statement),
        last.installed,
        last.missing,
    )))
}

/// Whether the garbage collector was right to delete an object: all its owners were Applications that are
/// deleted.
fn is_explained(seen: &Observations, deleted: &Deleted) -> bool {
    let is_gone = |uid: &str| {
        seen.gone.contains(uid) || seen.applications.values().any(|app| app.uid() == uid && app.is_deleting())
    };
    let owners = deleted.object.metadata()["ownerReferences"].as_array();
    let is_application = |owner: &Json| {
        owner["kind"] == "Application"
            && owner["apiVersion"].as_str().is_some_and(|version| version.starts_with("bellwether.dev/"))
    };
    owners.is_some_and(|owners| {
        let is_explained = |owner: &Json| is_application(owner) && owner["uid"].as_str().is_some_and(is_gone);
        !owners.is_empty() && owners.iter().all(is_explained)
    })
}

#[cfg(test)]
mod tests {
    use bellwether_api::State;
    use bellwether_engine::NamespacedName;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::{objects::GROUP, rules};

    /// A Widget that is Ready without a rule and Failed with the first rule.
    fn widget(name: &str, app: &str) -> Object {
        Object::new(json!({
            "apiVersion": Kind::Widget.api_resource().api_version(), "kind": "Widget",
            "metadata": { "name": name, "namespace": "team-0", "uid": name, "labels": { "app": app } },
            "status": { "level": 9, "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
    }

    /// The status of an Application that selects `app: shop-0`, and names the Widget `widget-0`.
    fn published(objects: &[(&str, State)], missing: &[&str], at: Instant) -> Published {
        let states: Vec<_> = objects.iter().map(|(_, state)| *state).collect();
        let condition = |kind: &str, (status, reason): (&str, &str)| {
            let since = "2026-11-14T10:00:00Z";
            json!({ "type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": since })
        };
        let object = |(name, state): &(&str, State)| json!({ "name": name, "group": GROUP, "kind": "Widget", "status": state, "progress": 0 });
        let app = Object::new(json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application",
            "metadata": { "name": "shop-0", "namespace": "team-0", "uid": "shop-0", "generation": 1 },
            "spec": {
                "selector": { "matchLabels": { "app": "shop-0" } },
                "components": { "widget-0": { "group": GROUP, "kind": "Widget" } },
            },
            "status": {
                "observedGeneration": 1,
                "conditions": [condition("Ready", readiness(&states)), condition("Resolved", ("True", ""))],
                "objects": objects.iter().map(object).collect::<Vec<_>>(),
                "objectCounts": counts(&states),
                "missing": missing,
            },
        }));
        let application = app.application().expect("a valid Application").clone();
        Published { name: NamespacedName::new("team-0", "shop-0"), app: application, revision: 20, seen: at }
    }

    #[rstest]
    #[case::as_it_was(0, &[("widget-0", State::Missing), ("widget-1", State::Ready)], &["widget-0"], true)]
    #[case::by_the_rule(1, &[("widget-0", State::Missing), ("widget-1", State::Failed)], &["widget-0"], true)]
    #[case::not_by_the_rule(1, &[("widget-0", State::Missing), ("widget-1", State::Ready)], &["widget-0"], false)]
    #[case::in_another_state(0, &[("widget-0", State::Missing), ("widget-1", State::Failed)], &["widget-0"], false)]
    #[case::as_it_was_long_before(0, &[("widget-0", State::Missing)], &["widget-0"], false)]
    #[case::with_the_member_of_another(
        0, &[("widget-0", State::Missing), ("widget-1", State::Ready), ("widget-2", State::Ready)], &["widget-0"], false
    )]
    #[case::without_what_is_missing(0, &[("widget-1", State::Ready)], &[], false)]
    #[case::without_saying_what_is_missing(
        0, &[("widget-0", State::Missing), ("widget-1", State::Ready)], &[], false
    )]
    fn a_status_must_have_been_true(
        #[case] rule: usize,
        #[case] objects: &[(&str, State)],
        #[case] missing: &[&str],
        #[case] is_right: bool,
    ) {
        let (begun, mut seen) = (Instant::now(), Observations::new(&Alarms::default()));
        let at = begun + Duration::from_secs(20);
        seen.history.tick(10, begun);
        seen.history.tick(20, at);
        for object in [widget("widget-1", "shop-0"), widget("widget-2", "shop-1")] {
            seen.history.note(Kind::Widget, &object.name.clone(), 10, Some(Rc::new(object)));
        }
        if rule > 0 {
            seen.history.note_rule(10, Some(Rc::new(Object::new(rules::written(rule)))));
        }
        match check(&seen, &published(objects, missing, at), &FaultWindows::default()) {
            Ok(()) => assert!(is_right, "the error was not found"),
            Err(Failure::Wrong(what)) => assert!(!is_right, "{what}"),
            Err(Failure::Skipped) => panic!("the status was skipped"),
        }
    }
}
