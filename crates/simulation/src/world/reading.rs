//! Lists and watches: requests of reflectors, responses of API servers, and watch events.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use bellwether_engine::{FeedId, GroupKind, NamespacedName};
use bellwether_wire::{Action, ApiError, list_watch_policy::ListWatchEnd, read_error::ReadError};
use http::StatusCode;
use rand::Rng as _;

use crate::{object::Object, plan::Moment, site::Site, violation::Violation};

use super::{ScheduledEvent, World, clusters::ClusterState, restoring::text};

/// A watch that lasts this long resets the back-off, in milliseconds.
const STABLE_AFTER: Moment = 10_000;

/// Interval of bookmarks on a watch, in milliseconds.
const BOOKMARKS_EVERY: Moment = 60_000;

/// The client closes a watch that got bookmarks and is silent for this long, in milliseconds.
const SILENCE: Moment = 180_000;

/// The client closes a silent watch without bookmarks this long after its timeout, in milliseconds.
const SLACK: Moment = 15_000;

/// The sender of a request: a controller with its epoch, and a feed with the number of its request.
#[derive(Clone, Copy)]
pub(super) struct RequestOrigin {
    pub(super) process: usize,
    pub(super) epoch: u64,
    pub(super) feed: FeedId,
    pub(super) ticket: u64,
}

pub(super) enum ReadRequest {
    List { rest: Option<String> },
    Watch { since: u64 },
}

/// An input of a reflector. The first number is the connection of the watch.
pub(super) enum Input {
    /// A page of a list, and the resourceVersion of the list.
    Page(Result<(Vec<u8>, u64), ReadError>),
    /// The response to a watch request, with its connection.
    Opened(Result<u64, ReadError>),
    /// A watch event with its type.
    Line(u64, Rc<Object>, &'static str),
    /// A bookmark and its resourceVersion.
    Bookmark(u64, u64),
    /// An ERROR event with its status code.
    Failed(u64, u16),
    Closed(u64, Option<ReadError>),
    /// The watch reached its timeout, if it is still open.
    TimedOut(u64, Option<ReadError>),
    SleepEnded,
    Rediscovered,
}

impl Input {
    pub(super) fn is_background(&self) -> bool {
        matches!(self, Self::TimedOut(..))
    }

