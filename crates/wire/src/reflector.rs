//! Lists and watches one kind, and queues the events for the engine.
//!
//! A [`Reflector`] performs no I/O. The caller executes [`Reflector::next`], reports the result, and takes
//! the events.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use bellwether_engine::{FeedEvent, GroupKind, Lens, Now, ResourceVersion, ServedResource, Unreadable};
use rand::{SeedableRng as _, rngs::SmallRng};
use tracing::{debug, info, warn};

use crate::{
    backoff::BackoffLimits,
    list_watch_policy::{ListWatchEnd, ListWatchPolicy, ReadState, ReadStep, RetryDecision},
    object_decoder::{ObjectDecoder, WatchEvent},
    page_reader::{DecodedPage, PageReader},
    read_error::ReadError,
};

/// What the caller does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Call [`Reflector::discovered`] now, and whenever the served kinds change.
    Discover,
    /// Run discovery again, then call [`Reflector::discovered`].
    Rediscover,
    /// Request a list page, as [`Reflector::metadata_only`] says. Give the response to
    /// [`Reflector::page_reader`], and the result to [`Reflector::page`].
    List {
        path: String,
        /// The continue token; `None` for the first page.
        continue_token: Option<String>,
    },
    /// Watch, as [`Reflector::metadata_only`] says: call [`Reflector::opened`], [`Reflector::line`] for each line, and [`Reflector::ended`]. Call
    /// [`Reflector::discovered`] when the served kinds change meanwhile.
    Watch { path: String, resource_version: ResourceVersion },
    /// Wait, then call [`Reflector::slept`].
    Sleep(Duration),
}

/// The result of discovery for one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discovered {
    /// Discovery has not completed yet.
    Unknown,
    Served(ServedResource),
    /// The API server of the kind's group did not respond to discovery.
    Unavailable,
    NotServed,
}

/// The content of a list page or of a watch line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The number of decoded objects and events.
    pub decoded: usize,
    /// The number of malformed objects.
    pub malformed: usize,
    pub bookmark: bool,
    pub failed: bool,
}

pub struct Reflector {
    kind: GroupKind,
    /// `None` for all namespaces.
    namespace: Option<String>,
    lens: Arc<Lens>,
    policy: ListWatchPolicy,
    reported: Reported,
    /// The version that is read, and its decoder.
    reading: Option<(ServedResource, Arc<ObjectDecoder>)>,
    stage: Stage,
    events: VecDeque<FeedEvent>,
    random: SmallRng,
}

/// The last event about the kind as a whole.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
    Nothing,
    Served(ServedResource),
    NotServed,
    /// The kind cannot be read, or discovery cannot tell whether it is served.
    Unreadable,
}

#[derive(Debug)]
enum Stage {
    Discovering,
    /// The policy decides whether to list or to watch.
    Reading,
    /// Between two list pages: the resourceVersion of the list, and the continue token.
    Listing(ResourceVersion, String),
    /// A request got 404: the kind may not be served any more.
    Rediscovering(ListWatchEnd),
    /// Backoff after an error. With `rediscover`, discovery is consulted first after it.
    Sleeping {
        pause: Duration,
        rediscover: bool,
    },
}

impl Reflector {
    /// `seed` is for the jitter of the backoff.
    pub fn new(
        kind: GroupKind,
        namespace: Option<String>,
        lens: Arc<Lens>,
        pauses: BackoffLimits,
        seed: u64,
    ) -> Self {
        Self {
            kind,
            namespace,
            lens,
            policy: ListWatchPolicy::new(pauses),
            reported: Reported::Nothing,
            reading: None,
            stage: Stage::Discovering,
            events: VecDeque::new(),
            random: SmallRng::seed_from_u64(seed),
        }
    }

    pub fn kind(&self) -> &GroupKind {
        &self.kind
    }

    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub fn take(&mut self) -> Option<FeedEvent> {
        let next = self.events.pop_front();
        if self.events.is_empty() {
            // Frees the memory of a list page: most of the time the queue is empty.
            self.events = VecDeque::new();
        }
        next
    }

    /// Whether a list was completed.
    pub fn has_listed(&self) -> bool {
        self.policy.has_listed()
    }

