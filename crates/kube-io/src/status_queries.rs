//! Those who want to know how a group is, and do not have the engine: they ask once, or are told whenever it differs.

use bellwether_engine::{Driver, GroupKind, GroupStatus, NamespacedName, OwnKind};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

/// So many questions may wait. Whoever has one more waits until there is room.
const QUESTIONS_WAITING: usize = 64;

/// Asks how groups are, from wherever.
#[derive(Clone, Debug)]
pub struct StatusHandle(mpsc::Sender<Query>);

impl StatusHandle {
    /// How a group is as one. There is no answer if the loop that has the engine has ended.
    pub async fn summary(&self, kind: GroupKind, name: NamespacedName) -> Option<GroupStatus> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Query { kind, name, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// How is this group?
#[derive(Debug)]
pub(crate) struct Query {
    kind: GroupKind,
    name: NamespacedName,
    answer: oneshot::Sender<GroupStatus>,
}

impl Query {
    /// Answers it, if somebody still waits for that.
    pub(crate) fn answer(self, driver: &Driver, now: Timestamp) {
        if !self.answer.is_closed() {
            // Whoever goes at this very moment does not need it.
            let _ = self.answer.send(driver.summary(now, &self.kind, &self.name));
        }
    }
}

/// All who want to know.
pub(crate) struct StatusQueries {
    queries: mpsc::Receiver<Query>,
    handle: StatusHandle,
    subscribers: Vec<Subscriber>,
}

/// Somebody who is told whenever it differs.
struct Subscriber {
    kind: GroupKind,
    name: NamespacedName,
    told: watch::Sender<GroupStatus>,
}

impl StatusQueries {
    pub(crate) fn new() -> Self {
        let (sender, queries) = mpsc::channel(QUESTIONS_WAITING);
        Self { queries, handle: StatusHandle(sender), subscribers: Vec::new() }
    }

    /// For those who want to ask.
    pub(crate) fn handle(&self) -> StatusHandle {
        self.handle.clone()
    }

    /// For somebody who wants to be told. Before the first step, nobody can tell anything.
    pub(crate) fn follow(&mut self, kind: GroupKind, name: NamespacedName) -> watch::Receiver<GroupStatus> {
        let (told, follows) = watch::channel(GroupStatus::Unknown(Vec::new()));
        self.subscribers.push(Subscriber { kind, name, told });
        follows
    }

    /// The next question; it may never come.
    pub(crate) async fn query(&mut self) -> Option<Query> {
        self.queries.recv().await
    }

    /// A group may have changed, or all of a kind: tells those who follow it. What nobody listens to is not even looked at.
    pub(crate) fn notify(
        &mut self,
        driver: &Driver,
        now: Timestamp,
        kind: OwnKind,
        name: Option<&NamespacedName>,
    ) {
        self.subscribers.retain(|subscriber| !subscriber.told.is_closed());
        let is_it = |subscriber: &&Subscriber| {
            OwnKind::of(&subscriber.kind) == Some(kind) && name.is_none_or(|name| subscriber.name == *name)
        };
        for Subscriber { kind, name, told } in self.subscribers.iter().filter(is_it) {
            let insight = driver.summary(now, kind, name);
            told.send_if_modified(|before| {
                let differs = *before != insight;
                *before = insight;
                differs
            });
        }
    }

    /// Nobody is answered any more: those who wait learn it now.
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
        (GroupKind::own("Application"), NamespacedName::new("shop", "web"))
    }

    /// An engine that knows nothing yet, and what will tell it that there is nothing.
    fn driver() -> (Driver, Vec<Event>) {
        let mut driver = Driver::new(Engine::new(), 1);
        let mut news = Vec::new();
        for effect in driver.step(now(), []) {
            if let Effect::Follow { feed, .. } = effect {
                news.extend([
                    Event::Feed(feed, FeedEvent::ListStarted),
                    Event::Feed(feed, FeedEvent::ListCompleted),
                ]);
            }
        }
        (driver, news)
    }

    #[tokio::test]
    async fn who_asks_is_answered() {
        let (mut driver, news) = driver();
        driver.step(now(), news);
        let mut queries = StatusQueries::new();
        let (kind, name) = group();
        let handle = queries.handle();
        let answered = tokio::spawn(async move { handle.summary(kind, name).await });
        queries.query().await.unwrap().answer(&driver, now().time);
        assert_eq!(answered.await.unwrap(), Some(GroupStatus::NotFound));
    }

    #[tokio::test]
    async fn who_asks_too_late_learns_that_nobody_answers() {
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
    fn who_follows_is_told_only_what_differs() {
        let (mut driver, news) = driver();
        let mut queries = StatusQueries::new();
        let (kind, name) = group();
        let own = OwnKind::of(&kind).unwrap();
        let mut follows = queries.follow(kind, name.clone());
        queries.notify(&driver, now().time, own, Some(&name));
        assert!(follows.has_changed().unwrap(), "it is known now what is waited for");
        assert!(matches!(&*follows.borrow_and_update(), GroupStatus::Unknown(kinds) if !kinds.is_empty()));
        queries.notify(&driver, now().time, own, Some(&name));
        assert!(!follows.has_changed().unwrap(), "it is as it was");

        let effects = driver.step(now(), news);
        assert!(effects.contains(&Effect::Changed(own, None)), "all Applications are known now");
        queries.notify(&driver, now().time, OwnKind::Rollup, None);
        queries.notify(&driver, now().time, own, Some(&NamespacedName::new("shop", "other")));
        assert!(!follows.has_changed().unwrap(), "others are no concern of theirs");
        queries.notify(&driver, now().time, own, None);
        assert_eq!(*follows.borrow_and_update(), GroupStatus::NotFound);

        drop(follows);
        queries.notify(&driver, now().time, own, None);
        assert!(queries.subscribers.is_empty(), "nobody listens any more");
    }

    #[tokio::test]
    async fn who_follows_learns_the_end() {
        let mut queries = StatusQueries::new();
        let (kind, name) = group();
        let mut follows = queries.follow(kind, name);
        queries.close();
        assert!(follows.changed().await.is_err());
    }
}