    fn summary(&self) -> String {
        match self {
            Self::Page(Ok((_, version))) => format!("list at resourceVersion {version}"),
            Self::Opened(Ok(_)) => "watch opened".to_owned(),
            Self::Page(Err(error)) | Self::Opened(Err(error)) => error.to_string(),
            Self::Line(_, object, what) => format!("{what} {} {}", object.name, object.version()),
            Self::Bookmark(_, version) => format!("bookmark {version}"),
            Self::Failed(_, code) => format!("error {code}"),
            Self::Closed(_, error) | Self::TimedOut(_, error) => {
                error.as_ref().map_or("watch closed".to_owned(), ToString::to_string)
            }
            Self::SleepEnded => "back-off over".to_owned(),
            Self::Rediscovered => "discovery done".to_owned(),
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(super) struct Connection {
    pub(super) origin: RequestOrigin,
    site: Site,
    kind: GroupKind,
    /// The revision up to which events were sent.
    sent: u64,
    version_offset: u64,
    /// Whether it is connected to the stale API server.
    behind: bool,
    /// When the last event arrives. Later ones must not overtake it.
    last: Moment,
    begun: Moment,
    /// When it reaches its timeout.
    over: Moment,
    /// Whether the client knows that it is open.
    open: bool,
    /// Whether the API server sends nothing more, also because it closed the watch.
    pub(super) silent: bool,
    /// Whether the client got a bookmark.
    speaks: bool,
}

impl World<'_> {
    /// Starts the next action of a reflector.
    pub(super) fn advance(&mut self, process: usize, id: FeedId) {
        let now = self.clock(process);
        loop {
            self.queue_events(process, id, None);
            let it = &mut self.processes[process];
            let Some(feed) = it.feeds.get(&id).filter(|feed| !feed.busy) else { return };
            let found = it.find(feed.site, feed.reflector.kind());
            let Some(feed) = it.feeds.get_mut(&id) else { return };
            let next = feed.reflector.next();
            if next == Action::Discover {
                if feed.reflector.discovered(&found, now) {
                    continue;
                }
                return self.queue_events(process, id, None);
            }
            feed.busy = true;
            feed.ticket += 1;
            let origin = RequestOrigin { process, epoch: it.epoch, feed: id, ticket: feed.ticket };
            return match next {
                Action::List { continue_token: rest, .. } => {
                    self.soon(ScheduledEvent::Ask(origin, ReadRequest::List { rest }));
                }
                Action::Watch { resource_version: since, .. } => {
                    let since = since.as_str().parse().unwrap_or_default();
                    self.soon(ScheduledEvent::Ask(origin, ReadRequest::Watch { since }));
                }
                Action::Sleep(pause) => {
                    let at = self.now + u64::try_from(pause.as_millis()).unwrap_or_default();
                    self.schedule(at, ScheduledEvent::Deliver(origin, Input::SleepEnded));
                }
                Action::Rediscover | Action::Discover => {
                    self.soon(ScheduledEvent::Deliver(origin, Input::Rediscovered));
                }
            };
        }
    }

    /// Moves events of a reflector to the inbox. After the last of them, the engine knows `revision`.
    fn queue_events(&mut self, process: usize, id: FeedId, revision: Option<u64>) {
        let it = &mut self.processes[process];
        let Some(feed) = it.feeds.get_mut(&id).filter(|feed| feed.reflector.has_events()) else { return };
        while let Some(event) = feed.reflector.take() {
            feed.note_event(&event);
            let known = revision.filter(|_| !feed.reflector.has_events());
            it.inbox.push_back((id, event, known));
        }
        if !it.steps {
            it.steps = true;
            let epoch = it.epoch;
            self.soon(ScheduledEvent::Step(process, epoch));
        }
    }

    /// An API server handles a list or watch request.
    pub(super) fn ask(&mut self, origin: RequestOrigin, request: ReadRequest) {
        let it = &self.processes[origin.process];
        let Some(feed) = it.feeds.get(&origin.feed).filter(|feed| feed.ticket == origin.ticket) else {
            return;
        };
        if it.epoch != origin.epoch {
            return;
        }
        let (site, kind) = (feed.site, feed.reflector.kind().clone());
        if self.clusters[site].unplugged.is_some() {
            let is_list = matches!(request, ReadRequest::List { .. });
            return self.clusters[site].hanging.push((origin, is_list));
        }
        let input = match (self.read_error(site, &kind), request) {
            (Some(error), ReadRequest::List { .. }) => Input::Page(Err(error)),
            (Some(error), ReadRequest::Watch { .. }) => Input::Opened(Err(error)),
            (None, ReadRequest::List { rest }) => Input::Page(self.list(site, &kind, rest.as_deref())),
            (None, ReadRequest::Watch { since }) => self.open(origin, (site, kind.clone()), since),
        };
        self.tell(|| {
            format!("controller {} requests {kind} from {site:?}: {}", origin.process, input.summary())
        });
        self.soon(ScheduledEvent::Deliver(origin, input));
    }

    /// The error response that faults cause, if any.
    pub(super) fn read_error(&mut self, site: Site, kind: &GroupKind) -> Option<ReadError> {
        let ClusterState { faults, store, .. } = &self.clusters[site];
        if faults.outage > self.now {
            return Some(ReadError::unavailable("connection refused"));
        }
        if faults.lost_requests > self.now && self.rng.random_bool(0.3) {
            return Some(ReadError::unavailable("no answer"));
        }
        let (code, until) = faults.errors;
        if until > self.now && self.rng.random_bool(0.6) {
            let wait = (code == 429).then_some(Duration::from_secs(1));
            let error = ApiError::new(StatusCode::from_u16(code).unwrap_or_default(), "", "not now");
            return Some(ApiError { retry_after: wait, ..error }.into());
        }
        if faults.forbidden.get(kind).is_some_and(|until| *until > self.now) {
            return Some(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", "no").into());
        }
        if faults.failing.get(kind).is_some_and(|until| *until > self.now) {
            return Some(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "no").into());
        }
        let absent = "the server could not find the requested resource";
        let absent = || ApiError::new(StatusCode::NOT_FOUND, "NotFound", absent).into();
        (!store.kinds.contains_key(kind)).then(absent)
    }

    /// A page of a list. `rest` is the continue token: the revision and the index of the next object.
    fn list(
        &mut self,
        site: Site,
        kind: &GroupKind,
        rest: Option<&str>,
    ) -> Result<(Vec<u8>, u64), ReadError> {
        let ClusterState { store, behind, version_offset, .. } = &self.clusters[site];
        let lags = *behind < store.revision && self.rng.random();
        let (version, from) = match rest.and_then(|rest| rest.split_once(':')) {
            Some((version, from)) => (version.parse().unwrap_or_default(), from.parse().unwrap_or_default()),
            None => (if lags { *behind } else { store.revision }, 0_usize),
        };
        if from > 0 && version < store.compacted {
            return Err(ReadError::Expired);
        }
        let all: BTreeMap<NamespacedName, Rc<Object>> = if version == store.revision {
            store.of_kind(kind).map(|object| (object.name.clone(), Rc::clone(object))).collect()
        } else {
            store.at(kind, version)
        };
        let most = if self.rng.random_bool(0.2) { self.rng.random_range(1..3) } else { 500 };
        let shown = version + version_offset;
        let mut body = format!(r#"{{"metadata":{{"resourceVersion":"{shown}""#).into_bytes();
        if from + most < all.len() {
            body.extend_from_slice(format!(r#","continue":"{version}:{}""#, from + most).as_bytes());
        }
        body.extend_from_slice(br#"},"items":["#);
        for (number, object) in all.values().skip(from).take(most).enumerate() {
            if number > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&text(object, *version_offset));
        }
        body.extend_from_slice(b"]}");
        Ok((body, version))
    }

    fn open(&mut self, origin: RequestOrigin, (site, kind): (Site, GroupKind), since: u64) -> Input {
        let ClusterState { store, behind, version_offset, .. } = &self.clusters[site];
        // After a restore, it is in the future, and the API server accepts it in silence.
        let since = since.saturating_sub(*version_offset);
        let (version_offset, compacted) = (*version_offset, store.compacted);
        let is_behind = *behind < store.revision;
        if since < compacted && self.rng.random() {
            return Input::Opened(Err(ReadError::Expired));
        }
        self.number += 1;
        let connection = Connection {
            origin,
            site,
            kind,
            sent: since,
            version_offset,
            behind: is_behind && self.rng.random(),
            last: self.now,
            begun: self.now,
            over: self.now + self.rng.random_range(300_000..600_000),
            open: false,
            silent: false,
            speaks: false,
        };
        self.connections.insert(self.number, connection);
        Input::Opened(Ok(self.number))
    }

    /// A controller gets an input for one of its reflectors.
    pub(super) fn deliver(&mut self, origin: RequestOrigin, input: Input) {
        let RequestOrigin { process, feed: id, ticket, .. } = origin;
        let now = self.clock(process);
        let it = &mut self.processes[process];
        let Some(feed) = it.feeds.get_mut(&id).filter(|feed| feed.ticket == ticket) else { return };
        let (site, kind) = (feed.site, feed.reflector.kind().clone());
        if !matches!(input, Input::Bookmark(..) | Input::SleepEnded) {
            self.tell(|| format!("controller {process} gets {kind} from {site:?}: {}", input.summary()));
        }
        if matches!(input, Input::Page(Ok(_)) | Input::Opened(Ok(_)) | Input::Line(..) | Input::Bookmark(..))
        {
            self.heard(process, site);
        }
        let it = &mut self.processes[process];
        let Some(feed) = it.feeds.get_mut(&id) else { return };
        let mut known = None;
        let ended = match input {
            Input::Page(answer) => {
                feed.busy = false;
                let version = answer.as_ref().map_or(0, |(_, version)| *version);
                let page = answer.as_ref().map(|(page, _)| page.as_slice()).map_err(ReadError::clone);
                let is_overdue = feed.note_list(page.as_ref().err(), self.now);
                feed.reflector.whole_page(page, now);
                if is_overdue && !feed.reflector.has_events() {
                    let waits =
                        format!("controller {process} waits for {kind}, which fails, and reports nothing");
                    self.violation = self.violation.take().or(Some(Violation::new(waits)));
                }
                let Some(feed) = self.processes[process].feeds.get_mut(&id) else { return };
                let is_whole = !matches!(feed.reflector.next(), Action::List { continue_token: Some(_), .. });
                known = Some(version).filter(|_| is_whole && version > 0);
                None
            }
            Input::Opened(Ok(connection)) if feed.reflector.opened() => {
                // The kind may be served differently since the last discovery.
                let found = it.find(site, &kind);
                let Some(feed) = it.feeds.get_mut(&id) else { return };
                if !feed.reflector.discovered(&found, now) {
                    return self.watch_opened(connection);
                }
                feed.busy = false;
                self.connections.remove(&connection);
                None
            }
            Input::Opened(Ok(connection)) => Some((Some(connection), true, None)),
            Input::Opened(Err(error)) => Some((None, false, Some(error))),
            Input::Line(connection, object, what) => {
                let mut line = format!(r#"{{"type":"{what}","object":"#).into_bytes();
                let offset = self.connections.get(&connection).map_or(0, |open| open.version_offset);
                line.extend_from_slice(&text(&object, offset));
                line.push(b'}');
                known = Some(object.version());
                feed.reflector.line(&line, now).err().map(|error| (Some(connection), false, Some(error)))
            }
            Input::Bookmark(connection, version) => {
                if let Some(open) = self.connections.get_mut(&connection) {
                    open.speaks = true;
                }
                let line = format!(
                    r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}"#
                );
                let received = feed.reflector.line(line.as_bytes(), now);
                received.err().map(|error| (Some(connection), false, Some(error)))
            }
            Input::Failed(connection, code) => {
                let line = format!(r#"{{"type":"ERROR","object":{{"kind":"Status","code":{code}}}}}"#);
                let received = feed.reflector.line(line.as_bytes(), now);
                received.err().map(|error| (Some(connection), false, Some(error)))
            }
            Input::Closed(connection, error) | Input::TimedOut(connection, error) => {
                Some((Some(connection), false, error))
            }
            Input::SleepEnded => {
                feed.busy = false;
                feed.reflector.slept();
                None
            }
            Input::Rediscovered => {
                feed.busy = false;
                let kinds = &self.clusters[site].store.kinds;
                it.kinds.insert(site, Rc::new(kinds.clone()));
                let found = it.find(site, &kind);
                if let Some(feed) = it.feeds.get_mut(&id) {
                    feed.reflector.discovered(&found, now);
                }
                self.report_kinds(process, site);
                None
            }
        };
        if let Some((connection, lasted, error)) = ended {
            let closed = connection.and_then(|connection| self.connections.remove(&connection));
            let lasted = lasted || closed.is_some_and(|closed| self.now - closed.begun >= STABLE_AFTER);
            if let Some(feed) = self.processes[process].feeds.get_mut(&id) {
                feed.busy = false;
                feed.reflector.ended(ListWatchEnd { lasted, error }, now);
            }
        }
        self.queue_events(process, id, known);
        self.advance(process, id);
    }

    /// The client accepts a watch: schedules its timeout and bookmarks, and sends what changed meanwhile.
    fn watch_opened(&mut self, number: u64) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.open = true;
        connection.last = now;
        let (origin, over) = (connection.origin, connection.over);
        self.schedule(over, ScheduledEvent::Deliver(origin, Input::TimedOut(number, None)));
        self.schedule(now + BOOKMARKS_EVERY, ScheduledEvent::Bookmark(number));
        self.pump(number);
    }

    /// Sends a bookmark on a watch.
    pub(super) fn bookmark(&mut self, number: u64) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&number).filter(|connection| !connection.silent)
        else {
            return;
        };
        let ClusterState { store, behind, .. } = &self.clusters[connection.site];
        let known = if connection.behind { *behind } else { store.revision };
        if known >= connection.sent {
            connection.sent = known;
            connection.last = now.max(connection.last);
            let (origin, at) = (connection.origin, connection.last);
            let shown = known + connection.version_offset;
            self.schedule(at, ScheduledEvent::Deliver(origin, Input::Bookmark(number, shown)));
        }
        self.schedule(now + BOOKMARKS_EVERY, ScheduledEvent::Bookmark(number));
    }

    /// Sends the changes of a cluster on all its watches.
    pub(super) fn pump_all(&mut self, site: Site) {
        let here = self.connections.iter().filter(|(_, connection)| connection.site == site);
        let numbers: Vec<_> = here.map(|(number, _)| *number).collect();
        for number in numbers {
            self.pump(number);
        }
    }

    /// Sends the changes since the last event of a watch.
    fn pump(&mut self, number: u64) {
        let delay = self.latency();
        let Some(connection) = self.connections.get_mut(&number).filter(|it| it.open && !it.silent) else {
            return;
        };
        let ClusterState { store, behind, faults, .. } = &self.clusters[connection.site];
        let delay = delay + if faults.late.1 > self.now { faults.late.0 } else { 0 };
        let known = if connection.behind { *behind } else { store.revision };
        let first = store.log.partition_point(|entry| entry.revision <= connection.sent);
        let is_new = connection.last == self.now && connection.sent < store.compacted;
        let mut inputs = Vec::new();
        if is_new && store.log[first..].iter().any(|entry| entry.revision <= store.compacted) {
            // The events that it needs are compacted.
            inputs.push(Input::Failed(number, 410));
            connection.silent = true;
        } else {
            for entry in store.log[first..].iter().take_while(|entry| entry.revision <= known) {
                if entry.object.kind == connection.kind {
                    let what = if entry.gone { "DELETED" } else { "MODIFIED" };
                    inputs.push(Input::Line(number, Rc::clone(&entry.object), what));
                }
            }
            connection.sent = connection.sent.max(known);
            if !store.kinds.contains_key(&connection.kind) {
                inputs.push(Input::Closed(number, None));
                connection.silent = true;
            }
        }
        connection.last = connection.last.max(self.now + delay);
        let (origin, at) = (connection.origin, connection.last);
        for input in inputs {
            self.schedule(at, ScheduledEvent::Deliver(origin, input));
        }
    }

    /// Closes the watch of a feed, from the client.
    pub(super) fn close(&mut self, process: usize, feed: FeedId) {
        self.connections.retain(|_, it| it.origin.process != process || it.origin.feed != feed);
    }

    /// Closes the watches of a kind in a cluster, or all. Sent events still arrive. `torn`: within a line.
    pub(super) fn cut(&mut self, site: Site, kind: Option<&GroupKind>, torn: bool) {
        let concerns = |connection: &Connection| {
            connection.site == site && kind.is_none_or(|kind| connection.kind == *kind)
        };
        let mut ends = Vec::new();
        for (number, connection) in self.connections.iter_mut().filter(|(_, it)| concerns(it) && !it.silent) {
            connection.silent = true;
            ends.push((connection.last, connection.origin, *number));
        }
        for (at, origin, number) in ends {
            let error = torn.then(|| ReadError::unavailable("a watch ended within a line"));
            self.schedule(at, ScheduledEvent::Deliver(origin, Input::Closed(number, error)));
        }
        if kind.is_none() {
            self.lost(site);
        }
    }

    /// The watches in a cluster fall silent, until `close_hushed`.
    pub(super) fn hush(&mut self, site: Site) {
        for connection in self.connections.values_mut().filter(|it| it.site == site) {
            connection.silent = true;
        }
    }

    pub(super) fn close_hushed(&mut self, site: Site) {
        let hushed = self.connections.iter().filter(|(_, it)| it.site == site);
        let ends: Vec<_> = hushed.map(|(number, connection)| (*number, connection.origin)).collect();
        for (number, origin) in ends {
            let error = Some(ReadError::unavailable("the connection has fallen silent"));
            self.soon(ScheduledEvent::Deliver(origin, Input::Closed(number, error)));
        }
        self.lost(site);
    }

    /// The watches of a kind in a cluster fall silent. They end by the timeouts of the client.
    pub(super) fn silence(&mut self, site: Site, kind: &GroupKind) {
        let mut ends = Vec::new();
        for (number, connection) in
            self.connections.iter_mut().filter(|(_, it)| it.site == site && it.kind == *kind && !it.silent)
        {
            connection.silent = true;
            let end = if connection.speaks { self.now + SILENCE } else { connection.over + SLACK };
            ends.push((end, connection.origin, *number));
        }
        for (end, origin, number) in ends {
            let error = ReadError::unavailable("the connection has fallen silent");
            self.schedule(end, ScheduledEvent::Deliver(origin, Input::TimedOut(number, Some(error))));
        }
    }

    /// The served kinds of a cluster changed: schedules discovery in all controllers.
    pub(super) fn kinds_changed(&mut self, site: Site) {
        for process in 0..self.processes.len() {
            let epoch = self.processes[process].epoch;
            let at = self.now + self.rng.random_range(50..1_500);
            self.schedule(at, ScheduledEvent::Kinds(process, epoch, site));
        }
    }

    /// Discovery of a cluster completes in a controller.
    pub(super) fn learn_kinds(&mut self, process: usize, site: Site) {
        // It will be repeated when the cluster is connected to, or plugged in again.
        let connected = self.processes[process].connected.get(&site);
        let is_waiting = connected.is_none_or(|connected| connected.connecting.is_none());
        let is_unknown = site != Site::Hub && self.plan.has_inventory() && is_waiting;
        if is_unknown || self.clusters[site].unplugged.is_some() {
            return;
        }
        let outage = self.clusters[site].faults.outage;
        if outage > self.now {
            let epoch = self.processes[process].epoch;
            let at = outage + self.rng.random_range(0..500);
            return self.schedule(at, ScheduledEvent::Kinds(process, epoch, site));
        }
        let now = self.clock(process);
        let kinds = Rc::new(self.clusters[site].store.kinds.clone());
        self.processes[process].kinds.insert(site, kinds);
        let here = self.processes[process].feeds.iter().filter(|(_, feed)| feed.site == site);
        let ids: Vec<_> = here.map(|(id, _)| *id).collect();
        for id in ids {
            let watches = self
                .connections
                .values()
                .any(|it| it.origin.process == process && it.origin.feed == id && it.open);
            let it = &mut self.processes[process];
            let Some(found) = it.feeds.get(&id).map(|feed| it.find(site, feed.reflector.kind())) else {
                continue;
            };
            let Some(feed) = it.feeds.get_mut(&id) else { continue };
            if watches && feed.reflector.discovered(&found, now) {
                feed.busy = false;
                self.close(process, id);
            }
            self.advance(process, id);
        }
        if site != Site::Hub {
            self.heard(process, site);
        }
        self.report_kinds(process, site);
    }

    /// Whether a watch is silent, and not because its cluster is unplugged.
    pub(super) fn has_silent_watch(&self) -> bool {
        let is_silent = |it: &Connection| it.silent && self.clusters[it.site].unplugged.is_none();
        self.connections.values().any(is_silent)
    }
}
