//! Drives a follower with a network and a clock: what it wants to know is asked, and what it has to tell is told.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use bellwether_engine::{FeedEvent, GroupKind, Lens, ResourceVersion};
use bellwether_wire::{
    Action, Discovered, Received, Reflector, list_watch_policy::Ended, read_error::ReadError,
};
use kube::{api::ListParams, core::Request};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::{
    ClusterConnection,
    answer::{Watch, ask_all},
    rest_mapper::Kinds,
    tally::FeedLiveness,
};
use crate::clock::now;

/// How long to wait for another look at which kinds there are.
const LOOK: Duration = Duration::from_secs(30);

/// Follows one kind.
pub(super) struct Feed<Id> {
    id: Id,
    follower: Reflector,
    kinds: watch::Receiver<Option<Arc<Kinds>>>,
    connection: Arc<ClusterConnection>,
    news: mpsc::Sender<(Id, FeedEvent)>,
    liveness: Arc<FeedLiveness>,
}

impl<Id: Copy + Send + Sync + 'static> Feed<Id> {
    pub(super) fn new(
        id: Id,
        kind: GroupKind,
        lens: Arc<Lens>,
        connection: Arc<ClusterConnection>,
        news: mpsc::Sender<(Id, FeedEvent)>,
        liveness: Arc<FeedLiveness>,
    ) -> Self {
        let (namespace, pauses) = (connection.settings.namespace.clone(), connection.settings.pauses);
        let follower = Reflector::new(kind, namespace, lens, pauses, rand::random());
        Self { id, follower, kinds: connection.rest_mapper.kinds(), connection, news, liveness }
    }

    /// Follows the kind until nobody listens any more. When the lens changes, everything is listed once more.
    pub(super) async fn run(mut self, mut lenses: watch::Receiver<Arc<Lens>>) {
        let news = self.news.clone();
        loop {
            tokio::select! {
                () = news.closed() => return,
                changed = lenses.changed() => match changed {
                    Ok(()) => self.follower.set_lens(Arc::clone(&lenses.borrow_and_update())),
                    Err(_) => return,
                },
                never = self.follow() => match never {},
            }
        }
    }

    /// It may be dropped at any time: what was not told by then is told when it is called again.
    async fn follow(&mut self) -> Infallible {
        loop {
            self.tell().await;
            match self.follower.next() {
                Action::Discover => {
                    let found = self.find();
                    if !self.follower.discovered(&found, now()) {
                        self.tell().await;
                        // What sends lives as long as the place does.
                        let _ = self.kinds.changed().await;
                    }
                }
                Action::Rediscover => {
                    let _ = timeout(LOOK, self.connection.rest_mapper.rediscover()).await;
                    let found = self.find();
                    self.follower.discovered(&found, now());
                }
                Action::List { path, rest } => self.list(path, rest).await,
                Action::Watch { path, since } => {
                    if let Some(ended) = self.watch(path, &since).await {
                        self.connection.tally.errors.add(usize::from(ended.trouble.is_some()));
                        self.follower.ended(ended, now());
                    }
                }
                Action::Sleep(pause) => {
                    sleep(pause).await;
                    self.follower.slept();
                }
            }
        }
    }

    /// Whether the cluster serves the kind, as far as is known.
    fn find(&mut self) -> Discovered {
        let kind = self.follower.kind();
        match self.kinds.borrow_and_update().as_ref().map(|kinds| kinds.get(kind)) {
            Some(Some(served)) => Discovered::Served(served.clone()),
            Some(None) if self.connection.rest_mapper.is_silent(&kind.group) => Discovered::Unavailable,
            Some(None) => Discovered::NotServed,
            None => Discovered::Unknown,
        }
    }

    /// Asks for a page of the list.
    async fn list(&mut self, path: String, rest: Option<String>) {
        let connection = Arc::clone(&self.connection);
        if rest.is_none() {
            connection.tally.lists.add(1);
            connection.tally.relists.add(usize::from(self.follower.has_listed()));
        }
        let mut parameters = ListParams::default().limit(connection.settings.page_size);
        parameters.continue_token = rest;
        let question = Request::new(path).list(&parameters);
        let answer = ask_all(&connection.client, question, connection.settings.answers_within).await;
        let now = now();
        if answer.is_ok() {
            self.liveness.beat(now);
        }
        let heard = self.follower.page(answer.as_deref().map_err(ReadError::clone), now);
        self.count(heard);
    }

    /// Watches what becomes of the objects since this version. Gives how that ended, if it did by itself.
    async fn watch(&mut self, path: String, since: &ResourceVersion) -> Option<Ended> {
        let connection = Arc::clone(&self.connection);
        connection.tally.watches.add(1);
        let request = Request::new(path);
        match Watch::begin(&connection, |parameters| request.watch(parameters, since.as_str())).await {
            Ok(_) if !self.follower.opened() => Some(Ended { lived: true, trouble: None }),
            Ok(mut watch) => {
                let liveness = Arc::clone(&self.liveness);
                let _open = (connection.tally.open_watches.one(), liveness.open());
                let trouble = self.hear(&mut watch).await?;
                Some(Ended { lived: watch.has_lived(), trouble })
            }
            Err(trouble) => Some(trouble.into()),
        }
    }

    /// Tells what a watch tells, until it ends, with some trouble or without, or the kind is served in another way.
    async fn hear(&mut self, watch: &mut Watch) -> Option<Option<ReadError>> {
        self.liveness.beat(now());
        loop {
            let next = tokio::select! {
                next = watch.next() => next,
                _ = self.kinds.changed() => {
                    let found = self.find();
                    if self.follower.discovered(&found, now()) {
                        return None;
                    }
                    continue;
                }
            };
            match next {
                Ok(true) => {}
                Ok(false) => return Some(None),
                Err(trouble) => return Some(Some(trouble)),
            }
            let now = now();
            self.liveness.beat(now);
            match self.follower.line(watch.line(), now) {
                Ok(heard) => {
                    self.count(heard);
                    if heard.bookmark {
                        watch.speaks();
                    }
                }
                Err(trouble) => return Some(Some(trouble)),
            }
            self.tell().await;
        }
    }

    /// Tells what there is to tell.
    async fn tell(&mut self) {
        while self.follower.has_events() {
            // What cannot be told now stays where it is.
            let Ok(room) = self.news.reserve().await else {
                // Nobody listens any more: the task is about to end.
                return pending().await;
            };
            if let Some(news) = self.follower.take() {
                self.liveness.told(&news);
                room.send((self.id, news));
            }
        }
    }

    fn count(&self, heard: Received) {
        self.connection.tally.errors.add(usize::from(heard.failed));
        self.connection.tally.read.add(heard.read);
        self.connection.tally.unreadable.add(heard.malformed);
    }
}
