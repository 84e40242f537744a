//! Checks every published status, with a delay, when all earlier changes have been observed.
//!
//! A status is wrong if its statement about the objects of a kind was not true at any moment at which the
//! controller may have seen them. These moments end with the write of the status and begin with the start of
//! the fault that may have delayed the events of the kind (see `fault_windows`). Each kind has its own
//! moments, because watches of two kinds are not ordered; so has the HealthRule for Widgets. Within a kind,
//! one moment must explain all objects, except for what is below them: the ReplicaSets and the Pods of each
//! Deployment have their own moments. Time alone changes what Pods say, so each time in question counts.
//!
//! In addition, `observedGeneration` must match, and the status must be consistent in itself.

use std::{
    cell::Cell,
    collections::BTreeSet,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use bellwether_api::{Application, ApplicationStatus, EventType, State};
use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_simulation::{
    known::Known,
    object::Object,
    oracle::{Oracle, belongs, counts, readiness, state_of},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;
use tokio::time::sleep;

use crate::{
    alarm::Alarms,
    below,
    environment::Environment,
    fault_windows::FaultWindows,
    history::Missed,
    objects::Kind,
    observer::{Deleted, Observations, Observer, Published, WatchTarget},
    statement::{MemberStatement, Statement, condition, kinds},
};

/// The delay of a check if the watches have reached the revision of the status.
const DELAY: Duration = Duration::from_secs(3);

/// The delay of a check otherwise: the watches are connected but idle.
const IDLE_DELAY: Duration = Duration::from_secs(20);

/// After this time a status is skipped.
const DEADLINE: Duration = Duration::from_mins(2);

/// Status and reason of Ready while an Application is being deleted.
const TERMINATING: (&str, &str) = ("False", "Terminating");

/// While a manifest is being applied, states are not reported as Warnings.
pub(crate) const GRACE: SignedDuration = SignedDuration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckCounts {
    pub(crate) statuses: usize,
    /// Not checked, because the observer had missed changes.
    pub(crate) skipped: usize,
}

/// Runs for ever and keeps `result` up to date.
pub(crate) async fn check_statuses(
    observer: Observer,
    environment: Arc<Environment>,
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
                Preceding::Known => match check(&seen, &published, &windows, &environment.starts()) {
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
        let (since, revision) = seen.watched(WatchTarget::Objects(*kind));
        let for_long = since.is_some_and(|since| now - since > IDLE_DELAY);
        (revision >= published.revision && age > DELAY) || (age > IDLE_DELAY && for_long)
    };
    let kinds = kinds(&published.app);
    if kinds.iter().chain(kinds.iter().flat_map(|kind| kind.below())).all(is_known) {
        Preceding::Known
    } else if age > DEADLINE {
        Preceding::NeverKnown
    } else {
        Preceding::NotYetKnown
    }
}

/// Checks one status. `starts` are those of the controllers.
fn check(
    seen: &Observations,
    published: &Published,
    windows: &FaultWindows,
    starts: &[Instant],
) -> Result<(), Failure> {
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
    check_last_event(app, &status, windows, at).map_err(Failure::Wrong)?;
    // The controller has seen the deletion: its write has the resourceVersion.
    let is_deleting = app.metadata.deletion_timestamp.is_some();
    let state = if is_deleting { State::Terminating } else { state_of(ready) };
    if status.state != Some(state) || is_deleting != (ready == TERMINATING) {
        return Err(Failure::Wrong(format!("state is {:?}, Ready={ready:?}, want {state:?}", status.state)));
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
    // A suspended member can keep the Application from being ready.
    let blocked = [&*listed, &[State::InProgress]].concat();
    let (free, blocked) = (readiness(&listed), readiness(&blocked));
    let can_be_blocked = ready == blocked && listed.contains(&State::Suspended);
    if (ready != free && !can_be_blocked && !is_deleting) || status.object_counts != Some(counts(&listed)) {
        let objects: Vec<_> =
            status.objects.iter().map(|it| format!("{}/{} {}", it.kind, it.name, it.status.name())).collect();
        return Err(Failure::Wrong(format!(
            "Ready={ready:?} and counts {:?} do not match the listed objects {objects:?}",
            status.object_counts
        )));
    }
    check_reason(&status).map_err(Failure::Wrong)?;
    let blocks = (free != blocked && !is_deleting).then_some(ready == blocked);
    let missed = Missed {
        version: &|begin, end| windows.may_hide_rule(begin, end),
        all_before: &|replaced| starts.iter().any(|start| *start <= at && windows.is_late(*start, replaced)),
    };
    let was_so =
        |kind: Kind, blocks: Option<bool>| was_so(seen, published, (kind, blocks), at, windows, &missed);
    // If it is blocked, one kind is enough to explain why.
    kinds(app).into_iter().try_for_each(|kind| was_so(kind, blocks.filter(|blocks| !blocks)))?;
    if blocks != Some(true) {
        return Ok(());
    }
    let results: Vec<_> = kinds(app).into_iter().map(|kind| was_so(kind, blocks)).collect();
    let is_skipped = |result: &Result<(), Failure>| matches!(result, Err(Failure::Skipped));
    if results.iter().any(Result::is_ok) {
        Ok(())
    } else if results.iter().any(is_skipped) {
        Err(Failure::Skipped)
    } else {
        Err(Failure::Wrong(format!("Ready={ready:?}, but at no moment did a suspended member block it")))
    }
}

/// `status.reason` is that of the first listed object with the state.
fn check_reason(status: &ApplicationStatus) -> Result<(), String> {
    let (Some(state), reason) = (status.state, &status.reason) else { return Ok(()) };
    if state == State::Ready {
        return if reason.is_none() {
            Ok(())
        } else {
            Err(format!("state is Ready, but reason is {reason:?}"))
        };
    }
    if state == State::Terminating && status.reason.as_deref() == Some(TERMINATING.1) {
        return Ok(());
    }
    match status.objects.iter().find(|object| object.status == state) {
        Some(worst) if worst.reason != *reason => {
            Err(format!("reason is {reason:?}, want {:?} of {}/{}", worst.reason, worst.kind, worst.name))
        }
        _ => Ok(()),
    }
}

/// `status.lastEvent` has the state, with the right type. In the first seconds of an Application no Warning is
/// due, so it may still have another state.
fn check_last_event(
    app: &Application,
    status: &ApplicationStatus,
    windows: &FaultWindows,
    at: Instant,
) -> Result<(), String> {
    let (Some(state), Some(created)) = (status.state, &app.metadata.creation_timestamp) else {
        return Ok(());
    };
    let grace_end = created.0 + GRACE;
    let is_early = |at: Instant| wall_clock(at) <= grace_end;
    let Some(last) = &status.last_event else {
        // The write may be older than its observation.
        return if is_early(windows.since_all(at)) { Ok(()) } else { Err("lastEvent is missing".to_owned()) };
    };
    let is_warning = last.type_ == EventType::Warning;
    let fits = match last.state {
        State::Failed | State::Missing => is_warning,
        State::Unknown => true,
        _ => !is_warning,
    };
    if !fits || (is_warning && last.time.0 < grace_end) {
        return Err(format!("lastEvent {last:?} has the wrong type, or is too early"));
    }
    let may_wait = matches!(state, State::Failed | State::Missing) && is_early(windows.since_all(at));
    if last.state != state && !may_wait {
        return Err(format!("lastEvent {last:?} is not about the state {state:?}"));
    }
    Ok(())
}

/// The time of day at a moment of this process.
fn wall_clock(at: Instant) -> Timestamp {
    let now = (Instant::now(), Timestamp::now());
    now.1 - SignedDuration::try_from(now.0.saturating_duration_since(at)).unwrap_or_default()
}

/// Checks that the statement about a kind was true at some moment.
fn was_so(
    seen: &Observations,
    published: &Published,
    (kind, blocks): (Kind, Option<bool>),
    at: Instant,
    windows: &FaultWindows,
    missed: &Missed<'_>,
) -> Result<(), Failure> {
    let Published { name, app, revision, .. } = published;
    let since = windows.since(kind, at);
    let from = seen.history.revision_at(since).min(*revision);
    let status = app.status.clone().unwrap_or_default();
    let published_statement = Statement::published(app, &status, kind);
    let (group_kind, rule_kind) = (kind.api_resource().group_kind(), GroupKind::bellwether("HealthRule"));
    let mut last = None;
    // An `Object` caches the verdict of one rule, so the outer loop is over rules.
    let rules = seen.history.rules_between(from, *revision, missed);
    let was_so = rules.into_iter().any(|rule| {
        let objects = rule.map(|rule| (rule.name.clone(), rule)).into_iter().collect();
        let rules = Known { listed: true, objects, ..Known::default() };
        let evidence = EvidenceCheck { seen, published, at, windows, rules: &rules };
        let concerns = |object: &Object| belongs(app, object);
        seen.history.was_ever((kind, &name.namespace), (from, *revision), concerns, |known| {
            let kinds = [(group_kind.clone(), known), (rule_kind.clone(), &rules)].into();
            let share = Oracle { kinds, now: wall_clock(at) }.share(app, &group_kind);
            let statement = Statement::from(share);
            let is_so = blocks.is_none_or(|blocks| blocks == statement.blocks)
                && statement.installed == published_statement.installed
                && statement.missing == published_statement.missing
                && statement.objects.keys().eq(published_statement.objects.keys())
                && statement.objects.iter().all(|(member, own)| {
                    let says = &published_statement.objects[member];
                    match known.objects.get(&NamespacedName::new(&name.namespace, member)) {
                        Some(object) if kind == Kind::Deployment => evidence.explains(object, own, says),
                        _ => own == says,
                    }
                });
            last = Some(statement);
            is_so
        })
    });
    if was_so {
        return Ok(());
    }
    let has_gap = |kind: &Kind| seen.history.has_gap(*kind, from, *revision);
    if has_gap(&kind) || kind.below().iter().any(has_gap) {
        return Err(Failure::Skipped);
    }
    let last = last.unwrap_or_default();
    let differs = |one: &Statement, other: &Statement| -> Vec<String> {
        let objects = one.objects.iter().filter(|(name, member)| other.objects.get(*name) != Some(*member));
        objects.map(|(name, member)| format!("{name} {member}")).collect()
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

/// Checks what a status says about a Deployment against its ReplicaSets and Pods.
struct EvidenceCheck<'a> {
    seen: &'a Observations,
    published: &'a Published,
    at: Instant,
    windows: &'a FaultWindows,
    rules: &'a Known,
}

impl EvidenceCheck<'_> {
    /// Whether the ReplicaSets and Pods at some moment, and the time of day, can have turned what a Deployment
    /// says itself, `own`, into what the status `says`.
    fn explains(&self, deployment: &Rc<Object>, own: &MemberStatement, says: &MemberStatement) -> bool {
        if !matches!(own.state, State::Failed | State::InProgress | State::Suspended) {
            return own == says;
        }
        let was_unreadable = |kind: &Kind| self.windows.was_unreadable(*kind, self.at);
        // After a restart, a failure that is stored counts until what is below can be listed.
        let may_be_stored = own.state == State::InProgress && says.state == State::Failed;
        if (own == says || may_be_stored) && Kind::Deployment.below().iter().any(was_unreadable) {
            return true;
        }
        let sets = self.states(Kind::ReplicaSet, |set| set.owners().any(|uid| uid == deployment.uid()));
        let owners: BTreeSet<_> =
            sets.iter().flat_map(|sets| sets.objects.values()).map(|set| set.uid().to_owned()).collect();
        let pods = self.states(Kind::Pod, |pod| pod.owners().any(|uid| owners.contains(uid)));
        let begin = wall_clock(self.windows.since(Kind::Deployment, self.at));
        let end = wall_clock(self.at);
        let changes = pods.iter().flat_map(|pods| pods.objects.values()).flat_map(below::milestones);
        let mut times: BTreeSet<_> = changes.filter(|time| (begin..end).contains(time)).collect();
        times.extend([begin, end]);
        let alone = Kind::Deployment.known([(deployment.name.clone(), Rc::clone(deployment))].into());
        // An `Object` caches the verdict of one time, so the outer loop is over times.
        times.into_iter().any(|now| {
            pods.iter().any(|pods| {
                sets.iter().any(|sets| {
                    let kinds = [
                        (Kind::Deployment.api_resource().group_kind(), &alone),
                        (Kind::ReplicaSet.api_resource().group_kind(), sets),
                        (Kind::Pod.api_resource().group_kind(), pods),
                        (GroupKind::bellwether("HealthRule"), self.rules),
                    ];
                    let kind = &kinds[0].0.clone();
                    let share = Oracle { kinds: kinds.into(), now }.share(&self.published.app, kind);
                    Statement::from(share).objects.get(&*deployment.name.name) == Some(says)
                })
            })
        })
    }

    fn states(&self, kind: Kind, concerns: impl Fn(&Object) -> bool) -> Vec<Known> {
        let Published { name, revision, .. } = self.published;
        let from = self.seen.history.revision_at(self.windows.since(kind, self.at)).min(*revision);
        self.seen.history.states((kind, &name.namespace), (from, *revision), concerns)
    }
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
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::{objects::GROUP, rules};

    /// A Widget that is Ready without a rule and Failed with the first rule.
    fn widget(name: &str, app: &str) -> Object {
        Object::new(json!({
            "apiVersion": Kind::Widget.api_resource().api_version(), "kind": "Widget",
            "metadata": { "name": name, "namespace": "team-0", "uid": name, "labels": { "app": app } },
            "status": { "level": 9, "conditions": [{ "type": "Ready", "status": "True", "reason": "Turned" }] },
        }))
    }

    /// The status of an Application that selects `app: shop-0`, and names the Widget `widget-0`.
    fn published(objects: &[(&str, State)], missing: &[&str], at: Instant) -> Published {
        let states: Vec<_> = objects.iter().map(|(_, state)| *state).collect();
        // A clause without a reason has the name of its state.
        let says = |state: State| if state == State::Ready { "Turned" } else { state.name() };
        let state = state_of(readiness(&states));
        let condition = |kind: &str, (status, reason): (&str, &str)| {
            let since = "2026-11-14T10:00:00Z";
            json!({ "type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": since })
        };
        let object = |(name, state): &(&str, State)| {
            let reason = says(*state);
            json!({ "name": name, "group": GROUP, "kind": "Widget", "status": state, "progress": 0, "reason": reason })
        };
        let app = Object::new(json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application",
            "metadata": { "name": "shop-0", "namespace": "team-0", "uid": "shop-0", "generation": 1 },
            "spec": {
                "selector": { "matchLabels": { "app": "shop-0" } },
                "components": { "widget-0": { "group": GROUP, "kind": "Widget" } },
            },
            "status": {
                "observedGeneration": 1,
                "state": state,
                "reason": (state != State::Ready).then(|| says(state)),
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
            seen.history.note_rule(10, begun, Some(Rc::new(Object::new(rules::written(rule)))));
        }
        match check(&seen, &published(objects, missing, at), &FaultWindows::default(), &[]) {
            Ok(()) => assert!(is_right, "the error was not found"),
            Err(Failure::Wrong(what)) => assert!(!is_right, "{what}"),
            Err(Failure::Skipped) => panic!("the status was skipped"),
        }
    }

    /// A Deployment with one of two replicas ready, two revisions, and a Pod of each. The old Pod fails; the new
    /// one fails since 50 seconds before the status is written, then it is deleted.
    fn history_below(seen: &mut Observations, begun: Instant, written: Timestamp) {
        let owned = |api_version: &str, kind: &str, name: &str, owner: &str| {
            let owners = json!([{ "apiVersion": "apps/v1", "kind": "any", "name": owner, "uid": owner }]);
            json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": { "name": name, "namespace": "team-0", "uid": name, "ownerReferences": owners },
            })
        };
        let mut deployment = owned("apps/v1", "Deployment", "server", "");
        deployment["metadata"]["labels"] = json!({ "app": "shop-0" });
        deployment["spec"] = json!({ "replicas": 2 });
        deployment["status"] =
            json!({ "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1 });
        let mut objects = vec![(Kind::Deployment, deployment)];
        for (revision, age) in [("1", 500), ("2", 50)] {
            let (name, since) = (format!("set-{revision}"), written - SignedDuration::from_secs(age));
            let mut set = owned("apps/v1", "ReplicaSet", &name, "server");
            set["metadata"]["annotations"] = json!({ "deployment.kubernetes.io/revision": revision });
            let mut pod = owned("v1", "Pod", &format!("pod-{revision}"), &name);
            pod["status"] = json!({
                "phase": "Pending",
                "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": since }],
                "containerStatuses": [{
                    "name": "main", "ready": false, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                }],
            });
            objects.extend([(Kind::ReplicaSet, set), (Kind::Pod, pod)]);
        }
        for (kind, object) in objects {
            let object = Rc::new(Object::new(object));
            seen.history.note(kind, &object.name, 10, Some(Rc::clone(&object)));
        }
        seen.history.note(Kind::Pod, &NamespacedName::new("team-0", "pod-2"), 15, None);
        seen.history.tick(10, begun);
        seen.history.tick(15, begun + Duration::from_secs(19));
        seen.history.tick(20, begun + Duration::from_secs(20));
    }

    #[rstest]
    #[case::by_the_new_pod(0, (State::InProgress, "ReplicasNotReady", Some("pod-2")), true)]
    #[case::after_its_deletion(0, (State::InProgress, "ReplicasNotReady", None), true)]
    #[case::not_by_the_old_pod(0, (State::InProgress, "ReplicasNotReady", Some("pod-1")), false)]
    #[case::not_so_soon(0, (State::Failed, "CrashLoopBackOff", Some("pod-2")), false)]
    #[case::after_a_minute(12, (State::Failed, "CrashLoopBackOff", Some("pod-2")), true)]
    #[case::with_another_reason(12, (State::Failed, "ImagePullBackOff", Some("pod-2")), false)]
    fn what_a_status_says_because_of_pods_must_have_been_true(
        #[case] later: i64,
        #[case] (state, reason, cause): (State, &str, Option<&str>),
        #[case] is_right: bool,
    ) {
        let (begun, mut seen) = (Instant::now(), Observations::new(&Alarms::default()));
        let at = begun + Duration::from_secs(20);
        // `wall_clock` takes a moment of the future for the present.
        history_below(&mut seen, begun, Timestamp::now() - SignedDuration::from_secs(later));
        let mut published = published(&[], &[], at);
        let status = json!({
            "observedGeneration": 1, "state": state, "reason": reason, "objectCounts": counts(&[state]),
            "lastEvent": { "state": state, "type": "Normal", "time": "2026-11-14T10:00:00Z" },
            "conditions": published.app.status.as_ref().map(|status| status.conditions.clone()),
            "objects": [{
                "name": "server", "group": "apps", "kind": "Deployment", "status": state, "progress": 0, "reason": reason,
                "cause": cause.map(|name| json!({ "kind": "Pod", "name": name, "status": "Failed" })),
            }],
        });
        published.app.spec.components.clear();
        published.app.spec.component_kinds =
            serde_json::from_value(json!([{ "group": "apps", "kind": "Deployment" }])).expect("kinds");
        published.app.status = serde_json::from_value(status).expect("a status");
        let conditions = &mut published.app.status.as_mut().expect("a status").conditions;
        let ready = readiness(&[state]);
        for it in conditions.iter_mut().filter(|it| it.type_ == "Ready") {
            (it.status, it.reason) = (ready.0.into(), ready.1.to_owned());
        }
        match check(&seen, &published, &FaultWindows::default(), &[]) {
            Ok(()) => assert!(is_right, "the error was not found"),
            Err(Failure::Wrong(what)) => assert!(!is_right, "{what}"),
            Err(Failure::Skipped) => panic!("the status was skipped"),
        }
    }
}
