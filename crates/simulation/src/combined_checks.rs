//! Checks of the writes for BindingPolicies: CombinedStatuses, and the labels and statuses of singletons.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use bellwether_engine::{GroupKind, NamespacedName, Part, Patched, SINGLETON_LABEL, Slot, Write};
use serde_json::{Value, json};

use crate::{
    checks::Context,
    combined_oracle::{clauses, matches, selects_cluster},
    object::Object,
    past::Past,
    plan::Moment,
    process::Process,
    site::Site,
    violation::Violation,
};

/// How long the first result waits for a cluster, in milliseconds.
const PATIENCE: Moment = 10_000;

/// After the threshold, a controller must have noticed within this time that a cluster is stale.
const SLACK: Moment = 1_000;

/// Writes of one CombinedStatus within `WINDOW`: a burst, then one each second, then what failed and is repeated.
const MAX_WRITES: usize = 24;
const WINDOW: Moment = 10_000;

/// When each CombinedStatus was written by a controller since its start.
#[derive(Debug, Default)]
pub(crate) struct Published(BTreeMap<NamespacedName, VecDeque<Moment>>);

impl Published {
    /// Checks a write when it is sent, and notes it.
    pub(crate) fn check(
        &mut self,
        process: &Process,
        (slot, change): (&Slot, &Write),
        past: &Past<'_>,
        now: Moment,
    ) -> Result<(), Violation> {
        if slot.object.kind != combined_status() || !matches!(slot.part, Part::Object(_)) {
            return Ok(());
        }
        let name = &slot.object.name;
        let Some(counts) = counts(change) else { return Ok(()) };
        counts_fresh_clusters(process, name, &counts, past, now)?;
        if !self.0.contains_key(name) {
            awaited_clusters(process, name, past, now)?;
        }
        let times = self.0.entry(name.clone()).or_default();
        times.retain(|time| now - time < WINDOW);
        times.push_back(now);
        must!(
            times.len() <= MAX_WRITES,
            "CombinedStatus {name} was written {} times in {} s",
            times.len(),
            WINDOW / 1000
        );
        Ok(())
    }
}

fn combined_status() -> GroupKind {
    GroupKind::bellwether("CombinedStatus")
}

fn policy_kind() -> GroupKind {
    GroupKind::bellwether("BindingPolicy")
}

/// `clusters` in a write of a CombinedStatus; `Null` if the write does not change it.
fn counts(change: &Write) -> Option<Value> {
    match change {
        Write::Create { manifest, .. } => Some(manifest["clusters"].clone()),
        Write::SetFields { fields, .. } => {
            let is_clusters = |path: &[Box<str>]| path.iter().map(|field| &**field).eq(["clusters"]);
            let clusters = fields.iter().find(|(path, _)| is_clusters(path));
            Some(clusters.map(|(_, value)| value.clone()).unwrap_or_default())
        }
        _ => None,
    }
}

/// The object and the policy that a CombinedStatus is named after.
fn uids(name: &NamespacedName) -> (&str, &str) {
    name.name.rsplit_once('.').unwrap_or_default()
}

/// The states of an object that a controller may know, found by its UID. Empty if it never existed, or if the
/// controller has never listed the kind.
fn known_states<'a>(past: &Past<'a>, kind: Option<&GroupKind>, uid: &str) -> Vec<Option<&'a Rc<Object>>> {
    states_since(past, kind, uid, |kind| past.knew(kind))
}

/// The states of an object, found by its UID, since a revision for its kind.
fn states_since<'a>(
    past: &Past<'a>,
    kind: Option<&GroupKind>,
    uid: &str,
    since: impl Fn(&GroupKind) -> u64,
) -> Vec<Option<&'a Rc<Object>>> {
    let is_it = |object: &Object| object.uid() == uid && kind.is_none_or(|kind| object.kind == *kind);
    let Some(entry) = past.store.log.iter().find(|entry| is_it(&entry.object)) else { return Vec::new() };
    let (kind, name) = (&entry.object.kind, &entry.object.name);
    let states = past.store.since(kind, name, since(kind));
    states.into_iter().map(|state| state.filter(|object| object.uid() == uid)).collect()
}