    pub fn lens(&self) -> &Lens {
        &self.lens
    }

    /// Relists with another lens.
    pub fn set_lens(&mut self, lens: Arc<Lens>) {
        self.lens = lens;
        self.policy.reset();
        self.stage = Stage::Discovering;
    }

    /// The cluster was restored from a backup: its resourceVersions went back. Relists.
    pub fn restored(&mut self) {
        self.policy.restored();
        self.events.push_back(FeedEvent::Restored);
        if matches!(self.stage, Stage::Listing(..) | Stage::Sleeping { .. }) {
            self.stage = Stage::Discovering;
        }
    }

    pub fn next(&self) -> Action {
        let path = || {
            let served = self.reading.as_ref().map(|(served, _)| served);
            served.map(|served| served.path(&self.kind.group, self.namespace.as_deref(), None))
        };
        match (&self.stage, path()) {
            (Stage::Sleeping { pause, .. }, _) => Action::Sleep(*pause),
            (Stage::Rediscovering(_), _) => Action::Rediscover,
            (Stage::Discovering, _) | (_, None) => Action::Discover,
            (Stage::Listing(_, rest), Some(path)) => {
                Action::List { path, continue_token: Some(rest.clone()) }
            }
            (Stage::Reading, Some(path)) => match self.policy.step() {
                ReadStep::List => Action::List { path, continue_token: None },
                ReadStep::Watch(since) => Action::Watch { path, resource_version: since },
            },
        }
    }

    /// Takes in the result of discovery. Returns whether [`next`](Self::next) has changed.
    pub fn discovered(&mut self, discovered: &Discovered, now: Now) -> bool {
        let reading = self.reading.as_ref().map(|(served, _)| served);
        let is_unchanged = matches!(discovered, Discovered::Served(served) if Some(served) == reading);
        match &mut self.stage {
            Stage::Discovering => {
                self.apply_discovery(discovered);
                !matches!(self.stage, Stage::Discovering)
            }
            Stage::Rediscovering(ended) => {
                let ended = mem::replace(ended, ListWatchEnd { lasted: false, error: None });
                if is_unchanged {
                    self.back_off(&ended, true, now);
                } else {
                    self.stage = Stage::Discovering;
                    self.apply_discovery(discovered);
                }
                true
            }
            // `NotServed` does not end a watch: if the kind is really gone, the API server ends it.
            Stage::Reading if matches!(discovered, Discovered::Served(_)) && !is_unchanged => {
                self.stage = Stage::Discovering;
                self.apply_discovery(discovered);
                true
            }
            Stage::Reading | Stage::Listing(..) | Stage::Sleeping { .. } => false,
        }
    }

    fn apply_discovery(&mut self, discovered: &Discovered) {
        let kind = &self.kind;
        match discovered {
            Discovered::Served(served) => {
                if !matches!(&self.reported, Reported::Served(before) if decode_alike(before, served)) {
                    info!(%kind, version = %served.version, "kind served");
                    let is_read =
                        self.reading.as_ref().is_some_and(|(before, _)| decode_alike(before, served));
                    // The cause of `Unreadable` may persist: the backoff goes on if nothing has changed.
                    if !is_read || self.reported != Reported::Unreadable {
                        self.policy.reset();
                    }
                }
                self.report_served(served);
                let decoder = ObjectDecoder::new(Arc::clone(&self.lens), served);
                self.reading = Some((served.clone(), Arc::new(decoder)));
                self.stage = Stage::Reading;
            }
            Discovered::Unavailable if self.reported != Reported::Unreadable => {
                let why = "the aggregated API server does not respond";
                warn!(%kind, error = why, "cannot list or watch: retrying");
                self.report_unserved(Unreadable::Failing { why: why.into() }, Reported::Unreadable);
            }
            Discovered::NotServed if self.reported != Reported::NotServed => {
                info!(%kind, "kind not served: waiting for its CRD");
                self.report_unserved(Unreadable::NotServed, Reported::NotServed);
            }
            Discovered::Unavailable | Discovered::NotServed | Discovered::Unknown => {}
        }
    }

