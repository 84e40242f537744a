//! What probes and metrics tell.

use std::{future::Future, pin::Pin, sync::Arc};

use bellwether_engine::{Insight, Kind, Name, Unreadable};
use bellwether_kube_io::{audience::Inquirer, spine::Spine, vitals::Vitals, write::Leadership};
use bellwether_model::text::one_line;
use bellwether_server::{Answer, Condition, Group, Outlook, Process};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::cli::Controller;

/// No object has a longer name.
const LONGEST_NAME: usize = 253;

/// What probes and metrics ask.
pub(super) struct Probed {
    vitals: Arc<Vitals>,
    leadership: watch::Receiver<Leadership>,
    inquirer: Inquirer,
    /// The one namespace that is looked after, if it is not all of them.
    only: Option<String>,
    speaks_for: Option<Group>,
}

impl Probed {
    pub(super) fn new(command: &Controller, spine: &Spine, leadership: watch::Receiver<Leadership>) -> Self {
        Self {
            vitals: Arc::clone(spine.vitals()),
            leadership,
            inquirer: spine.inquirer(),
            only: command.watch_namespace.clone(),
            speaks_for: command.rollups.readiness_rollup.clone().map(|name| Group::Rollup { name }),
        }
    }
}

impl Process for Probed {
    fn waits_for(&self) -> Vec<String> {
        let census = self.vitals.census();
        let mut waits: Vec<_> = census.unknown.iter().map(not_known_yet).collect();
        if !census.open && waits.is_empty() {
            waits.push("nothing is known yet".to_owned());
        }
        if *self.leadership.borrow() == (Leadership::Standby { holder: None }) {
            waits.push("it is not known yet who leads".to_owned());
        }
        waits
    }

    fn speaks_for(&self) -> Option<&Group> {
        self.speaks_for.as_ref()
    }

    fn outlook<'a>(&'a self, group: &'a Group) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let (kind, name) = match group {
            Group::Rollup { name } => (Kind::own("Rollup"), Name::new("", name)),
            Group::Application { namespace, name } => (Kind::own("Application"), Name::new(namespace, name)),
        };
        Box::pin(async {
            let insight = self.inquirer.outlook(kind, name).await;
            answer(insight, group, self.only.as_deref())
        })
    }

    fn metrics(&self) -> String {
        self.vitals.text().unwrap_or_default()
    }
}

/// What is said of a group of which this is known; nothing is, once the controller has ended.
fn answer(insight: Option<Insight>, group: &Group, only: Option<&str>) -> Answer {
    match insight {
        Some(Insight::Known(outlook)) => Answer::Known(Outlook {
            healthy: outlook.healthy,
            state: outlook.state.name().to_owned(),
            since: outlook.since.map(|since| since.to_string()),
            meaning: outlook.meaning,
            conditions: outlook
                .conditions
                .into_iter()
                .map(|(kind, says)| Condition {
                    kind: kind.to_owned(),
                    status: says.status.name().to_owned(),
                    reason: says.reason.into_owned(),
                    message: says.message.into_owned(),
                })
                .collect(),
        }),
        Some(Insight::Absent) => Answer::Absent(absent(group, only)),
        Some(Insight::Silent { since }) => {
            let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
            Answer::Unknown(format!(
                "the API server has not been heard from since {since}: nobody can tell what has become of it"
            ))
        }
        Some(Insight::Unknown(kinds)) if kinds.is_empty() => {
            Answer::Unknown("nothing is known yet".to_owned())
        }
        Some(Insight::Unknown(kinds)) => {
            let why = kinds.iter().map(|(kind, why)| match why {
                None => not_known_yet(kind),
                Some(why) => not_readable(kind, why),
            });
            Answer::Unknown(why.collect::<Vec<_>>().join("; "))
        }
        None => Answer::Unknown("the controller is ending".to_owned()),
    }
}

fn not_known_yet(kind: &Kind) -> String {
    format!("it is not known yet which {kind} there are")
}

