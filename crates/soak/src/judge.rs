//! Judges all that is published, a little later, when all is known that was before it.
//!
//! A status is wrong if what it says of the objects of a kind was not so at any moment at which the controller can have seen
//! them. Those moments end with the write itself and begin with the trouble that may have kept news of the kind back (see
//! `trouble`). Each kind has moments of its own, because nobody can see two kinds at the same one; so has the rule for
//! Widgets. Within a kind, all objects must be as they were at one and the same moment.
//!
//! Besides, a status must be about the generation that it is stored with, and agree with itself.

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
    cast::Kind,
    statement::{Statement, condition, kinds},
    trouble::Troubles,
    witness::{Deleted, Published, Seen, Subject, Witness},
};

/// So long after it was seen, what was written before has been seen too.
const LATER: Duration = Duration::from_secs(3);

/// So long, if nothing has happened since that proves it.
const MUCH_LATER: Duration = Duration::from_secs(20);

/// After so long it is not judged any more.
const TOO_LATE: Duration = Duration::from_mins(2);

/// How statuses were judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Judged {
    /// So many were judged,
    pub(crate) statuses: usize,
    /// and so many could not be, because the witness had missed something itself.
    pub(crate) unclear: usize,
}

/// Judges for ever, and keeps `result` up to date.
pub(crate) async fn judge(witness: Witness, troubles: Troubles, alarms: Alarms, result: Rc<Cell<Judged>>) {
    let mut judged = Judged::default();
    loop {
        sleep(Duration::from_millis(500)).await;
        let mut seen = witness.seen();
        let now = Instant::now();
        while let Some(published) = seen.published.front().cloned() {
            match before(&seen, &published, now) {
                Before::NotYetKnown => break,
                Before::Known => match wrong(&seen, &published, &troubles) {
                    Ok(()) => judged.statuses += 1,
                    Err(Finding::Unclear) => judged.unclear += 1,
                    Err(Finding::Wrong(what)) => {
                        judged.statuses += 1;
                        alarms.raise(&format!("Application {} {what}", published.name));
                    }
                },
                Before::NeverKnown => judged.unclear += 1,
            }
            seen.published.pop_front();
        }
        while let Some(deleted) = seen.deleted.pop_front_if(|deleted| now - deleted.seen > LATER * 2) {
            if !is_explained(&seen, &deleted) {
                let object = &deleted.object;
                alarms.raise(&format!(
                    "{} {} was deleted, and nobody asked for it: {}",
                    object.kind,
                    object.name,
                    object.metadata()
                ));
            }
        }
        seen.chronicle.forget(now);
        result.set(judged);
    }
}

/// What is found.
enum Finding {
    Wrong(String),
    Unclear,
}

/// What was before a status.
enum Before {
    Known,
    NotYetKnown,
    NeverKnown,
}

fn before(seen: &Seen, published: &Published, now: Instant) -> Before {
    let age = now - published.seen;
    let is_known = |kind: &Kind| {
        let (since, revision) = seen.heard(Subject::Members(*kind));
        let for_long = since.is_some_and(|since| now - since > MUCH_LATER);
        (revision >= published.revision && age > LATER) || (age > MUCH_LATER && for_long)
    };
    if kinds(&published.app).iter().all(is_known) {
        Before::Known
    } else if age > TOO_LATE {
        Before::NeverKnown
    } else {
        Before::NotYetKnown
    }
}

/// What is wrong with a status.
fn wrong(seen: &Seen, published: &Published, troubles: &Troubles) -> Result<(), Finding> {
    let Published { app, revision, .. } = published;
    let at = seen.chronicle.time_of(*revision).unwrap_or(published.seen).min(published.seen);
    let status = app.status.clone().unwrap_or_default();
    let Some(ready) = condition(&status, "Ready") else {
        return Err(Finding::Wrong("has a status without the condition Ready".to_owned()));
    };
    if status.observed_generation != app.metadata.generation {
        return Err(Finding::Wrong(format!(
            "has a status about generation {:?} while it is at {:?}",
            status.observed_generation, app.metadata.generation
        )));
    }
    if condition(&status, "Resolved").is_none_or(|(status, _)| status != "True") {
        let is_so = kinds(app).iter().any(|kind| troubles.was_unreadable(*kind, at));
        return match (is_so, ready.0) {
            (true, "False" | "Unknown") => Ok(()),
            (true, _) => Err(Finding::Wrong("is ready although a kind cannot be read".to_owned())),
            (false, _) => Err(Finding::Wrong(format!(
                "says that a kind cannot be read ({:?}), and all could be",
                status.conditions
            ))),
        };
    }
    let listed: Vec<_> = status.objects.iter().map(|it| it.status).collect();
    if ready != readiness(&listed) || status.object_counts != Some(counts(&listed)) {
        let objects: Vec<_> =
            status.objects.iter().map(|it| format!("{}/{} {}", it.kind, it.name, it.status.name())).collect();
        return Err(Finding::Wrong(format!(
            "is {ready:?} and counts {:?}, and lists {objects:?}",
            status.object_counts
        )));
    }
    kinds(app).into_iter().try_for_each(|kind| was_so(seen, published, kind, at, troubles))
}