    fn report_unserved(&mut self, why: Unreadable, reported: Reported) {
        self.events.push_back(FeedEvent::Unreadable(why));
        self.reported = reported;
        self.policy.reset();
    }

    fn report_served(&mut self, served: &ServedResource) {
        if !matches!(&self.reported, Reported::Served(before) if before == served) {
            self.events.push_back(FeedEvent::Served(served.clone()));
            self.reported = Reported::Served(served.clone());
        }
    }

    /// Whether to list and watch with objects as `PartialObjectMetadata`.
    pub fn metadata_only(&self) -> bool {
        self.reading.as_ref().is_some_and(|(_, decoder)| decoder.metadata_only())
    }

    /// Reads the page of [`Action::List`]; `None` if a list is not the next action.
    pub fn page_reader(&self, now: Now) -> Option<PageReader> {
        let (_, decoder) = self.reading.as_ref()?;
        Some(PageReader::new(Arc::clone(decoder), now.time))
    }

    /// How long to wait for the first byte of the response to [`Action::List`] before
    /// [`first_list_hangs`](Self::first_list_hangs) can be called. `None` if no group waits for it.
    pub fn patience(&self) -> Option<Duration> {
        self.policy.patience()
    }

    /// The request of the first list hangs, and the API server has answered a later request: reports the kind
    /// as failing. The request goes on.
    pub fn first_list_hangs(&mut self) {
        if self.policy.first_list_hangs().is_none() {
            return;
        }
        let (kind, why) = (&self.kind, "no response yet");
        warn!(%kind, error = why, "cannot list: waiting");
        self.events.push_back(FeedEvent::Unreadable(Unreadable::Failing { why: why.into() }));
        self.reported = Reported::Unreadable;
    }

    /// Takes in the page of [`Action::List`], or the error of the request.
    pub fn page(&mut self, response: Result<DecodedPage, ReadError>, now: Now) -> Received {
        match response.and_then(|page| self.read_page(page, now)) {
            Ok(received) => received,
            Err(error) => {
                self.ended(error.into(), now);
                Received { failed: true, ..Received::default() }
            }
        }
    }

    /// Takes in a whole page at once.
    pub fn whole_page(&mut self, response: Result<&[u8], ReadError>, now: Now) -> Received {
        let Some(mut reader) = self.page_reader(now) else { return Received::default() };
        let page = response.and_then(|bytes| {
            reader.push(bytes)?;
            reader.finish()
        });
        self.page(page, now)
    }

    fn read_page(&mut self, page: DecodedPage, now: Now) -> Result<Received, ReadError> {
        let Some((served, _)) = &self.reading else { return Ok(Received::default()) };
        let version = if let Stage::Listing(version, _) = &self.stage {
            version.clone()
        } else {
            let version = ResourceVersion::new(&page.resource_version);
            let was_restored = self.policy.accept(&version, now.passed)?;
            let served = served.clone();
            self.report_served(&served);
            if was_restored {
                self.events.push_back(FeedEvent::Restored);
            }
            self.events.push_back(FeedEvent::ListStarted);
            version
        };
        let mut received = Received::default();
        for item in page.items {
            match item {
                Some((name, seen)) => {
                    received.decoded += 1;
                    self.events.push_back(FeedEvent::Applied(name, seen));
                }
                None => received.malformed += self.log_malformed(),
            }
        }
        self.stage = if let Some(rest) = page.continue_token {
            Stage::Listing(version, rest)
        } else {
            self.events.push_back(FeedEvent::ListCompleted);
            let new_state = self.policy.listed(version);
            self.log_recovery(new_state);
            Stage::Reading
        };
        Ok(received)
    }

    /// The API server has accepted the watch. Returns whether to keep it.
    pub fn opened(&mut self) -> bool {
        self.policy.opened()
    }

