//! What probes and metrics tell.

use std::{future::Future, pin::Pin, sync::Arc};

use bellwether_engine::{GroupKind, GroupRef, GroupStatus, NamespacedName, OwnKind, Unreadable};
use bellwether_kube_io::{
    controller_loop::ControllerLoop, metrics::Metrics, status_queries::StatusHandle, write::Leadership,
};
use bellwether_model::text::one_line;
use bellwether_server::{Answer, Process};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::cli::Controller;

/// No object has a longer name.
const LONGEST_NAME: usize = 253;

/// What probes and metrics ask.
pub(super) struct Probes {
    metrics: Arc<Metrics>,
    leadership: watch::Receiver<Leadership>,
    handle: StatusHandle,
    /// The one namespace that is looked after, if it is not all of them.
    only: Option<String>,
    speaks_for: Option<GroupRef>,
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
            only: command.watch_namespace.clone(),
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
        let census = self.metrics.census();
        let mut waits: Vec<_> = census.unknown.iter().map(not_known_yet).collect();
        if !census.open && waits.is_empty() {
            waits.push("nothing is known yet".to_owned());
        }
        if *self.leadership.borrow() == (Leadership::Standby { holder: None }) {
            waits.push("it is not known yet who leads".to_owned());
        }
        waits
    }

    fn speaks_for(&self) -> Option<&GroupRef> {
        self.speaks_for.as_ref()
    }

    fn summary<'a>(&'a self, group: &'a GroupRef) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async {
            let insight = self.handle.summary(group.kind.kind(), group.name.clone()).await;
            answer(insight, group, self.only.as_deref())
        })
    }

    fn metrics(&self) -> String {
        self.metrics.text().unwrap_or_default()
    }
}

/// What is said of a group of which this is known; nothing is, once the controller has ended.
fn answer(insight: Option<GroupStatus>, group: &GroupRef, only: Option<&str>) -> Answer {
    match insight {
        Some(GroupStatus::Known(summary)) => Answer::Known(summary),
        Some(GroupStatus::NotFound) => Answer::Absent(absent(group, only)),
        Some(GroupStatus::Silent { since }) => {
            let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
            Answer::Unknown(format!(
                "the API server has not been heard from since {since}: nobody can tell what has become of it"
            ))
        }
        Some(GroupStatus::Unknown(kinds)) if kinds.is_empty() => {
            Answer::Unknown("nothing is known yet".to_owned())
        }
        Some(GroupStatus::Unknown(kinds)) => {
            let why = kinds.iter().map(|(kind, why)| match why {
                None => not_known_yet(kind),
                Some(why) => not_readable(kind, why),
            });
            Answer::Unknown(why.collect::<Vec<_>>().join("; "))
        }
        None => Answer::Unknown("the controller is ending".to_owned()),
    }
}

fn not_known_yet(kind: &GroupKind) -> String {
    format!("it is not known yet which {kind} there are")
}

fn not_readable(kind: &GroupKind, why: &Unreadable) -> String {
    let way_out = match why {
        Unreadable::Forbidden { resource } => {
            format!("; grant it get, list and watch on {resource} in the API group {:?}", &*kind.group)
        }
        _ => String::new(),
    };
    format!("nobody can tell which {kind} there are: {why}{way_out}")
}

fn absent(group: &GroupRef, only: Option<&str>) -> String {
    let short = |name: &Arc<str>| one_line(&**name, LONGEST_NAME).into_owned();
    let (kind, NamespacedName { namespace, name }) = (group.kind.kind().kind, &group.name);
    let it = format!("{kind} {}", short(name));
    // A Rollup is in no namespace, and a controller of one namespace follows none.
    let (place, only) = if namespace.is_empty() {
        (String::new(), only)
    } else {
        (format!(" in namespace {}", short(namespace)), only.filter(|only| **only != **namespace))
    };
    match only {
        Some(only) => {
            format!(
                "nobody looks after {it}{place}: this controller was started with --watch-namespace {only}"
            )
        }
        None => format!("{it} not found{place}"),
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
    fn a_silent_cluster_is_not_believed() {
        let insight = GroupStatus::Silent { since: Timestamp::from_millisecond(819_500).expect("a time") };
        let Answer::Unknown(sentence) = answer(Some(insight), &application(), None) else {
            panic!("nobody can tell")
        };
        assert!(sentence.contains("1970-01-01T00:13:39Z"), "{sentence}");
    }

    #[rstest]
    #[case::application(application(), None, "Application web not found in namespace shop")]
    #[case::of_the_namespace(application(), Some("shop"), "Application web not found in namespace shop")]
    #[case::of_another_namespace(
        application(),
        Some("infra"),
        "nobody looks after Application web in namespace shop: this controller was started with --watch-namespace infra"
    )]
    #[case::rollup(rollup("all"), None, "Rollup all not found")]
    #[case::rollup_of_no_namespace(
        rollup("all"),
        Some("infra"),
        "nobody looks after Rollup all: this controller was started with --watch-namespace infra"
    )]
    #[case::a_strange_name(rollup("a\nb\u{202e}"), None, "Rollup a b not found")]
    fn what_is_not_there_is_named(
        #[case] group: GroupRef,
        #[case] only: Option<&str>,
        #[case] sentence: &str,
    ) {
        assert_eq!(answer(Some(GroupStatus::NotFound), &group, only), Answer::Absent(sentence.to_owned()));
    }

    #[test]
    fn a_name_without_end_has_one() {
        let Answer::Absent(sentence) =
            answer(Some(GroupStatus::NotFound), &rollup(&"a".repeat(60_000)), None)
        else {
            panic!("there is no such Rollup")
        };
        assert!(sentence.len() < 300, "{sentence}");
    }

    #[rstest]
    #[case::nothing(Some(vec![]), "nothing is known yet")]
    #[case::listed_soon(
        Some(vec![(GroupKind::pod(), None), (GroupKind::new("apps", "Deployment"), None)]),
        "it is not known yet which Pod there are; it is not known yet which Deployment.apps there are"
    )]
    #[case::forbidden(
        Some(vec![(GroupKind::own("Rollup"), Some(forbidden()))]),
        "nobody can tell which Rollup.bellwether.dev there are: Bellwether may not read it; grant it get, list and watch on \
         rollups in the API group \"bellwether.dev\""
    )]
    #[case::the_end(None, "the controller is ending")]
    fn what_is_not_known_is_waited_for(
        #[case] kinds: Option<Vec<(GroupKind, Option<Unreadable>)>>,
        #[case] sentence: &str,
    ) {
        let answered = answer(kinds.map(GroupStatus::Unknown), &application(), None);
        assert_eq!(answered, Answer::Unknown(sentence.to_owned()));
    }
}
