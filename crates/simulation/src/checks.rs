//! What must be so at every write.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::{Application, Ownership};
use bellwether_engine::{Change, GroupKind, Part, Slot, Transition};
use http::{Method, Request};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    api::RequestEffect,
    known::Known,
    object::Object,
    oracle::{Oracle, belongs, is_announced, is_counted, shape},
    past::Past,
    query_checks::ReportedStatuses,
    rollup_checks, rollup_oracle,
    store::Store,
    violation::{Violation, difference},
};

/// What there is to say of an Application or a Rollup by what is known; nothing if it is not known itself.
pub(crate) fn expected(
    views: &BTreeMap<GroupKind, Known>,
    (slot, change): (&Slot, &Change),
    store: &Store,
    now: Timestamp,
) -> Result<Option<Value>, Violation> {
    let (kind, name) = (&slot.object.kind, &slot.object.name);
    let oracle = Oracle { kinds: views.iter().map(|(kind, known)| (kind.clone(), known)).collect(), now };
    if *kind == GroupKind::own("Rollup") {
        return rollup_checks::expected(&oracle, name, change, store);
    }
    let apps = oracle.kinds.get(&GroupKind::own("Application")).map(|known| &known.objects);
    let Some(app) = apps.and_then(|apps| apps.get(name)).and_then(|app| app.application()) else {
        return Ok(None);
    };
    let expected = oracle.status(app);
    must!(expected.is_some(), "something is said of {name} before all that it needs is known");
    Ok(expected)
}

/// What a write is judged by.
pub(crate) struct Context<'a> {
    /// What had been when it was sent, and has been since.
    pub(crate) past: Past<'a>,
    pub(crate) change: &'a Change,
    /// What had changed by the time when it was sent.
    pub(crate) sent: u64,
    pub(crate) expected: Option<&'a Value>,
    /// When the controller that sends it began, unless its clock was put back since.
    pub(crate) began: Option<Timestamp>,
    /// What it had told those who asked about the object.
    pub(crate) told: &'a ReportedStatuses,
}