    pub fn line(&mut self, line: &[u8], now: Now) -> Result<Received, ReadError> {
        let Some((_, decoder)) = &self.reading else { return Ok(Received::default()) };
        let event = decoder.event(line, now.time);
        let event =
            event.map_err(|error| ReadError::rejected(format!("cannot decode a watch event: {error}")))?;
        let mut received = Received { decoded: 1, ..Received::default() };
        let version = match event {
            WatchEvent::Applied(name, seen) => {
                let version = seen.facts.resource_version.clone();
                self.events.push_back(FeedEvent::Applied(name, seen));
                version
            }
            WatchEvent::Deleted(name, version) => {
                self.events.push_back(FeedEvent::Deleted(name));
                version
            }
            WatchEvent::Bookmark(version) => {
                received.bookmark = true;
                version
            }
            WatchEvent::Error(error) => return Err(error),
            WatchEvent::Malformed => {
                return Ok(Received { malformed: self.log_malformed(), ..Received::default() });
            }
        };
        self.policy.observe_version(&version);
        let new_state = self.policy.watch_succeeded();
        self.log_recovery(new_state);
        Ok(received)
    }

    /// A watch has ended, or a request failed.
    pub fn ended(&mut self, ended: ListWatchEnd, now: Now) {
        if matches!(ended.error, Some(ReadError::NotFound { .. })) {
            self.stage = Stage::Rediscovering(ended);
        } else {
            self.back_off(&ended, false, now);
        }
    }

    /// The pause of [`Action::Sleep`] is over.
    pub fn slept(&mut self) {
        if let Stage::Sleeping { rediscover, .. } = self.stage {
            self.stage = if rediscover { Stage::Discovering } else { Stage::Reading };
        }
    }

    fn back_off(&mut self, ended: &ListWatchEnd, rediscover: bool, now: Now) {
        let reaction = self.policy.ended(ended, now.passed, &mut self.random);
        self.stage = Stage::Sleeping { pause: reaction.pause, rediscover };
        match &ended.error {
            Some(error) => self.report_error(error, &reaction),
            None => self.log_recovery(reaction.new_state),
        }
    }

    fn report_error(&mut self, error: &ReadError, reaction: &RetryDecision) {
        let kind = &self.kind;
        debug!(%kind, %error, after = ?reaction.pause, "list or watch failed: retrying");
        let resource =
            self.reading.as_ref().map(|(served, _)| Arc::clone(&served.plural)).unwrap_or_default();
        match reaction.new_state {
            Some(ReadState::Unavailable) => {
                warn!(%kind, %error, "API server unavailable: keeping the cached objects and retrying");
                return;
            }
            Some(ReadState::Forbidden) => {
                warn!(%kind, %resource, %error, "cannot list or watch: forbidden. Grant Bellwether the verbs list and watch");
            }
            Some(ReadState::Failing) => {
                warn!(%kind, %error, "cannot list or watch: retrying");
            }
            Some(ReadState::Readable) | None => return,
        }
        let unreadable = error.unreadable(&resource);
        let unreadable = unreadable.unwrap_or_else(|| Unreadable::Failing { why: error.to_string().into() });
        self.events.push_back(FeedEvent::Unreadable(unreadable));
        self.reported = Reported::Unreadable;
    }

    /// Returns the number of malformed objects, which is 1.
    fn log_malformed(&self) -> usize {
        warn!(kind = %self.kind, "ignoring a malformed object in a list or watch response");
        1
    }

    fn log_recovery(&self, new_state: Option<ReadState>) {
        if new_state == Some(ReadState::Readable) {
            info!(kind = %self.kind, "list and watch restored");
        }
    }
}

