//! Drives a reflector with a client and a clock, and sends its events to the engine.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use bellwether_engine::{FeedEvent, GroupKind, Lens, ResourceVersion};
use bellwether_wire::{
    Action, Discovered, Received, Reflector, list_watch_policy::ListWatchEnd, read_error::ReadError,
};
use kube::{api::ListParams, core::Request};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::{
    ClusterConnection,
    reader_counters::FeedLiveness,
    rest_mapper::Kinds,
    watch_stream::{Watch, list_request, send_and_read_page},
};
use crate::clock::now;

const REDISCOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The task of one kind.
pub(super) struct FeedTask<Id> {
    id: Id,
    reflector: Reflector,
    kinds: watch::Receiver<Option<Arc<Kinds>>>,
    connection: Arc<ClusterConnection>,
    events: mpsc::Sender<(Id, FeedEvent)>,
    liveness: Arc<FeedLiveness>,
}

impl<Id: Copy + Send + Sync + 'static> FeedTask<Id> {
    pub(super) fn new(
        id: Id,
        kind: GroupKind,
        lens: Arc<Lens>,
        connection: Arc<ClusterConnection>,
        events: mpsc::Sender<(Id, FeedEvent)>,
        liveness: Arc<FeedLiveness>,
    ) -> Self {
        let (namespace, backoff) = (connection.settings.namespace.clone(), connection.settings.backoff);
        let reflector = Reflector::new(kind, namespace, lens, backoff, rand::random());
        Self { id, reflector, kinds: connection.rest_mapper.kinds(), connection, events, liveness }
    }

    /// Runs until the receiver of the events or the sender of the lenses is dropped. A new lens leads to a
    /// relist.
    pub(super) async fn run(mut self, mut lenses: watch::Receiver<Arc<Lens>>) {
        let events = self.events.clone();
        let mut restored = self.connection.restored.subscribe();
        loop {
            tokio::select! {
                () = events.closed() => return,
                changed = lenses.changed() => match changed {
                    Ok(()) => self.reflector.set_lens(Arc::clone(&lenses.borrow_and_update())),
                    Err(_) => return,
                },
                // The connection keeps the sender.
                Ok(()) = restored.changed() => self.reflector.restored(),
                never = self.follow() => match never {},
            }
        }
    }

    /// Cancel-safe: events that were not sent stay in the reflector.
    async fn follow(&mut self) -> Infallible {
        loop {
            self.send_events().await;
            match self.reflector.next() {
                Action::Discover => {
                    let discovered = self.discovered();
                    if !self.reflector.discovered(&discovered, now()) {
                        self.send_events().await;
                        // The connection keeps the sender.
                        let _ = self.kinds.changed().await;
                    }
                }
                Action::Rediscover => {
                    let _ = timeout(REDISCOVERY_TIMEOUT, self.connection.rest_mapper.rediscover()).await;
                    let discovered = self.discovered();
                    self.reflector.discovered(&discovered, now());
                }
                Action::List { path, continue_token: rest } => self.list(path, rest).await,
                Action::Watch { path, resource_version: since } => {
                    if let Some(ended) = self.watch(path, &since).await {
                        self.connection.counters.errors.add(usize::from(ended.error.is_some()));
                        self.reflector.ended(ended, now());
                    }
                }
                Action::Sleep(pause) => {
                    sleep(pause).await;
                    self.reflector.slept();
                }
            }
        }
    }

    fn discovered(&mut self) -> Discovered {
        let kind = self.reflector.kind();
        match self.kinds.borrow_and_update().as_ref().map(|kinds| kinds.get(kind)) {
            Some(Some(served)) => Discovered::Served(served.clone()),
            Some(None) if self.connection.rest_mapper.is_unavailable(&kind.group) => Discovered::Unavailable,
            Some(None) => Discovered::NotServed,
            None => Discovered::Unknown,
        }
    }

    /// Requests one page.
    async fn list(&mut self, path: String, rest: Option<String>) {
        let connection = Arc::clone(&self.connection);
        if rest.is_none() {
            connection.counters.lists.add(1);
            connection.counters.relists.add(usize::from(self.reflector.has_listed()));
        }
        let mut parameters = ListParams::default().limit(connection.settings.page_size);
        parameters.continue_token = rest;
        let Some(reader) = self.reflector.page_reader(now()) else { return };
        let request = list_request(path, &parameters, self.reflector.metadata_only());
        let within = connection.settings.response_timeout;
        let page = send_and_read_page(&connection.client, request, within, reader).await;
        let now = now();
        if page.is_ok() {
            self.liveness.responded(now);
        }
        let received = self.reflector.page(page, now);
        self.count(received);
    }

    /// Returns `None` if the watch was abandoned because the kind is served in another version.
    async fn watch(&mut self, path: String, since: &ResourceVersion) -> Option<ListWatchEnd> {
        let connection = Arc::clone(&self.connection);
        connection.counters.watches.add(1);
        let (request, since, metadata_only) =
            (Request::new(path), since.as_str(), self.reflector.metadata_only());
        let watch = Watch::start(&connection, |parameters| {
            if metadata_only {
                request.watch_metadata(parameters, since)
            } else {
                request.watch(parameters, since)
            }
        });
        match watch.await {
            Ok(_) if !self.reflector.opened() => Some(ListWatchEnd { lasted: true, error: None }),
            Ok(mut watch) => {
                let liveness = Arc::clone(&self.liveness);
                let _open = (connection.counters.open_watches.guard(), liveness.open());
                let error = self.receive(&mut watch).await?;
                Some(ListWatchEnd { lasted: watch.has_lasted(), error })
            }
            Err(error) => Some(error.into()),
        }
    }

    /// Returns the error that ended the watch, `Some(None)` if it ended at its timeout, `None` if it was
    /// abandoned.
    async fn receive(&mut self, watch: &mut Watch) -> Option<Option<ReadError>> {
        self.liveness.responded(now());
        loop {
            let next = tokio::select! {
                next = watch.next() => next,
                _ = self.kinds.changed() => {
                    let discovered = self.discovered();
                    if self.reflector.discovered(&discovered, now()) {
                        return None;
                    }
                    continue;
                }
            };
            match next {
                Ok(true) => {}
                Ok(false) => return Some(None),
                Err(error) => return Some(Some(error)),
            }
            let now = now();
            self.liveness.responded(now);
            match self.reflector.line(watch.line(), now) {
                Ok(received) => {
                    self.count(received);
                    if received.bookmark {
                        watch.sends_bookmarks();
                    }
                }
                Err(error) => return Some(Some(error)),
            }
            self.send_events().await;
        }
    }

    async fn send_events(&mut self) {
        while self.reflector.has_events() {
            // Without a permit, the event stays in the reflector.
            let Ok(permit) = self.events.reserve().await else {
                // The receiver is dropped: `run` is about to return.
                return pending().await;
            };
            if let Some(event) = self.reflector.take() {
                self.liveness.sent(&event);
                permit.send((self.id, event));
            }
        }
    }

    fn count(&self, received: Received) {
        self.connection.counters.errors.add(usize::from(received.failed));
        self.connection.counters.decoded.add(received.decoded);
        self.connection.counters.malformed.add(received.malformed);
    }
}
