//! The content of probes and metrics.

use std::{future::Future, pin::Pin, sync::Arc};

use bellwether_engine::{
    GroupKind, GroupRef, GroupSamples, GroupStatus, NamespacedName, OwnKind, Unreadable,
};
use bellwether_kube_io::{
    controller_loop::ControllerLoop, leader_election::Leadership, metrics::Metrics,
    status_queries::StatusHandle,
};
use bellwether_model::text::one_line;
use bellwether_server::{Answer, Process};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::cli::Controller;

/// The limit of Kubernetes. Names in requests may be longer.
const MAX_NAME: usize = 253;

const INITIAL_LIST: &str = "initial list not complete";

pub(super) struct Probes {
    metrics: Arc<Metrics>,
    leadership: watch::Receiver<Leadership>,
    handle: StatusHandle,
    /// `--watch-namespace`.
    watch_namespace: Option<String>,
    speaks_for: Option<GroupRef>,
    /// `--metrics-groups`.
    max_groups: usize,
}

impl Probes {
    pub(super) fn new(
        command: &Controller,
        controller_loop: &ControllerLoop,
        leadership: watch::Receiver<Leadership>,
    ) -> Self {
        Self {
            metrics: Arc::clone(controller_loop.metrics()),
            leadership,
            handle: controller_loop.handle(),
            watch_namespace: command.watch_namespace.clone(),
            max_groups: command.metrics_groups,
            speaks_for: command
                .rollups
                .readiness_rollup
                .as_ref()
                .map(|name| GroupRef::new(OwnKind::Rollup, NamespacedName::new("", name))),
        }
    }
}

impl Process for Probes {
    fn waits_for(&self) -> Vec<String> {
        let stats = self.metrics.stats();
        let mut waits: Vec<_> = stats.unlisted_kinds.iter().map(not_listed_yet).collect();
        if !stats.synced && waits.is_empty() {
            waits.push(INITIAL_LIST.to_owned());
        }
        if *self.leadership.borrow() == (Leadership::Standby { holder: None }) {
            waits.push("leader not known yet".to_owned());
        }
        waits
    }

    fn speaks_for(&self) -> Option<&GroupRef> {
        self.speaks_for.as_ref()
    }

    fn summary<'a>(&'a self, group: &'a GroupRef) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async {
            let status = self.handle.summary(group.kind.kind(), group.name.clone()).await;
            answer(status, group, self.watch_namespace.as_deref())
        })
    }

    fn metrics(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async {
            // A standby has no series of groups, so that no alert fires twice.
            let groups = if self.metrics.is_leader() {
                self.handle.group_samples(self.max_groups).await.unwrap_or_default()
            } else {
                GroupSamples::default()
            };
            self.metrics.text(&groups).unwrap_or_default()
        })
    }
}

/// `status` is `None` once the controller loop has ended.
fn answer(status: Option<GroupStatus>, group: &GroupRef, watch_namespace: Option<&str>) -> Answer {
    match status {
        Some(GroupStatus::Known(summary)) => Answer::Known(summary),
        Some(GroupStatus::NotFound) => Answer::Absent(not_found(group, watch_namespace)),
        Some(GroupStatus::Silent { since }) => {
            let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
            Answer::Unknown(format!("no response from the API server since {since}: status may be stale"))
        }
        Some(GroupStatus::Unknown(kinds)) if kinds.is_empty() => Answer::Unknown(INITIAL_LIST.to_owned()),
        Some(GroupStatus::Unknown(kinds)) => {
            let why = kinds.iter().map(|(kind, why)| match why {
                None => not_listed_yet(kind),
                Some(why) => not_readable(kind, why),
            });
            Answer::Unknown(why.collect::<Vec<_>>().join("; "))
        }
        None => Answer::Unknown("the controller is shutting down".to_owned()),
    }
}

fn not_listed_yet(kind: &GroupKind) -> String {
    format!("initial list of {kind} not complete")
}

fn not_readable(kind: &GroupKind, why: &Unreadable) -> String {
    match why {
        Unreadable::Forbidden { resource } => {
            let group = match &*kind.group {
                "" => "the core API group".to_owned(),
                group => format!("the API group {group}"),
            };
            format!(
                "cannot list {resource}: forbidden. Grant Bellwether the verbs get, list and watch on {resource} in {group}"
            )
        }
        _ => format!("cannot list {kind}: {why}"),
    }
}

