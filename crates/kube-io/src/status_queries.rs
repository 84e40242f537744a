//! The status of groups, for tasks that do not have the engine: as a single query, or as a subscription. Other
//! queries to the loop that has the engine take the same way.

use bellwether_engine::{
    BoundRows, BoundRowsQuery, Cluster, ClusterSource as _, ClusterSources, Driver, GroupKind, GroupSamples,
    GroupStatus, NamespacedName, OwnKind, ServedResource,
};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, oneshot, watch};

use crate::connected_cluster::ConnectedCluster;

const QUEUE_SIZE: usize = 64;

/// Sends queries to the loop that has the engine.
#[derive(Clone, Debug)]
pub struct StatusHandle(mpsc::Sender<Query>);

impl StatusHandle {
    /// `None` if the loop has ended.
    pub async fn summary(&self, kind: GroupKind, name: NamespacedName) -> Option<GroupStatus> {
        let (answer, response) = oneshot::channel();
        self.0.send(Query::Summary { kind, name, answer }).await.ok()?;
        response.await.ok()
    }

    /// At most `limit` groups, for metrics. `None` if the loop has ended.
    pub async fn group_samples(&self, limit: usize) -> Option<GroupSamples> {
        let (answer, response) = oneshot::channel();
        self.0.send(Query::GroupSamples { limit, answer }).await.ok()?;
        response.await.ok()
    }

    /// See [`Driver::bound_rows`]. `None` if the loop has ended.
    pub(crate) async fn bound_rows(&self, query: BoundRowsQuery) -> Option<Option<BoundRows>> {
        let (answer, response) = oneshot::channel();
        self.0.send(Query::BoundRows { query: Box::new(query), answer }).await.ok()?;
        response.await.ok()
    }

    /// The connections to clusters, and how each serves a kind. `None` if the loop has ended.
    pub(crate) async fn connections(
        &self,
        kind: GroupKind,
        clusters: Vec<Cluster>,
    ) -> Option<Vec<Option<Connected>>> {
        let (answer, response) = oneshot::channel();
        self.0.send(Query::Connections { kind, clusters, answer }).await.ok()?;
        response.await.ok()
    }
}

/// The client of a cluster, and how it serves a kind, if it does.
pub(crate) type Connected = (Client, Option<ServedResource>);

pub(crate) enum Query {
    Summary { kind: GroupKind, name: NamespacedName, answer: oneshot::Sender<GroupStatus> },
    GroupSamples { limit: usize, answer: oneshot::Sender<GroupSamples> },
    BoundRows { query: Box<BoundRowsQuery>, answer: oneshot::Sender<Option<BoundRows>> },
    Connections { kind: GroupKind, clusters: Vec<Cluster>, answer: oneshot::Sender<Vec<Option<Connected>>> },
}

impl Query {
    pub(crate) fn answer(
        self,
        driver: &Driver,
        connected: &ClusterSources<ConnectedCluster>,
        now: Timestamp,
    ) {
        // Sending fails if the receiver was dropped meanwhile.
        match self {
            Self::Summary { kind, name, answer } if !answer.is_closed() => {
                let _ = answer.send(driver.summary(now, &kind, &name));
            }
            Self::GroupSamples { limit, answer } if !answer.is_closed() => {
                let _ = answer.send(driver.group_samples(limit));
            }
            Self::BoundRows { query, answer } if !answer.is_closed() => {
                let _ = answer.send(driver.bound_rows(&query));
            }
            Self::Connections { kind, clusters, answer } if !answer.is_closed() => {
                let connection = |cluster: &Cluster| {
                    let connected = connected.get(cluster).ok()?;
                    Some((connected.client.clone(), connected.served(&kind)))
                };
                let _ = answer.send(clusters.iter().map(connection).collect());
            }
            Self::Summary { .. }
            | Self::GroupSamples { .. }
            | Self::BoundRows { .. }
            | Self::Connections { .. } => {}
        }
    }
}

pub(crate) struct StatusQueries {
    queries: mpsc::Receiver<Query>,
    handle: StatusHandle,
    subscribers: Vec<Subscriber>,
}

struct Subscriber {
    kind: GroupKind,
    name: NamespacedName,
    sender: watch::Sender<GroupStatus>,
}

impl StatusQueries {
    pub(crate) fn new() -> Self {
        let (sender, queries) = mpsc::channel(QUEUE_SIZE);
        Self { queries, handle: StatusHandle(sender), subscribers: Vec::new() }
    }

    pub(crate) fn handle(&self) -> StatusHandle {
        self.handle.clone()
    }

    /// The value is `Unknown` until the first step of the engine.
    pub(crate) fn follow(&mut self, kind: GroupKind, name: NamespacedName) -> watch::Receiver<GroupStatus> {
        let (sender, receiver) = watch::channel(GroupStatus::Unknown(Vec::new()));
        self.subscribers.push(Subscriber { kind, name, sender });
        receiver
    }