fn not_readable(kind: &Kind, why: &Unreadable) -> String {
    let way_out = match why {
        Unreadable::Forbidden { resource } => {
            format!("; grant it get, list and watch on {resource} in the API group {:?}", &*kind.group)
        }
        _ => String::new(),
    };
    format!("nobody can tell which {kind} there are: {why}{way_out}")
}

fn absent(group: &Group, only: Option<&str>) -> String {
    let name = |name| one_line(name, LONGEST_NAME);
    // Rollups are in no namespace, and are left alone where only one is looked after.
    let (it, only) = match group {
        Group::Rollup { name: rollup } => (format!("Rollup {}", name(rollup)), only),
        Group::Application { namespace, name: application } => (
            format!("Application {} in namespace {}", name(application), name(namespace)),
            only.filter(|only| only != namespace),
        ),
    };
    match only {
        Some(only) => {
            format!("nobody looks after {it}: this controller was started with --watch-namespace {only}")
        }
        None => format!("there is no {it}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn application() -> Group {
        Group::Application { namespace: "shop".to_owned(), name: "web".to_owned() }
    }

    fn rollup(name: &str) -> Group {
        Group::Rollup { name: name.to_owned() }
    }

    fn forbidden() -> Unreadable {
        Unreadable::Forbidden { resource: "rollups".into() }
    }

    #[test]
    fn a_silent_cluster_is_not_believed() {
        let insight = Insight::Silent { since: Timestamp::from_millisecond(819_500).expect("a time") };
        let Answer::Unknown(sentence) = answer(Some(insight), &application(), None) else {
            panic!("nobody can tell")
        };
        assert!(sentence.contains("1970-01-01T00:13:39Z"), "{sentence}");
    }

    #[rstest]
    #[case::application(application(), None, "there is no Application web in namespace shop")]
    #[case::of_the_namespace(application(), Some("shop"), "there is no Application web in namespace shop")]
    #[case::of_another_namespace(
        application(),
        Some("infra"),
        "nobody looks after Application web in namespace shop: this controller was started with --watch-namespace infra"
    )]
    #[case::rollup(rollup("all"), None, "there is no Rollup all")]
    #[case::rollup_of_no_namespace(
        rollup("all"),
        Some("infra"),
        "nobody looks after Rollup all: this controller was started with --watch-namespace infra"
    )]
    #[case::a_strange_name(rollup("a\nb\u{202e}"), None, "there is no Rollup a b")]
    fn what_is_not_there_is_named(#[case] group: Group, #[case] only: Option<&str>, #[case] sentence: &str) {
        assert_eq!(answer(Some(Insight::Absent), &group, only), Answer::Absent(sentence.to_owned()));
    }

    #[test]
    fn a_name_without_end_has_one() {
        let Answer::Absent(sentence) = answer(Some(Insight::Absent), &rollup(&"a".repeat(60_000)), None)
        else {
            panic!("there is no such Rollup")
        };
        assert!(sentence.len() < 300, "{sentence}");
    }

    #[rstest]
    #[case::nothing(Some(vec![]), "nothing is known yet")]
    #[case::listed_soon(
        Some(vec![(Kind::pod(), None), (Kind::new("apps", "Deployment"), None)]),
        "it is not known yet which Pod there are; it is not known yet which Deployment.apps there are"
    )]
    #[case::forbidden(
        Some(vec![(Kind::own("Rollup"), Some(forbidden()))]),
        "nobody can tell which Rollup.bellwether.dev there are: Bellwether may not read it; grant it get, list and watch on \
         rollups in the API group \"bellwether.dev\""
    )]
    #[case::the_end(None, "the controller is ending")]
    fn what_is_not_known_is_waited_for(
        #[case] kinds: Option<Vec<(Kind, Option<Unreadable>)>>,
        #[case] sentence: &str,
    ) {
        let answered = answer(kinds.map(Insight::Unknown), &application(), None);
        assert_eq!(answered, Answer::Unknown(sentence.to_owned()));
    }
}