/// Whether the same objects decode to the same facts in both.
fn decode_alike(one: &ServedResource, other: &ServedResource) -> bool {
    let relevant = |served: &ServedResource| {
        (Arc::clone(&served.version), Arc::clone(&served.plural), served.namespaced, served.has_status)
    };
    relevant(one) == relevant(other)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn served(version: &str) -> ServedResource {
        ServedResource {
            version: version.into(),
            versions: [version.into()].into(),
            plural: "widgets".into(),
            namespaced: true,
            has_status: true,
        }
    }

    fn reflector() -> Reflector {
        let kind = GroupKind::new("acme.io", "Widget");
        let lens = Arc::new(Lens::new(&kind, Arc::default()));
        Reflector::new(kind, None, lens, BackoffLimits::default(), 1)
    }

    fn now() -> Now {
        Now { time: Timestamp::UNIX_EPOCH, passed: Duration::ZERO }
    }

    fn list(rest: Option<&str>) -> Action {
        Action::List { path: "/apis/acme.io/v1/widgets".to_owned(), continue_token: rest.map(str::to_owned) }
    }

    fn watch(since: &str) -> Action {
        Action::Watch {
            path: "/apis/acme.io/v1/widgets".to_owned(),
            resource_version: ResourceVersion::new(since),
        }
    }

    /// The queued events, a word each.
    fn events(reflector: &mut Reflector) -> String {
        let word = |event| match event {
            FeedEvent::Served(_) => "served".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotServed) => "not served".to_owned(),
            FeedEvent::Unreadable(Unreadable::Forbidden { .. }) => "forbidden".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotConnected) => "not connected".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotInInput) => "not in input".to_owned(),
            FeedEvent::Unreadable(Unreadable::InvalidInput) => "invalid input".to_owned(),
            FeedEvent::Unreadable(Unreadable::Failing { .. }) => "failing".to_owned(),
            FeedEvent::Restored => "restored".to_owned(),
            FeedEvent::ListStarted => "listing".to_owned(),
            FeedEvent::Applied(name, _) => name.to_string(),
            FeedEvent::Deleted(name) => format!("{name} deleted"),
            FeedEvent::ListCompleted => "listed".to_owned(),
        };
        std::iter::from_fn(|| reflector.take()).map(word).collect::<Vec<_>>().join(", ")
    }

    fn widget(name: &str, version: u32) -> String {
        format!(
            r#"{{"metadata":{{"namespace":"shop","name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#
        )
    }

    /// A reflector that watches from resourceVersion 5.
    fn watching() -> Reflector {
        let mut reflector = reflector();
        reflector.discovered(&Discovered::Served(served("v1")), now());
        reflector.whole_page(Ok(br#"{"metadata":{"resourceVersion":"5"},"items":[]}"#), now());
        assert_eq!(events(&mut reflector), "served, listing, listed");
        assert_eq!(reflector.next(), watch("5"));
        reflector
    }

    #[test]
    fn several_pages_are_one_list() {
        let mut reflector = reflector();
        assert_eq!(reflector.next(), Action::Discover);
        assert!(!reflector.discovered(&Discovered::Unknown, now()));
        assert!(reflector.discovered(&Discovered::Served(served("v1")), now()));
        assert_eq!(reflector.next(), list(None));
        let first = format!(
            r#"{{"metadata":{{"resourceVersion":"5","continue":"more"}},"items":[{}]}}"#,
            widget("a", 3)
        );
        reflector.whole_page(Ok(first.as_bytes()), now());
        assert_eq!(reflector.next(), list(Some("more")));
        let second = format!(r#"{{"metadata":{{"resourceVersion":"5"}},"items":[7,{}]}}"#, widget("b", 4));
        let received = reflector.whole_page(Ok(second.as_bytes()), now());
        assert_eq!(received, Received { decoded: 1, malformed: 1, ..Received::default() });
        assert_eq!(events(&mut reflector), "served, listing, shop/a, shop/b, listed");
        assert_eq!(reflector.next(), watch("5"));
    }

    #[test]
    fn a_list_that_hung_is_used_when_it_arrives() {
        let mut reflector = reflector();
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert!(reflector.patience().is_some());
        reflector.first_list_hangs();
        reflector.first_list_hangs();
        assert_eq!(reflector.next(), list(None), "the request goes on");
        let page = format!(r#"{{"metadata":{{"resourceVersion":"5"}},"items":[{}]}}"#, widget("a", 3));
        reflector.whole_page(Ok(page.as_bytes()), now());
        assert_eq!(events(&mut reflector), "served, failing, served, listing, shop/a, listed");
        assert_eq!((reflector.next(), reflector.patience()), (watch("5"), None));
    }

    #[test]
    fn an_expired_continue_token_restarts_the_list() {
        let mut reflector = reflector();
        reflector.discovered(&Discovered::Served(served("v1")), now());
        let first = format!(
            r#"{{"metadata":{{"resourceVersion":"5","continue":"more"}},"items":[{}]}}"#,
            widget("a", 3)
        );
        reflector.whole_page(Ok(first.as_bytes()), now());
        reflector.whole_page(Err(ReadError::Expired), now());
        assert!(matches!(reflector.next(), Action::Sleep(_)));
        reflector.slept();
        assert_eq!(reflector.next(), list(None));
        assert_eq!(events(&mut reflector), "served, listing, shop/a", "the list is not completed");
    }

    #[test]
    fn a_watch_resumes_from_the_last_resource_version() {
        let mut reflector = watching();
        assert!(reflector.opened());
        let line = format!(r#"{{"type":"ADDED","object":{}}}"#, widget("a", 6));
        assert!(reflector.line(line.as_bytes(), now()).is_ok());
        let line = format!(r#"{{"type":"DELETED","object":{}}}"#, widget("a", 7));
        assert!(reflector.line(line.as_bytes(), now()).is_ok());
        assert_eq!(events(&mut reflector), "shop/a, shop/a deleted");
        reflector.ended(ListWatchEnd { lasted: true, error: None }, now());
        reflector.slept();
        assert_eq!(reflector.next(), watch("7"));
    }

    #[test]
    fn a_404_leads_to_discovery() {
        let mut reflector = watching();
        let not_found = || ListWatchEnd::from(ReadError::NotFound { why: "no".into() });
        reflector.ended(not_found(), now());
        assert_eq!(reflector.next(), Action::Rediscover);
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert!(
            matches!(reflector.next(), Action::Sleep(_)),
            "the kind is served, so the error may be temporary"
        );
        reflector.slept();
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert_eq!(reflector.next(), watch("5"));
        reflector.ended(not_found(), now());
        reflector.discovered(&Discovered::NotServed, now());
        assert_eq!((reflector.next(), &*events(&mut reflector)), (Action::Discover, "not served"));
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert_eq!((reflector.next(), &*events(&mut reflector)), (list(None), "served"));
    }

    /// Discovery lists the kind, but its path returns 404: the backoff grows, and the error is reported once.
    #[test]
    fn a_served_kind_that_returns_404_is_retried_with_backoff() {
        let (mut reflector, mut longest) = (reflector(), Duration::ZERO);
        reflector.discovered(&Discovered::Served(served("v1")), now());
        for _ in 0..40 {
            assert_eq!(reflector.next(), list(None));
            reflector.whole_page(Err(ReadError::NotFound { why: "no".into() }), now());
            reflector.discovered(&Discovered::Served(served("v1")), now());
            let Action::Sleep(pause) = reflector.next() else { panic!("it backs off") };
            longest = longest.max(pause);
            reflector.slept();
            reflector.discovered(&Discovered::Served(served("v1")), now());
        }
        assert_eq!(events(&mut reflector), "served, failing, served");
        assert!(longest > Duration::from_secs(10), "{longest:?}");
    }

    #[test]
    fn another_served_version_leads_to_a_relist() {
        let mut reflector = watching();
        assert!(!reflector.discovered(&Discovered::NotServed, now()), "an open watch goes on");
        assert!(!reflector.discovered(&Discovered::Served(served("v1")), now()));
        assert!(reflector.discovered(&Discovered::Served(served("v2")), now()));
        assert_eq!(
            reflector.next(),
            Action::List { path: "/apis/acme.io/v2/widgets".to_owned(), continue_token: None }
        );
    }

    /// A watch from a version in the future of the API server would be silent.
    #[test]
    fn a_restored_cluster_is_relisted() {
        let mut reflector = watching();
        reflector.restored();
        assert_eq!(reflector.next(), list(None));
        reflector.whole_page(Ok(br#"{"metadata":{"resourceVersion":"3"},"items":[]}"#), now());
        assert_eq!(events(&mut reflector), "restored, listing, listed");
        assert_eq!(reflector.next(), watch("3"));
    }

    #[test]
    fn another_lens_leads_to_a_relist() {
        let mut reflector = watching();
        let lens = Arc::new(Lens::new(reflector.kind(), Arc::default()));
        reflector.set_lens(lens);
        assert_eq!(reflector.next(), Action::Discover);
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert_eq!((reflector.next(), &*events(&mut reflector)), (list(None), ""));
    }
}