    pub(crate) async fn query(&mut self) -> Option<Query> {
        self.queries.recv().await
    }

    /// Sends the status of a group, or of all groups of a kind, to its subscribers if it has changed. Groups
    /// without subscribers are not evaluated.
    pub(crate) fn notify(
        &mut self,
        driver: &Driver,
        now: Timestamp,
        kind: OwnKind,
        name: Option<&NamespacedName>,
    ) {
        self.subscribers.retain(|subscriber| !subscriber.sender.is_closed());
        let is_concerned = |subscriber: &&Subscriber| {
            OwnKind::of(&subscriber.kind) == Some(kind) && name.is_none_or(|name| subscriber.name == *name)
        };
        for Subscriber { kind, name, sender } in self.subscribers.iter().filter(is_concerned) {
            let status = driver.summary(now, kind, name);
            sender.send_if_modified(|before| {
                let has_changed = *before != status;
                *before = status;
                has_changed
            });
        }
    }

    /// Ends all queries and subscriptions.
    pub(crate) fn close(&mut self) {
        self.queries.close();
        while self.queries.try_recv().is_ok() {}
        self.subscribers.clear();
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Effect, Engine, Event, FeedEvent, Now};

    use super::*;

    fn now() -> Now {
        Now { time: Timestamp::UNIX_EPOCH, passed: std::time::Duration::ZERO }
    }

    fn group() -> (GroupKind, NamespacedName) {
        (GroupKind::bellwether("Application"), NamespacedName::new("shop", "web"))
    }

    /// An engine before the first list, and the events of empty lists of all its kinds.
    fn driver() -> (Driver, Vec<Event>) {
        let mut driver = Driver::new(Engine::new(), 1);
        let mut lists = Vec::new();
        for effect in driver.step(now(), []) {
            if let Effect::Follow { feed, .. } = effect {
                lists.extend([
                    Event::Feed(feed, FeedEvent::ListStarted),
                    Event::Feed(feed, FeedEvent::ListCompleted),
                ]);
            }
        }
        (driver, lists)
    }

    #[tokio::test]
    async fn a_query_gets_the_status() {
        let (mut driver, lists) = driver();
        driver.step(now(), lists);
        let mut queries = StatusQueries::new();
        let (kind, name) = group();
        let handle = queries.handle();
        let response = tokio::spawn(async move { handle.summary(kind, name).await });
        queries.query().await.unwrap().answer(&driver, &ClusterSources::default(), now().time);
        assert_eq!(response.await.unwrap(), Some(GroupStatus::NotFound));
    }

    #[tokio::test]
    async fn a_query_after_the_end_gets_nothing() {
        let mut queries = StatusQueries::new();
        let (early, late) = (queries.handle(), queries.handle());
        let (kind, name) = group();
        let waiting = tokio::spawn(async move { early.summary(kind, name).await });
        tokio::task::yield_now().await;
        queries.close();
        assert_eq!(waiting.await.unwrap(), None);
        let (kind, name) = group();
        assert_eq!(late.summary(kind, name).await, None);
    }

    #[test]
    fn a_subscriber_gets_changes_only() {
        let (mut driver, lists) = driver();
        let mut queries = StatusQueries::new();
        let (kind, name) = group();
        let own = OwnKind::of(&kind).unwrap();
        let mut receiver = queries.follow(kind, name.clone());
        queries.notify(&driver, now().time, own, Some(&name));
        assert!(receiver.has_changed().unwrap(), "the unlisted kinds are known");
        assert!(matches!(&*receiver.borrow_and_update(), GroupStatus::Unknown(kinds) if !kinds.is_empty()));
        queries.notify(&driver, now().time, own, Some(&name));
        assert!(!receiver.has_changed().unwrap(), "nothing has changed");

        let effects = driver.step(now(), lists);
        assert!(effects.contains(&Effect::Changed(own, None)), "all Applications are listed");
        queries.notify(&driver, now().time, OwnKind::Rollup, None);
        queries.notify(&driver, now().time, own, Some(&NamespacedName::new("shop", "other")));
        assert!(!receiver.has_changed().unwrap(), "changes of other groups are not sent");
        queries.notify(&driver, now().time, own, None);
        assert_eq!(*receiver.borrow_and_update(), GroupStatus::NotFound);

        drop(receiver);
        queries.notify(&driver, now().time, own, None);
        assert!(queries.subscribers.is_empty(), "the receiver is gone");
    }

    #[tokio::test]
    async fn a_subscriber_sees_the_end() {
        let mut queries = StatusQueries::new();
        let (kind, name) = group();
        let mut receiver = queries.follow(kind, name);
        queries.close();
        assert!(receiver.changed().await.is_err());
    }
}
