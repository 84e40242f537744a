//! Checks of every write, when the API server applies it.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::{Application, Ownership};
use bellwether_engine::{GroupKind, Part, Slot, Transition, Write};
use http::{Method, Request};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    api::RequestEffect,
    combined_checks,
    known::Known,
    object::Object,
    oracle::{Oracle, belongs, is_announced, is_counted, shape},
    past::Past,
    query_checks::ReportedStatuses,
    rollup_checks, rollup_oracle,
    store::Store,
    violation::{Violation, difference},
};

/// The status that a write must have, computed by the oracle from what the controller knew. None if the
/// controller did not know the object.
pub(crate) fn expected(
    views: &BTreeMap<GroupKind, Known>,
    (slot, change): (&Slot, &Write),
    store: &Store,
    now: Timestamp,
) -> Result<Option<Value>, Violation> {
    let (kind, name) = (&slot.object.kind, &slot.object.name);
    let oracle = Oracle { kinds: views.iter().map(|(kind, known)| (kind.clone(), known)).collect(), now };
    if *kind == GroupKind::bellwether("Rollup") {
        return rollup_checks::expected(&oracle, name, change, store);
    }
    let apps = oracle.kinds.get(&GroupKind::bellwether("Application")).map(|known| &known.objects);
    let Some(app) = apps.and_then(|apps| apps.get(name)).and_then(|app| app.application()) else {
        return Ok(None);
    };
    let expected = oracle.status(app);
    must!(expected.is_some(), "{name} is evaluated before all kinds it uses are known");
    Ok(expected)
}

/// What a write is checked against.
pub(crate) struct Context<'a> {
    pub(crate) past: Past<'a>,
    pub(crate) change: &'a Write,
    /// The store's revision when it was sent.
    pub(crate) sent: u64,
    pub(crate) expected: Option<&'a Value>,
    /// When the controller started, by its clock. None if that was set back since.
    pub(crate) began: Option<Timestamp>,
    /// What the controller had answered to queries about the object.
    pub(crate) reported: &'a ReportedStatuses,
}

