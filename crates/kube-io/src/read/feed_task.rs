//! Drives a reflector with a client and a clock, and sends its events to the engine.

use std::{convert::Infallible, future::pending, pin::pin, sync::Arc, time::Duration};

use bellwether_engine::{FeedEvent, GroupKind, Lens, ResourceVersion};
use bellwether_wire::{
    Action, Discovered, Received, Reflector, list_watch_policy::ListWatchEnd, read_error::ReadError,
};
use http::Response;
use kube::{api::ListParams, client::Body, core::Request};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::{
    ClusterConnection,
    reader_counters::FeedLiveness,
    rest_mapper::KindsReceiver,
    watch_stream::{BuiltRequest, Watch, list_request, read_page, send},
};
use crate::clock::now;

const REDISCOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The time for the response to a list after the API server has answered a discovery that began later.
const AFTER_DISCOVERY: Duration = Duration::from_secs(1);

/// The task of one kind.
pub(super) struct FeedTask<Id> {
    id: Id,
    reflector: Reflector,
    kinds: KindsReceiver,
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
        let mut reconnected = self.connection.reconnected.subscribe();
        loop {
            tokio::select! {
                () = events.closed() => return,
                changed = lenses.changed() => match changed {
                    Ok(()) => self.reflector.set_lens(Arc::clone(&lenses.borrow_and_update())),
                    Err(_) => return,
                },
                // The connection keeps the sender.
                Ok(()) = restored.changed() => self.reflector.restored(),
                // The request is repeated with the other credentials, without a backoff.
                Ok(()) = reconnected.changed() => self.reflector.slept(),
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
                        if let Some(error) = &ended.error {
                            let is_forbidden = matches!(error, ReadError::Forbidden { .. });
                            self.connection.counters.failed(is_forbidden);
                        }
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
        let kinds = self.kinds.borrow_and_update();
        let Some(kinds) = kinds.as_ref() else { return Discovered::Unknown };
        match kinds.served.get(kind) {
            Some(served) => Discovered::Served(served.clone()),
            None if kinds.unavailable_groups.contains(&*kind.group) => Discovered::Unavailable,
            None => Discovered::NotServed,
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
        let page = match self.send_list(&connection, request).await {
            Ok(response) => read_page(response, within, reader).await,
            Err(error) => Err(error),
        };
        let now = now();
        if page.is_ok() {
            self.liveness.responded(now);
        }
        let is_forbidden = matches!(page, Err(ReadError::Forbidden { .. }));
        let received = self.reflector.page(page, now);
        if received.failed {
            connection.counters.failed(is_forbidden);
        }
        self.count(received);
    }

    /// Waits for the head of the response. If the first list of the kind has none while the API server answers
    /// discovery, the kind is reported as failing, and the request goes on.
    async fn send_list(
        &mut self,
        connection: &ClusterConnection,
        request: BuiltRequest,
    ) -> Result<Response<Body>, ReadError> {
        let response = send(&connection.client, request, connection.settings.response_timeout);
        let Some(patience) = self.reflector.patience() else { return response.await };
        let hangs = async {
            sleep(patience).await;
            // An API server that is away, or lets all requests wait, does not answer this one either. When it
            // is back, both responses arrive at about the same time.
            connection.rest_mapper.rediscover().await;
            sleep(AFTER_DISCOVERY).await;
        };
        let mut response = pin!(response);
        tokio::select! {
            biased;
            response = &mut response => return response,
            () = hangs => {}
        }
        self.reflector.first_list_hangs();
        // The response is read only after the engine has taken the event.
        self.send_events().await;
        response.await
    }

    /// Returns `None` if the watch was abandoned because the kind is served in another version.
    async fn watch(&mut self, path: String, since: &ResourceVersion) -> Option<ListWatchEnd> {
        let connection = Arc::clone(&self.connection);
        connection.counters.watches.add(1);
        let (request, since, metadata_only) =
            (Request::new(path), since.as_str(), self.reflector.metadata_only());
        let watch = Watch::start(&connection.client, &connection.settings, |parameters| {
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
        self.connection.counters.decoded.add(received.decoded);
        self.connection.counters.malformed.add(received.malformed);
    }
}