/// Checks that no cluster counts as reporting, or as one without the object, that has been silent for longer than
/// the threshold of the policy.
fn counts_fresh_clusters(
    process: &Process,
    name: &NamespacedName,
    counts: &Value,
    past: &Past<'_>,
    now: Moment,
) -> Result<(), Violation> {
    let number = |field: &str| counts[field].as_i64().unwrap_or_default();
    let states = known_states(past, Some(&policy_kind()), uids(name).1);
    let threshold = |policy: &Rc<Object>| {
        let text = policy.value["spec"]["stalenessThreshold"].as_str()?.strip_suffix('s')?;
        Some(text.parse::<Moment>().ok()? * 1000)
    };
    let Some(threshold) = states.into_iter().flatten().filter_map(threshold).max() else { return Ok(()) };
    let kind = known_states(past, None, uids(name).0).into_iter().flatten().map(|object| &object.kind).next();
    // The objects of the cluster before do not count.
    let is_listed = |site: Site, rebuilt: Moment| {
        let mut feeds = process.feeds_of(site).filter(|feed| Some(feed.reflector.kind()) == kind);
        feeds.any(|feed| feed.view.unreadable.is_some() || feed.completed.is_some_and(|at| at >= rebuilt))
    };
    let is_fresh = |site: &&Site| {
        let connected = &process.connected[site];
        connected.silence(now) <= threshold + SLACK
            && connected.rebuilt.is_none_or(|rebuilt| is_listed(**site, rebuilt))
    };
    let fresh = process.connected.keys().filter(is_fresh).count();
    let counted = number("reporting") + number("missing");
    must!(
        counted <= i64::try_from(fresh).unwrap_or(i64::MAX),
        "CombinedStatus {name} counts {counted} clusters as fresh, but only {fresh} were heard from and are listed: {counts}"
    );
    Ok(())
}

/// Checks that the clusters that a controller knew from the start have answered before the first result, or had
/// enough time.
fn awaited_clusters(
    process: &Process,
    name: &NamespacedName,
    past: &Past<'_>,
    now: Moment,
) -> Result<(), Violation> {
    let (object, policy) = uids(name);
    // A cluster that a policy selects later does not hold the result back.
    let first = process.feeds_of(Site::Hub).find(|feed| *feed.reflector.kind() == policy_kind());
    let first = first.and_then(|feed| feed.view.first).unwrap_or_default();
    let mut policies = states_since(past, Some(&policy_kind()), policy, |_| first);
    policies.drain(..policies.iter().take_while(|policy| policy.is_none()).count());
    let objects = known_states(past, None, object);
    let Some(kind) = objects.iter().flatten().next().map(|object| object.kind.clone()) else { return Ok(()) };
    for (site, connected) in process.connected.iter().filter(|(_, connected)| connected.is_initial) {
        let selects = |policy: Option<&Rc<Object>>| {
            policy.is_some_and(|policy| selects_cluster(policy, &connected.labels))
        };
        let is_selected = !policies.is_empty() && policies.iter().all(|policy| selects(*policy));
        let Some(feed) = process.feeds_of(*site).find(|feed| *feed.reflector.kind() == kind) else {
            continue;
        };
        let is_known = feed.view.listed || feed.view.unreadable.is_some();
        let since = connected.connecting.map(|connecting| connecting.max(feed.followed));
        let had_time = since.is_some_and(|since| now >= since + PATIENCE);
        // It is stale after the threshold, which is longer.
        let is_silent = now - connected.reported.unwrap_or(connected.added) >= PATIENCE;
        must!(
            !is_selected || is_known || had_time || is_silent || connected.relabelled,
            "CombinedStatus {name} is written before {} has answered",
            site.name()
        );
    }
    Ok(())
}