impl Context<'_> {
    pub(crate) fn check(&self, effect: &RequestEffect) -> Result<(), Violation> {
        match (effect, self.change) {
            (RequestEffect::Changed { before: Some(before), after }, Write::Status { .. }) => {
                self.status(before, after)
            }
            (RequestEffect::Changed { before: Some(before), after }, Write::OwnerReferences { .. }) => {
                self.owners(before, after)
            }
            (RequestEffect::Changed { before: Some(before), after }, Write::SetFields { part, .. }) => {
                combined_checks::fields_set(before, after, *part)
            }
            (RequestEffect::Changed { before: None, after }, Write::Create { .. })
                if after.kind == GroupKind::bellwether("CombinedStatus") =>
            {
                self.combined_status_created(after)
            }
            (RequestEffect::Changed { before: None, after }, Write::Create { .. }) => self.created(after),
            (RequestEffect::Deleted(object), Write::Delete { .. })
                if object.kind == GroupKind::bellwether("CombinedStatus") =>
            {
                self.combined_status_deleted(object)
            }
            (RequestEffect::Deleted(object), Write::Delete { .. }) => self.deleted(object),
            (effect, change) => Err(Violation::new(format!("unexpected effect of {change:?}: {effect:?}"))),
        }
    }

    fn is_in_the_future(&self, time: &Value) -> bool {
        let time = time.as_str().and_then(|time| time.parse::<Timestamp>().ok());
        time.is_some_and(|time| time > self.past.now)
    }

    fn status(&self, before: &Object, after: &Object) -> Result<(), Violation> {
        let name = &before.name;
        must!(
            before.value != after.value,
            "the write of the status of {} {name} changed nothing",
            before.kind
        );
        must!(
            foreign_conditions(before) == foreign_conditions(after),
            "conditions of other writers changed in the status of {name}"
        );
        must!(
            kept(before, after) == kept(after, before),
            "the order of conditions changed in the status of {name}"
        );
        if after.application().is_none() && after.rollup().is_none() {
            return Ok(());
        }
        let status = &after.value["status"];
        let stated = |object: &Object| -> BTreeMap<String, [Value; 2]> {
            let conditions = object.value["status"]["conditions"].as_array().into_iter().flatten();
            let stated = |it: &Value| {
                Some((
                    it["type"].as_str()?.to_owned(),
                    [it["status"].clone(), it["lastTransitionTime"].clone()],
                ))
            };
            conditions.filter_map(stated).collect()
        };
        let earlier = stated(before);
        for (kind, [status, since]) in stated(after) {
            match earlier.get(&kind) {
                // A time in the future, by a clock that was set back since, is corrected.
                Some([_, then]) if self.is_in_the_future(then) => {}
                Some([before, then]) if *before == status => {
                    must!(
                        *then == since,
                        "{kind} of {name} is still {status}, but lastTransitionTime changed to {since}"
                    );
                }
                _ => self.check_transition_time(&kind, &status, &since)?,
            }
        }
        let (observed, generation) = (&status["observedGeneration"], &after.metadata()["generation"]);
        must!(
            observed == generation,
            "the status of {name} has observedGeneration {observed}, want {generation}"
        );
        if let Some(expected) = self.expected {
            let actual = if after.rollup().is_some() {
                rollup_oracle::shape(status, expected)
            } else {
                shape(status, expected)
            };
            must!(
                actual == *expected,
                "the status of {name} differs from the oracle:{}",
                difference(&actual, expected)
            );
        }
        if let Some(rollup) = after.rollup().filter(|_| status["health"] == "Healthy") {
            return self.past.is_healthy(rollup);
        }
        let Some(app) = after.application() else { return Ok(()) };
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions.filter(|it| it["type"] == "Ready").any(|it| it["status"] == "True");
        if is_ready { self.past.is_ready(app) } else { Ok(()) }
    }

    /// Checks `lastTransitionTime`: not before the controller first reported the new status to a query, and
    /// not after now. Skipped if its clock was set back. The first report counts, not the last: a component
    /// that reports a time in the future can make damping hold back a transition that a query already showed.
    fn check_transition_time(&self, kind: &str, status: &Value, since: &Value) -> Result<(), Violation> {
        let Some(began) = self.began else { return Ok(()) };
        let reported =
            self.reported.get(kind).into_iter().flatten().find(|(other, _)| json!(other) == *status);
        let (first, last) = (reported.map_or(began, |(_, since)| *since), self.past.now);
        let actual: Option<Timestamp> = since.as_str().and_then(|since| since.parse().ok());
        // Conditions have whole seconds.
        let is_right = actual.is_some_and(|at| first.as_second() <= at.as_second() && at <= last);
        must!(
            is_right,
            "{kind} became {status} between {first} and {last}, but lastTransitionTime is {since}"
        );
        Ok(())
    }

    fn owners(&self, before: &Object, after: &Object) -> Result<(), Violation> {
        let (kind, name) = (&before.kind, &before.name);
        let owners =
            |object: &Object| object.metadata()["ownerReferences"].as_array().cloned().unwrap_or_default();
        let (old, new) = (owners(before), owners(after));
        must!(old != new, "the write of the owner references of {kind} {name} changed nothing");
        let mut bare = [before, after].map(|object| object.value.clone());
        for value in &mut bare {
            let metadata = value["metadata"].as_object_mut().into_iter();
            metadata.for_each(|metadata| {
                metadata.remove("ownerReferences");
                metadata.remove("resourceVersion");
            });
        }
        must!(bare[0] == bare[1], "a write of the owner references of {kind} {name} changed other fields");
        let foreign = |owners: &[Value]| -> Vec<Value> {
            owners.iter().filter(|owner| owner["kind"] != "Application").cloned().collect()
        };
        must!(foreign(&old) == foreign(&new), "foreign owner references of {kind} {name} changed");
        for added in new.iter().filter(|owner| !old.iter().any(|other| other["uid"] == owner["uid"])) {
            let uid = added["uid"].as_str().unwrap_or_default();
            must!(
                self.was_true(
                    uid,
                    |app, stays| stays && owns(app, before),
                    self.past.knew(&GroupKind::bellwether("Application"))
                ),
                "{kind} {name} was adopted by {uid}, which must not own it"
            );
            self.was_announced(uid, kind)?;
            // The attempt checks that the owner exists after it was sent.
            must!(
                self.was_true(uid, |_, stays| stays, self.sent),
                "{kind} {name} was adopted by {uid}, which was deleted before"
            );
        }
        for removed in old.iter().filter(|owner| !new.iter().any(|other| other["uid"] == owner["uid"])) {
            let uid = removed["uid"].as_str().unwrap_or_default();
            must!(uid != "f1", "the foreign owner of {kind} {name} was removed");
            must!(
                self.was_true(
                    uid,
                    |app, stays| !stays || !owns(app, before),
                    self.past.knew(&GroupKind::bellwether("Application"))
                ),
                "{kind} {name} was released by {uid}, which must own it"
            );
        }
        Ok(())
    }

    /// Checks that `status.ownedKinds` of an Application named the kind before an object of it is owned.
    fn was_announced(&self, uid: &str, kind: &GroupKind) -> Result<(), Violation> {
        must!(
            self.was_true(
                uid,
                |app, _| is_announced(app, kind),
                self.past.knew(&GroupKind::bellwether("Application"))
            ),
            "{uid} owns a {kind}, but its status.ownedKinds does not name that kind"
        );
        Ok(())
    }

    /// Whether `holds` was true of an Application at some point since a revision. Its second argument is
    /// false if the Application was deleted or being deleted.
    fn was_true(&self, uid: &str, holds: impl Fn(&Application, bool) -> bool, since: u64) -> bool {
        let entries: Vec<_> = self.past.store.log.iter().filter(|entry| entry.object.uid() == uid).collect();
        let first = entries.partition_point(|entry| entry.revision <= since).saturating_sub(1);
        entries[first.min(entries.len())..].iter().any(|entry| {
            let stays = !entry.gone && !entry.object.is_deleting();
            entry.object.application().is_some_and(|app| holds(app, stays))
        })
    }

    fn deleted(&self, pod: &Object) -> Result<(), Violation> {
        must!(pod.is_check(), "{} {} was deleted, but is not a health-check Pod", pod.kind, pod.name);
        let uid = pod.owners().next().unwrap_or_default();
        let asks_for_it = |app: &Application| {
            app.spec
                .health_check
                .as_ref()
                .is_some_and(|check| json!(check.template.spec) == pod.value["spec"])
        };
        let has_ended = ["Succeeded", "Failed"].iter().any(|phase| pod.value["status"]["phase"] == *phase);
        must!(
            has_ended
                || self.was_true(
                    uid,
                    |app, stays| !stays || !asks_for_it(app),
                    self.past.knew(&GroupKind::bellwether("Application"))
                ),
            "{} was deleted, but {uid} needs it",
            pod.name
        );
        Ok(())
    }

    fn created(&self, after: &Object) -> Result<(), Violation> {
        must!(after.is_check(), "{} {} was created, but is not a health-check Pod", after.kind, after.name);
        let uid = after.owners().next().unwrap_or_default();
        let has_check = |app: &Application, stays: bool| stays && app.spec.health_check.is_some();
        must!(
            self.was_true(uid, has_check, self.past.knew(&GroupKind::bellwether("Application"))),
            "{} was created for {uid}, which has no health check",
            after.name
        );
        self.was_announced(uid, &GroupKind::pod())
    }
}