impl Context<'_> {
    /// Whether what was done is right.
    pub(crate) fn check(&self, deed: &RequestEffect) -> Result<(), Violation> {
        match (deed, self.change) {
            (RequestEffect::Changed { before: Some(before), after }, Change::Status { .. }) => {
                self.status(before, after)
            }
            (RequestEffect::Changed { before: Some(before), after }, Change::Owners { .. }) => {
                self.owners(before, after)
            }
            (RequestEffect::Changed { before: None, after }, Change::Create { .. }) => self.created(after),
            (RequestEffect::Deleted(object), Change::Delete { .. }) => self.deleted(object),
            (deed, change) => Err(Violation::new(format!("{deed:?} came of {change:?}"))),
        }
    }

    fn status(&self, before: &Object, after: &Object) -> Result<(), Violation> {
        let name = &before.name;
        must!(
            before.value != after.value,
            "the status of {} {name} was written, and nothing changed",
            before.kind
        );
        must!(
            foreign_conditions(before) == foreign_conditions(after),
            "conditions of others were lost in the status of {name}"
        );
        must!(
            kept(before, after) == kept(after, before),
            "conditions have changed their places in the status of {name}"
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
                Some([before, then]) if *before == status => {
                    must!(
                        *then == since,
                        "{kind} of {name} is {status} as before, and has turned at {since}"
                    );
                }
                _ => self.has_turned(&kind, &status, &since)?,
            }
        }
        let (observed, generation) = (&status["observedGeneration"], &after.metadata()["generation"]);
        must!(
            observed == generation,
            "what is said of {name} is about generation {observed}, not {generation}"
        );
        if let Some(expected) = self.expected {
            let said = if after.rollup().is_some() {
                rollup_oracle::shape(status, expected)
            } else {
                shape(status, expected)
            };
            must!(said == *expected, "by what was known, {name} says{}", difference(&said, expected));
        }
        if let Some(rollup) = after.rollup().filter(|_| status["health"] == "Healthy") {
            return self.past.is_healthy(rollup);
        }
        let Some(app) = after.application() else { return Ok(()) };
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions.filter(|it| it["type"] == "Ready").any(|it| it["status"] == "True");
        if is_ready { self.past.is_ready(app) } else { Ok(()) }
    }

    /// A condition that turns says when: not before the controller first said so to those who asked, nor later than now. By a
    /// clock that was put back, nobody can tell. The first time it is, because what a component says of the future may hold
    /// a turn back that was told already.
    fn has_turned(&self, kind: &str, status: &Value, since: &Value) -> Result<(), Violation> {
        let Some(began) = self.began else { return Ok(()) };
        let told = self.told.get(kind).into_iter().flatten().find(|(told, _)| json!(told) == *status);
        let (first, last) = (told.map_or(began, |(_, since)| *since), self.past.now);
        let says: Option<Timestamp> = since.as_str().and_then(|since| since.parse().ok());
        // Conditions have whole seconds.
        let is_right = says.is_some_and(|says| first.as_second() <= says.as_second() && says <= last);
        must!(is_right, "{kind} turns {status} between {first} and {last}, and says {since}");
        Ok(())
    }

    fn owners(&self, before: &Object, after: &Object) -> Result<(), Violation> {
        let (kind, name) = (&before.kind, &before.name);
        let owners =
            |object: &Object| object.metadata()["ownerReferences"].as_array().cloned().unwrap_or_default();
        let (old, new) = (owners(before), owners(after));
        must!(old != new, "the owners of {kind} {name} were written, and nothing changed");
        let mut bare = [before, after].map(|object| object.value.clone());
        for value in &mut bare {
            let metadata = value["metadata"].as_object_mut().into_iter();
            metadata.for_each(|metadata| {
                metadata.remove("ownerReferences");
                metadata.remove("resourceVersion");
            });
        }
        must!(bare[0] == bare[1], "more than the owners of {kind} {name} was written");
        let foreign = |owners: &[Value]| -> Vec<Value> {
            owners.iter().filter(|owner| owner["kind"] != "Application").cloned().collect()
        };
        must!(foreign(&old) == foreign(&new), "owners of {kind} {name} that are none of ours were changed");
        for added in new.iter().filter(|owner| !old.iter().any(|other| other["uid"] == owner["uid"])) {
            let uid = added["uid"].as_str().unwrap_or_default();
            must!(
                self.was_so(
                    uid,
                    |app, stays| stays && owns(app, before),
                    self.past.knew(&GroupKind::own("Application"))
                ),
                "{kind} {name} is given to {uid}, which has no right to it"
            );
            self.was_announced(uid, kind)?;
            // It was looked at after this was sent.
            must!(
                self.was_so(uid, |_, stays| stays, self.sent),
                "{kind} {name} is given to {uid}, which was gone before"
            );
        }
        for removed in old.iter().filter(|owner| !new.iter().any(|other| other["uid"] == owner["uid"])) {
            let uid = removed["uid"].as_str().unwrap_or_default();
            must!(uid != "f1", "{kind} {name} is taken from somebody else");
            must!(
                self.was_so(
                    uid,
                    |app, stays| !stays || !owns(app, before),
                    self.past.knew(&GroupKind::own("Application"))
                ),
                "{kind} {name} is taken from {uid}, which has a right to it"
            );
        }
        Ok(())
    }

    /// Whether the status of an Application has named a kind before something of it came to be owned.
    fn was_announced(&self, uid: &str, kind: &GroupKind) -> Result<(), Violation> {
        must!(
            self.was_so(
                uid,
                |app, _| is_announced(app, kind),
                self.past.knew(&GroupKind::own("Application"))
            ),
            "{uid} owns something of {kind}, and does not say where to look for it"
        );
        Ok(())
    }

    /// Whether something was so of the Application of this uid at some moment since this change. One that is gone does
    /// not stay.
    fn was_so(&self, uid: &str, is_so: impl Fn(&Application, bool) -> bool, since: u64) -> bool {
        let entries: Vec<_> = self.past.store.log.iter().filter(|entry| entry.object.uid() == uid).collect();
        let first = entries.partition_point(|entry| entry.revision <= since).saturating_sub(1);
        entries[first.min(entries.len())..].iter().any(|entry| {
            let stays = !entry.gone && !entry.object.is_deleting();
            entry.object.application().is_some_and(|app| is_so(app, stays))
        })
    }

    fn deleted(&self, pod: &Object) -> Result<(), Violation> {
        must!(pod.is_check(), "{} {} is deleted, which is not ours", pod.kind, pod.name);
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
                || self.was_so(
                    uid,
                    |app, stays| !stays || !asks_for_it(app),
                    self.past.knew(&GroupKind::own("Application"))
                ),
            "{} is deleted, and {uid} needs it",
            pod.name
        );
        Ok(())
    }

    fn created(&self, after: &Object) -> Result<(), Violation> {
        must!(after.is_check(), "{} {} is created, which is none of ours", after.kind, after.name);
        let uid = after.owners().next().unwrap_or_default();
        let has_check = |app: &Application, stays: bool| stays && app.spec.health_check.is_some();
        must!(
            self.was_so(uid, has_check, self.past.knew(&GroupKind::own("Application"))),
            "{} is created for {uid}, which has no check",
            after.name
        );
        self.was_announced(uid, &GroupKind::pod())
    }
}

