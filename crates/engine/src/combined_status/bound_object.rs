//! An object in one of the clusters that it is bound to: its state, and why, for every reader.

use std::borrow::Cow;

use bellwether_api::State;
use bellwether_health::Verdict;
use jiff::Timestamp;

use crate::{
    event::Unreadable,
    feeds::{Feed, Feeds, StoredObject},
    group_clusters::ClusterReport,
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    reasons::{application, binding_policy as reasons},
    requested_fields::RequestedFields,
};

use super::{
    CombinedStatuses,
    row::{Presence, Report},
    rows::report,
};

pub(super) struct BoundObject<'a> {
    pub(super) kind: &'a GroupKind,
    pub(super) name: &'a NamespacedName,
    pub(super) cluster: &'a Cluster,
    /// `None` if no clause asks for the state of the object.
    feed: Option<&'a Feed>,
    pub(super) stored: Option<&'a StoredObject>,
    /// `None` before the first list, or if no clause asks for the state of the object.
    pub(super) report: Option<Report<'a>>,
    last_heard: Option<Timestamp>,
}

pub(super) struct BoundState<'a> {
    pub(super) state: State,
    /// `None` if the state is `Unknown`.
    pub(super) progress: Option<u8>,
    pub(super) reason: &'a str,
    pub(super) message: Cow<'a, str>,
    pub(super) since: Option<Timestamp>,
}

impl CombinedStatuses {
    /// `presence`: of the rows of its bindings, which CombinedStatuses are made from.
    pub(super) fn bound_object<'a>(
        &self,
        (kind, name): (&'a GroupKind, &'a NamespacedName),
        cluster: &'a Cluster,
        (feed, presence): (Option<FeedId>, Option<Presence>),
        feeds: &'a Feeds,
    ) -> BoundObject<'a> {
        let stored = feed.and_then(|feed| feeds.object(feeds.find_in(feed, name)?));
        let feed = feed.and_then(|feed| feeds.get(feed));
        let report = feed.zip(presence).and_then(|(feed, presence)| {
            report(feed, stored, &RequestedFields::default(), presence == Presence::Stale, true)
        });
        let last_heard = self.inventory.get(cluster).and_then(|entry| entry.last_heard);
        BoundObject { kind, name, cluster, feed, stored, report, last_heard }
    }
}

impl<'a> BoundObject<'a> {
    pub(super) fn state(&self) -> BoundState<'a> {
        let (state, progress) = self.report.map_or((State::Unknown, None), |report| report.health());
        let (reason, message, since) = match &self.report {
            None => (reasons::NOT_READ, Cow::Borrowed(self.why_not_read()), None),
            Some(report) if report.is_stale => {
                let (reason, message) = self.why_stale();
                (reason, Cow::Owned(message), self.last_heard)
            }
            Some(Report { facts: Some(facts), .. }) => {
                let verdict = &facts.verdict;
                (&*verdict.reason, Cow::Borrowed(&*verdict.message), verdict.since)
            }
            Some(_) => (application::NOT_FOUND, Cow::Borrowed("not found"), None),
        };
        BoundState { state, progress, reason, message, since }
    }

    /// `None` unless the cluster reports the object.
    pub(super) fn verdict(&self) -> Option<&'a Verdict> {
        let report = self.report.filter(|report| !report.is_stale);
        report?.facts.map(|facts| &facts.verdict)
    }

    pub(super) fn cluster_report(&self) -> ClusterReport {
        match self.report.as_ref().map(Report::presence) {
            // A policy that asks for nothing reads nothing.
            None => ClusterReport::Pending,
            Some(Presence::Reporting) => ClusterReport::Reporting,
            Some(Presence::Missing) => ClusterReport::Missing,
            Some(Presence::Stale) => {
                let unreadable = self.unreadable().map(|why| format!("{}: {why}", self.kind));
                let last_heard = self.last_heard.filter(|_| unreadable.is_none());
                ClusterReport::Stale { unreadable, last_heard }
            }
        }
    }

    fn why_not_read(&self) -> &'static str {
        match self.feed {
            Some(_) => "not read yet",
            None => "not read: no clause of a BindingPolicy asks for the state of the object",
        }
    }

    /// Why the kind cannot be read, although its cluster is connected.
    fn unreadable(&self) -> Option<&'a Unreadable> {
        let unreadable = self.feed.and_then(|feed| feed.unreadable.as_ref());
        unreadable.filter(|why| !matches!(why, Unreadable::NotConnected | Unreadable::NotServed))
    }

    fn why_stale(&self) -> (&'a str, String) {
        let cluster = self.cluster.name();
        let (reason, why) = match (self.unreadable(), self.last_heard) {
            (Some(why), _) => (why.reason(), format!("{why}{}", why.remedy(self.kind))),
            (None, Some(heard)) if self.feed.is_some_and(|feed| feed.listed) => {
                let heard = heard.strftime("%Y-%m-%d %H:%M UTC");
                let why = format!("cluster {cluster} not heard from since {heard}");
                (reasons::CLUSTER_UNREACHABLE, why)
            }
            (None, _) => (reasons::CLUSTER_UNREACHABLE, format!("no response from cluster {cluster}")),
        };
        let last = match self.report {
            Some(Report { facts: Some(facts), .. }) => {
                let verdict = &facts.verdict;
                format!("; it last reported {}: {}", verdict.state.name(), verdict.message)
            }
            Some(Report { found: Some(false), .. }) => "; the object was last not found there".to_owned(),
            _ => String::new(),
        };
        (reason, why + &last)
    }
}