fn not_found(group: &GroupRef, watch_namespace: Option<&str>) -> String {
    let short = |name: &Arc<str>| one_line(&**name, MAX_NAME).into_owned();
    let (kind, NamespacedName { namespace, name }) = (group.kind.kind().kind, &group.name);
    // Rollups are cluster-scoped, and a controller of one namespace does not manage them.
    let (object, other) = if namespace.is_empty() {
        (format!("{kind} {}", short(name)), watch_namespace)
    } else {
        (
            format!("{kind} {}/{}", short(namespace), short(name)),
            watch_namespace.filter(|other| **other != **namespace),
        )
    };
    match other {
        Some(other) => {
            format!("{object} is not managed: this controller runs with --watch-namespace {other}")
        }
        None => format!("{object} not found"),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::Dialect;
    use rstest::rstest;

    use super::*;

    fn application() -> GroupRef {
        GroupRef::new(OwnKind::Application(Dialect::Bellwether), NamespacedName::new("shop", "web"))
    }

    fn rollup(name: &str) -> GroupRef {
        GroupRef::new(OwnKind::Rollup, NamespacedName::new("", name))
    }

    fn forbidden() -> Unreadable {
        Unreadable::Forbidden { resource: "rollups".into() }
    }

    #[test]
    fn the_status_of_a_silent_cluster_is_unknown() {
        let status = GroupStatus::Silent { since: Timestamp::from_millisecond(819_500).expect("a time") };
        let Answer::Unknown(sentence) = answer(Some(status), &application(), None) else {
            panic!("the status is unknown")
        };
        assert!(sentence.contains("1970-01-01T00:13:39Z"), "{sentence}");
    }

    #[rstest]
    #[case::application(application(), None, "Application shop/web not found")]
    #[case::of_the_namespace(application(), Some("shop"), "Application shop/web not found")]
    #[case::of_another_namespace(
        application(),
        Some("infra"),
        "Application shop/web is not managed: this controller runs with --watch-namespace infra"
    )]
    #[case::rollup(rollup("all"), None, "Rollup all not found")]
    #[case::rollup_with_a_watched_namespace(
        rollup("all"),
        Some("infra"),
        "Rollup all is not managed: this controller runs with --watch-namespace infra"
    )]
    #[case::control_characters(rollup("a\nb\u{202e}"), None, "Rollup a b not found")]
    fn a_missing_group_is_named(
        #[case] group: GroupRef,
        #[case] watch_namespace: Option<&str>,
        #[case] message: &str,
    ) {
        assert_eq!(
            answer(Some(GroupStatus::NotFound), &group, watch_namespace),
            Answer::Absent(message.to_owned())
        );
    }

    #[test]
    fn a_long_name_is_cut() {
        let Answer::Absent(sentence) =
            answer(Some(GroupStatus::NotFound), &rollup(&"a".repeat(60_000)), None)
        else {
            panic!("the Rollup does not exist")
        };
        assert!(sentence.len() < 300, "{sentence}");
    }

    #[rstest]
    #[case::nothing(Some(vec![]), "initial list not complete")]
    #[case::not_listed_yet(
        Some(vec![(GroupKind::pod(), None), (GroupKind::new("apps", "Deployment"), None)]),
        "initial list of Pod not complete; initial list of Deployment.apps not complete"
    )]
    #[case::forbidden(
        Some(vec![(GroupKind::bellwether("Rollup"), Some(forbidden()))]),
        "cannot list rollups: forbidden. Grant Bellwether the verbs get, list and watch on rollups in the API \
         group bellwether.dev"
    )]
    #[case::shutting_down(None, "the controller is shutting down")]
    fn an_unknown_status_says_what_is_missing(
        #[case] kinds: Option<Vec<(GroupKind, Option<Unreadable>)>>,
        #[case] message: &str,
    ) {
        let answer = answer(kinds.map(GroupStatus::Unknown), &application(), None);
        assert_eq!(answer, Answer::Unknown(message.to_owned()));
    }
}