impl Context<'_> {
    /// A CombinedStatus was created.
    pub(crate) fn combined_status_created(&self, after: &Object) -> Result<(), Violation> {
        counts_add_up(after)?;
        must!(
            self.has_reason(&after.name, false),
            "CombinedStatus {} was created without a reason",
            after.name
        );
        Ok(())
    }

    /// A CombinedStatus was deleted.
    pub(crate) fn combined_status_deleted(&self, object: &Object) -> Result<(), Violation> {
        for kind in [policy_kind(), GroupKind::bellwether("StatusCollector")] {
            must!(
                self.past.knew(&kind) > 0,
                "CombinedStatus {} was deleted before {kind} was listed",
                object.name
            );
        }
        must!(
            !self.has_reason(&object.name, true),
            "CombinedStatus {} was deleted, but there is a reason for it",
            object.name
        );
        Ok(())
    }

    /// Whether there was a reason for a CombinedStatus at some time that the controller may know, or `always`.
    fn has_reason(&self, name: &NamespacedName, always: bool) -> bool {
        let past = &self.past;
        let (object, policy) = uids(name);
        let policies = known_states(past, Some(&policy_kind()), policy);
        let mut objects = known_states(past, None, object);
        let holds = |states: &[Option<&Rc<Object>>], holds: &dyn Fn(&Rc<Object>) -> bool| {
            let mut states = states.iter().map(|state| state.is_some_and(holds));
            if always { states.len() > 0 && states.all(|it| it) } else { states.any(|it| it) }
        };
        let kind = objects.iter().flatten().next().map(|object| object.kind.clone());
        // Of a kind that was never listed, a controller knows nothing. It may have listed it before the kind was not
        // served for a moment, which deletes the object.
        let exists = objects.last().is_some_and(Option::is_some);
        if exists && kind.as_ref().is_some_and(|kind| past.knew(kind) == 0) {
            objects.retain(Option::is_some);
        }
        // A controller may not know yet that the kind is not served any more.
        let Some(served) = kind.and_then(|kind| past.store.kinds.get(&kind)) else { return !always };
        let has_collector = |name: &Value| {
            let kind = GroupKind::bellwether("StatusCollector");
            let name = NamespacedName::new("", name.as_str().unwrap_or_default());
            holds(&past.store.since(&kind, &name, past.knew(&kind)), &|_| true)
        };
        let is_reason = |policy: &Rc<Object>, object: &Rc<Object>| {
            let mut matching = clauses(policy);
            matching.retain(|clause| matches(clause, object, &served.plural));
            let mut named =
                matching.iter().filter_map(|clause| clause["statusCollectors"].as_array()).flatten();
            named.any(has_collector)
        };
        holds(&policies, &|policy| holds(&objects, &|object| is_reason(policy, object)))
    }
}

/// A write of single fields was applied.
pub(crate) fn fields_set(before: &Object, after: &Object, part: Patched) -> Result<(), Violation> {
    let (kind, name) = (&before.kind, &before.name);
    must!(before.value != after.value, "the write of fields of {kind} {name} changed nothing");
    if *kind == combined_status() {
        return counts_add_up(after);
    }
    let is_labelled = |object: &Object| object.metadata()["labels"][SINGLETON_LABEL] == "true";
    match part {
        Patched::Status => {
            must!(is_labelled(before), "the status of {kind} {name} is written before its label");
        }
        Patched::Object => {
            must!(
                without_singleton_label(before) == without_singleton_label(after),
                "the write of the label of {kind} {name} changed other fields"
            );
            let status = &before.value["status"];
            let is_empty = status.as_object().is_none_or(serde_json::Map::is_empty);
            must!(
                is_labelled(after) || is_empty,
                "the label of {kind} {name} is removed before its status: {status}"
            );
        }
    }
    Ok(())
}

fn counts_add_up(object: &Object) -> Result<(), Violation> {
    let counts = &object.value["clusters"];
    let number = |field: &str| counts[field].as_u64();
    let sum = ["reporting", "stale", "missing"].into_iter().filter_map(number).sum::<u64>();
    let named = counts["notReporting"].as_array().map_or(0, Vec::len) as u64;
    let absent = ["stale", "missing"].into_iter().filter_map(number).sum::<u64>();
    // Another user may have removed them, and the write may repair something else first.
    must!(
        counts.is_null() || number("bound") == Some(sum) && named == absent,
        "the counts of CombinedStatus {} do not add up: {counts}",
        object.name
    );
    Ok(())
}

fn without_singleton_label(object: &Object) -> Value {
    let mut value = object.value.clone();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(SINGLETON_LABEL);
        }
        metadata.retain(|key, value| key != "labels" || !(value.is_null() || *value == json!({})));
    }
    value
}