/// Whether what a status says of a kind was ever so.
fn was_so(
    seen: &Seen,
    published: &Published,
    kind: Kind,
    at: Instant,
    troubles: &Troubles,
) -> Result<(), Finding> {
    let Published { name, app, revision, .. } = published;
    let since = troubles.since(kind, at);
    let from = seen.chronicle.revision_at(since).min(*revision);
    let status = app.status.clone().unwrap_or_default();
    let says = Statement::published(app, &status, kind);
    let (group_kind, rule_kind) = (kind.place().group_kind(), GroupKind::own("HealthRule"));
    let mut last = None;
    // An object keeps the verdict of one rule, so the moments are gone through for each rule.
    let was_so = seen.chronicle.rules_between(from, *revision).into_iter().any(|rule| {
        let objects = rule.map(|rule| (rule.name.clone(), Rc::clone(rule))).into_iter().collect();
        let rules = Known { listed: true, objects, ..Known::default() };
        let concerns = |object: &Object| belongs(app, object);
        seen.chronicle.was_ever((kind, &name.namespace), (from, *revision), concerns, |known| {
            let kinds = [(group_kind.clone(), known), (rule_kind.clone(), &rules)].into();
            let share = Oracle { kinds, now: Timestamp::now() }.share(app, &group_kind);
            let statement = Statement::from(share);
            let is_so = statement == says;
            last = Some(statement);
            is_so
        })
    });
    if was_so {
        return Ok(());
    }
    if seen.chronicle.has_gap(kind, from, *revision) {
        return Err(Finding::Unclear);
    }
    let last = last.unwrap_or_default();
    let differs = |one: &Statement, other: &Statement| -> Vec<String> {
        let objects = one.objects.iter().filter(|(name, state)| other.objects.get(*name) != Some(*state));
        objects.map(|(name, state)| format!("{name} {}", state.name())).collect()
    };
    Err(Finding::Wrong(format!(
        "said at revision {revision} that it is {:?}, and of its {}s {:?}, installed {:?}, missing {:?}, which was never so in \
         {:.1} s since revision {from}; the last was {:?}, installed {:?}, missing {:?}",
        condition(&status, "Ready"),
        kind.name(),
        differs(&says, &last),
        says.installed,
        says.missing,
        (at - since).as_secs_f64(),
        differs(&last, &says),
        last.installed,
        last.missing,
    )))
}

/// Whether the garbage collector had to delete an object: all its owners were Applications, and all are gone.
fn is_explained(seen: &Seen, deleted: &Deleted) -> bool {
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
    use crate::{cast::GROUP, rules};

    /// A Widget that is ready without a rule, and failed by the first.
    fn widget(name: &str, app: &str) -> Object {
        Object::new(json!({
            "apiVersion": Kind::Widget.place().api_version(), "kind": "Widget",
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
        let application = app.application().expect("it is one").clone();
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
        let (begun, mut seen) = (Instant::now(), Seen::new(&Alarms::default()));
        let at = begun + Duration::from_secs(20);
        seen.chronicle.tick(10, begun);
        seen.chronicle.tick(20, at);
        for object in [widget("widget-1", "shop-0"), widget("widget-2", "shop-1")] {
            seen.chronicle.note(Kind::Widget, &object.name.clone(), 10, Some(Rc::new(object)));
        }
        if rule > 0 {
            seen.chronicle.note_rule(10, Some(Rc::new(Object::new(rules::written(rule)))));
        }
        match wrong(&seen, &published(objects, missing, at), &Troubles::default()) {
            Ok(()) => assert!(is_right, "it was not found"),
            Err(Finding::Wrong(what)) => assert!(!is_right, "{what}"),
            Err(Finding::Unclear) => panic!("nothing was missed"),
        }
    }
}