/// Number of Events for each transition, by the new value and the type of the Event, per start of a controller. They are not counted over all starts: a
/// controller that restarts and gets a stale list may record a transition that was recorded before.
#[derive(Debug, Default)]
pub(crate) struct EventCounts(BTreeMap<(Life, Box<str>, Change), usize>);

/// What changed, its new value, and the type of the Event about a state.
type Change = (&'static str, [String; 2]);

/// A controller and its epoch.
type Life = (usize, u64);

impl EventCounts {
    /// Counts an Event and checks that there are not more Events than transitions in the store.
    pub(crate) fn note(
        &mut self,
        life: Life,
        transition: &Transition,
        store: &Store,
    ) -> Result<(), Violation> {
        let Transition { object, uid, subject, good, .. } = transition;
        let is_state = *subject == Transition::STATE;
        let kind = if *good { "Normal" } else { "Warning" };
        let to = [json!(transition.to), if is_state { json!(kind) } else { Value::Null }];
        let events =
            self.0.entry((life, uid.clone(), (*subject, to.clone().map(|it| it.to_string())))).or_default();
        *events += 1;
        let entries = store.log.iter().filter(|entry| *entry.object.uid() == **uid && !entry.gone);
        let (mut transitions, mut before) = (0, [Value::Null, Value::Null]);
        for entry in entries {
            let status = &entry.object.value["status"];
            let stored = if is_state {
                [status["lastEvent"]["state"].clone(), status["lastEvent"]["type"].clone()]
            } else {
                let mut conditions = status["conditions"].as_array().into_iter().flatten();
                let condition = conditions.find(|it| it["type"] == *subject);
                [condition.map(|it| it["status"].clone()).unwrap_or_default(), Value::Null]
            };
            transitions += usize::from(stored == to && before != to);
            before = stored;
            if is_state && before == to {
                Self::check_state(transition, &entry.object)?;
            }
        }
        must!(
            *events <= transitions,
            "{subject} of {object} became {to:?} {transitions} times, but {events} Events were recorded"
        );
        Ok(())
    }

    /// Checks the type of an Event about a state, and that it is not from the first ten seconds of the object.
    fn check_state(transition: &Transition, stored: &Object) -> Result<(), Violation> {
        let Transition { object, to, good, since, .. } = transition;
        let may_be = match *to {
            "Failed" | "Missing" => !good,
            "Unknown" => true,
            _ => *good,
        };
        must!(may_be, "the Event that {object} became {to} has the wrong type");
        let created: Option<Timestamp> =
            stored.metadata()["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
        let is_early = created.is_some_and(|created| since.duration_since(created).as_secs() < 10);
        must!(!is_early, "the Event that {object} became {to} is from its first ten seconds");
        Ok(())
    }
}

/// The adoptions by controllers: UID of the object, UID of the owner.
#[derive(Debug, Default)]
pub(crate) struct Adopted(BTreeSet<(String, String)>);

impl Adopted {
    pub(crate) fn note(&mut self, effect: &RequestEffect, change: &Write) {
        if let (RequestEffect::Changed { before: Some(before), after }, Write::OwnerReferences { .. }) =
            (effect, change)
        {
            let new = after.owners().filter(|uid| !before.owners().any(|other| other == *uid));
            self.0.extend(new.map(|uid| (after.uid().to_owned(), uid.to_owned())));
        }
    }

    pub(crate) fn contains(&self, object: &str, owner: &str) -> bool {
        self.0.iter().any(|(it, by)| it == object && by == owner)
    }
}

/// Whether the spec of an Application allows it to own objects of a kind.
pub(crate) fn may_own(app: &Application, kind: &GroupKind) -> bool {
    app.spec.ownership == Ownership::Adopt && is_counted(app, kind)
        || app.spec.health_check.is_some() && *kind == GroupKind::pod()
}

/// Whether an Application must own an object.
fn owns(app: &Application, object: &Object) -> bool {
    let annotation = &object.metadata()["annotations"][bellwether_api::APPLICATION_ANNOTATION];
    app.spec.ownership == Ownership::Adopt
        && *annotation == json!(app.metadata.name)
        && is_counted(app, &object.kind)
        && belongs(app, object)
}

/// Checks that a request has the fields that its change needs, and no other. API servers ignore other fields
/// in some requests, but not in all.
pub(crate) fn is_modest(slot: &Slot, request: &Request<Vec<u8>>) -> Result<(), Violation> {
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let fields = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(field, _)| field.clone()).collect()
    };
    let (all, metadata) = (fields(&body), fields(&body["metadata"]));
    let is_modest = match (&slot.part, request.method()) {
        (_, &Method::GET) => true,
        (Part::Status, _) => all == ["metadata", "status"] && metadata == ["resourceVersion", "uid"],
        (Part::OwnerReferences, _) => {
            all == ["metadata"] && metadata == ["ownerReferences", "resourceVersion", "uid"]
        }
        (Part::Object(_), &Method::DELETE) => !body["preconditions"]["uid"].is_null(),
        (Part::Object(_), _) => true,
        (Part::ForeignStatus, _) => {
            let operations = body.as_array().map(Vec::as_slice).unwrap_or_default();
            operations.len() == 3
                && operations[0]["path"] == "/metadata/uid"
                && operations[1]["path"] == "/metadata/resourceVersion"
        }
    };
    must!(
        is_modest,
        "the request for {:?} of {} has missing or extra fields: {body}",
        slot.part,
        slot.object
    );
    Ok(())
}

/// The types of conditions that two states of an object have in common, in the order of the first.
fn kept<'a>(object: &'a Object, other: &Object) -> Vec<&'a Value> {
    let types = |object: &'a Object| {
        let conditions = object.value["status"]["conditions"].as_array().into_iter().flatten();
        conditions.map(|it| &it["type"])
    };
    let others = other.value["status"]["conditions"].as_array().cloned().unwrap_or_default();
    types(object).filter(|kind| others.iter().any(|it| it["type"] == **kind)).collect()
}

fn foreign_conditions(object: &Object) -> Vec<&Value> {
    let conditions = object.value["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|it| it["type"].as_str().is_some_and(|kind| kind.contains('/'))).collect()
}