/// How often people were told of a turn in one life of a controller. One that begins anew with a list from the past may
/// take the turn that the last one has told for its own.
#[derive(Debug, Default)]
pub(crate) struct EventCounts(BTreeMap<(Life, Box<str>, &'static str, String), usize>);

/// A controller, and how often it has been started.
type Life = (usize, u64);

impl EventCounts {
    /// People are told of a turn: not more often than there were turns.
    pub(crate) fn note(&mut self, life: Life, turn: &Transition, store: &Store) -> Result<(), Violation> {
        let to = json!(turn.to);
        let told = self.0.entry((life, turn.uid.clone(), turn.condition, to.to_string())).or_default();
        *told += 1;
        let entries = store.log.iter().filter(|entry| *entry.object.uid() == *turn.uid && !entry.gone);
        let (mut turns, mut before) = (0, &Value::Null);
        for entry in entries {
            let conditions = entry.object.value["status"]["conditions"].as_array().into_iter().flatten();
            let ready = conditions.filter(|it| it["type"] == turn.condition).map(|it| &it["status"]).next();
            let ready = ready.unwrap_or(&Value::Null);
            turns += usize::from(*ready == to && *before != to);
            before = ready;
        }
        must!(
            *told <= turns,
            "{} of {} turned {to} {turns} times, and people were told {told} times",
            turn.condition,
            turn.object
        );
        Ok(())
    }
}

/// Which objects were given to whom, by us.
#[derive(Debug, Default)]
pub(crate) struct Adopted(BTreeSet<(String, String)>);

impl Adopted {
    /// Takes note of what was done.
    pub(crate) fn note(&mut self, deed: &RequestEffect, change: &Change) {
        if let (RequestEffect::Changed { before: Some(before), after }, Change::Owners { .. }) =
            (deed, change)
        {
            let new = after.owners().filter(|uid| !before.owners().any(|other| other == *uid));
            self.0.extend(new.map(|uid| (after.uid().to_owned(), uid.to_owned())));
        }
    }

    pub(crate) fn contains(&self, object: &str, owner: &str) -> bool {
        self.0.iter().any(|(it, by)| it == object && by == owner)
    }
}

/// Whether an Application may own objects of a kind, by its spec.
pub(crate) fn may_own(app: &Application, kind: &GroupKind) -> bool {
    app.spec.ownership == Ownership::Adopt && is_counted(app, kind)
        || app.spec.health_check.is_some() && *kind == GroupKind::pod()
}

/// Whether an object is an Application's own.
fn owns(app: &Application, object: &Object) -> bool {
    let annotation = &object.metadata()["annotations"][bellwether_api::APPLICATION_ANNOTATION];
    app.spec.ownership == Ownership::Adopt
        && *annotation == json!(app.metadata.name)
        && is_counted(app, &object.kind)
        && belongs(app, object)
}

/// Whether a request asks for no more than it has to: API servers ignore the rest of some of them, and not of others.
pub(crate) fn is_modest(slot: &Slot, request: &Request<Vec<u8>>) -> Result<(), Violation> {
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let fields = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(field, _)| field.clone()).collect()
    };
    let (all, metadata) = (fields(&body), fields(&body["metadata"]));
    let is_modest = match (&slot.part, request.method()) {
        (_, &Method::GET) => true,
        (Part::Status, _) => all == ["metadata", "status"] && metadata == ["resourceVersion", "uid"],
        (Part::Owners, _) => all == ["metadata"] && metadata == ["ownerReferences", "resourceVersion", "uid"],
        (Part::Existence(_), &Method::DELETE) => !body["preconditions"]["uid"].is_null(),
        (Part::Existence(_), _) => true,
        (Part::Applied(_), _) => all == ["apiVersion", "kind", "metadata", "status"],
    };
    must!(is_modest, "{:?} of {} is written as {body}", slot.part, slot.object);
    Ok(())
}

/// The types of the conditions of one state of an object that another has, too, in their order.
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
