//! Follows a kind: lists its objects, watches them, and says what there is to tell, through whatever goes wrong.
//!
//! A [`Reflector`] asks nobody itself. It says what to do next, is told what came of it, and keeps what is to be told until
//! somebody takes it.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use bellwether_engine::{FeedEvent, GroupKind, Lens, Now, ResourceVersion, Served, Unreadable};
use rand::{SeedableRng as _, rngs::SmallRng};
use tracing::{debug, info, warn};

use crate::{
    backoff::BackoffLimits,
    event_decoder::{EventDecoder, WatchEvent},
    list_watch_policy::{Ended, ListWatchPolicy, Reaction, ReadState, ReadStep},
    read_error::ReadError,
};

/// What a follower wants done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Say whether the cluster serves the kind, now and whenever that changes: [`discovered`](Follower::found).
    Discover,
    /// Ask which kinds there are once more, and then say so.
    Rediscover,
    /// Ask for a page of the list: [`page`](Follower::page).
    List {
        /// The path.
        path: String,
        /// How to ask for this page, if it is not the first.
        rest: Option<String>,
    },
    /// Watch: [`opened`](Follower::opened), then [`line`](Follower::line) by line, then [`ended`](Follower::ended). All
    /// the while, say if the kind is served in another way.
    Watch {
        /// The path.
        path: String,
        /// What has changed since this version is to be told.
        since: ResourceVersion,
    },
    /// Wait for so long: [`slept`](Follower::rested).
    Sleep(Duration),
}

/// Whether a cluster serves a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discovered {
    /// It has not said so yet.
    Unknown,
    /// It does, in this way.
    Served(Served),
    /// A part of the kind's group does not answer, so nobody can tell.
    Unavailable,
    /// It does not.
    NotServed,
}

/// What was in a line or in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// How much was understood.
    pub read: usize,
    /// How many objects were none.
    pub nonsense: usize,
    /// Whether the server has spoken of its own accord.
    pub bookmark: bool,
    /// Whether nothing came of it.
    pub failed: bool,
}

/// Follows one kind.
pub struct Reflector {
    kind: GroupKind,
    /// The one namespace that is read.
    namespace: Option<String>,
    lens: Arc<Lens>,
    policy: ListWatchPolicy,
    said: Reported,
    /// How the kind is read, once it is.
    reads: Option<(Served, EventDecoder)>,
    stage: Stage,
    events: VecDeque<FeedEvent>,
    random: SmallRng,
}

/// What was last said of the kind as a whole.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
    Nothing,
    Served(Served),
    NotServed,
    /// It cannot be read, or nobody knows whether it is served.
    Unreadable,
}

/// Where it is in its work.
#[derive(Debug)]
enum Stage {
    /// It is to be found out whether the kind is served.
    Discovering,
    /// It is read, as the course has it.
    Reading,
    /// A list has begun: its version, and how to ask for the rest.
    Listing(ResourceVersion, String),
    /// There was nothing where the kind should be: perhaps it is not served any more.
    Rediscovering(Ended),
    /// Something went wrong. Whether the kind is still served is looked at first after that, or not.
    Sleeping { pause: Duration, find: bool },
}

impl Reflector {
    /// One that knows nothing of the kind. The seed is for the pauses, so that not all pause alike.
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
            said: Reported::Nothing,
            reads: None,
            stage: Stage::Discovering,
            events: VecDeque::new(),
            random: SmallRng::seed_from_u64(seed),
        }
    }

    /// The kind.
    pub fn kind(&self) -> &GroupKind {
        &self.kind
    }

    /// Whether there is something to tell. It stays until it is [taken](Self::take).
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes what is to be told next.
    pub fn take(&mut self) -> Option<FeedEvent> {
        let next = self.events.pop_front();
        if self.events.is_empty() {
            // A page takes room for hundreds, and most of the time there is nothing.
            self.events = VecDeque::new();
        }
        next
    }

    /// Whether everything was listed once.
    pub fn has_listed(&self) -> bool {
        self.policy.has_listed()
    }

    /// Everything is to be listed once more, through another lens.
    pub fn set_lens(&mut self, lens: Arc<Lens>) {
        self.lens = lens;
        self.policy.start_over();
        self.stage = Stage::Discovering;
    }

    /// What to do next.
    pub fn next(&self) -> Action {
        let path = || {
            let served = self.reads.as_ref().map(|(served, _)| served);
            served.map(|served| served.path(&self.kind.group, self.namespace.as_deref(), None))
        };
        match (&self.stage, path()) {
            (Stage::Sleeping { pause, .. }, _) => Action::Sleep(*pause),
            (Stage::Rediscovering(_), _) => Action::Rediscover,
            (Stage::Discovering, _) | (_, None) => Action::Discover,
            (Stage::Listing(_, rest), Some(path)) => Action::List { path, rest: Some(rest.clone()) },
            (Stage::Reading, Some(path)) => match self.policy.step() {
                ReadStep::List => Action::List { path, rest: None },
                ReadStep::Watch(since) => Action::Watch { path, since },
            },
        }
    }

    /// The cluster serves the kind so, or not. Gives whether there is something else to do next now.
    pub fn discovered(&mut self, discovered: &Discovered, now: Now) -> bool {
        let reads = self.reads.as_ref().map(|(served, _)| served);
        let is_as_before = matches!(discovered, Discovered::Served(served) if Some(served) == reads);
        match &mut self.stage {
            Stage::Discovering => {
                self.find(discovered);
                !matches!(self.stage, Stage::Discovering)
            }
            Stage::Rediscovering(ended) => {
                let ended = mem::replace(ended, Ended { lived: false, trouble: None });
                if is_as_before {
                    self.react(&ended, true, now);
                } else {
                    self.stage = Stage::Discovering;
                    self.find(discovered);
                }
                true
            }
            // That it is missing is not enough: if it is really gone, the API server ends the watch, and otherwise there is
            // no reason to.
            Stage::Reading if matches!(discovered, Discovered::Served(_)) && !is_as_before => {
                self.stage = Stage::Discovering;
                self.find(discovered);
                true
            }
            Stage::Reading | Stage::Listing(..) | Stage::Sleeping { .. } => false,
        }
    }

    fn find(&mut self, discovered: &Discovered) {
        let kind = &self.kind;
        match discovered {
            Discovered::Served(served) => {
                if !matches!(&self.said, Reported::Served(before) if looks_alike(before, served)) {
                    info!("the cluster serves {kind} in version {}", served.version);
                    let is_read = self.reads.as_ref().is_some_and(|(before, _)| looks_alike(before, served));
                    // What stood in the way of reading it so stands there still, for all that is known.
                    if !is_read || self.said != Reported::Unreadable {
                        self.policy.start_over();
                    }
                }
                self.report_served(served);
                self.reads = Some((served.clone(), EventDecoder::new(Arc::clone(&self.lens), served)));
                self.stage = Stage::Reading;
            }
            Discovered::Unavailable if self.said != Reported::Unreadable => {
                let why = "the server of its API group does not answer";
                warn!("{kind} cannot be read: {why}; it is tried again");
                self.report_unserved(Unreadable::Failing { why: why.into() }, Reported::Unreadable);
            }
            Discovered::NotServed if self.said != Reported::NotServed => {
                info!("the cluster does not serve {kind}, which is followed as soon as it does");
                self.report_unserved(Unreadable::NotServed, Reported::NotServed);
            }
            Discovered::Unavailable | Discovered::NotServed | Discovered::Unknown => {}
        }
    }

    fn report_unserved(&mut self, why: Unreadable, said: Reported) {
        self.events.push_back(FeedEvent::Unreadable(why));
        self.said = said;
        self.policy.start_over();
    }

    fn report_served(&mut self, served: &Served) {
        if !matches!(&self.said, Reported::Served(before) if before == served) {
            self.events.push_back(FeedEvent::Served(served.clone()));
            self.said = Reported::Served(served.clone());
        }
    }

    /// A page of the list has come, or has not.
    pub fn page(&mut self, answer: Result<&[u8], ReadError>, now: Now) -> Received {
        match answer.and_then(|page| self.read_page(page, now)) {
            Ok(heard) => heard,
            Err(trouble) => {
                self.ended(trouble.into(), now);
                Received { failed: true, ..Received::default() }
            }
        }
    }

    fn read_page(&mut self, page: &[u8], now: Now) -> Result<Received, ReadError> {
        let Some((served, decoder)) = &self.reads else { return Ok(Received::default()) };
        let page = decoder.page(page, now.time);
        let page = page.map_err(|error| ReadError::rejected(format!("a list cannot be read: {error}")))?;
        let version = if let Stage::Listing(version, _) = &self.stage {
            version.clone()
        } else {
            let version = ResourceVersion::new(&page.version);
            let was_put_back = self.policy.accept(&version, now.passed)?;
            let served = served.clone();
            self.report_served(&served);
            if was_put_back {
                self.events.push_back(FeedEvent::Restored);
            }
            self.events.push_back(FeedEvent::ListStarted);
            version
        };
        let mut heard = Received::default();
        for item in page.items {
            match item {
                Some((name, seen)) => {
                    heard.read += 1;
                    self.events.push_back(FeedEvent::Applied(name, seen));
                }
                None => heard.nonsense += self.skip_malformed(),
            }
        }
        self.stage = if let Some(rest) = page.rest {
            Stage::Listing(version, rest)
        } else {
            self.events.push_back(FeedEvent::ListCompleted);
            let turned = self.policy.listed(version);
            self.log_recovery(turned);
            Stage::Reading
        };
        Ok(heard)
    }

    /// A watch has begun. Gives whether to go on with it.
    pub fn opened(&mut self) -> bool {
        self.policy.opened()
    }

    /// A line of the watch.
    pub fn line(&mut self, line: &[u8], now: Now) -> Result<Received, ReadError> {
        let Some((_, decoder)) = &self.reads else { return Ok(Received::default()) };
        let told = decoder.event(line, now.time);
        let told = told.map_err(|error| ReadError::rejected(format!("an event cannot be read: {error}")))?;
        let mut heard = Received { read: 1, ..Received::default() };
        let version = match told {
            WatchEvent::Applied(name, seen) => {
                let version = seen.facts.version.clone();
                self.events.push_back(FeedEvent::Applied(name, seen));
                version
            }
            WatchEvent::Deleted(name, version) => {
                self.events.push_back(FeedEvent::Deleted(name));
                version
            }
            WatchEvent::Bookmark(version) => {
                heard.bookmark = true;
                version
            }
            WatchEvent::Error(trouble) => return Err(trouble),
            WatchEvent::Malformed => {
                return Ok(Received { nonsense: self.skip_malformed(), ..Received::default() });
            }
        };
        self.policy.told(&version);
        let turned = self.policy.lived();
        self.log_recovery(turned);
        Ok(heard)
    }

    /// A watch has ended, or what was asked went wrong.
    pub fn ended(&mut self, ended: Ended, now: Now) {
        if matches!(ended.trouble, Some(ReadError::NotFound { .. })) {
            self.stage = Stage::Rediscovering(ended);
        } else {
            self.react(&ended, false, now);
        }
    }

    /// It has waited for as long as it wished.
    pub fn slept(&mut self) {
        if let Stage::Sleeping { find, .. } = self.stage {
            self.stage = if find { Stage::Discovering } else { Stage::Reading };
        }
    }

    /// Says what went wrong where it matters, and rests.
    fn react(&mut self, ended: &Ended, find: bool, now: Now) {
        let reaction = self.policy.ended(ended, now.passed, &mut self.random);
        self.stage = Stage::Sleeping { pause: reaction.pause, find };
        match &ended.trouble {
            Some(trouble) => self.log_error(trouble, &reaction),
            None => self.log_recovery(reaction.turned),
        }
    }

    fn log_error(&mut self, trouble: &ReadError, reaction: &Reaction) {
        let kind = &self.kind;
        debug!("{kind} was not read: {trouble}");
        let resource = self.reads.as_ref().map(|(served, _)| Arc::clone(&served.plural)).unwrap_or_default();
        match reaction.turned {
            Some(ReadState::Unavailable) => {
                warn!(
                    "the cluster does not answer about {kind}, and what is known stays in force: {trouble}"
                );
                return;
            }
            Some(ReadState::Forbidden) => {
                info!("{kind} may not be read; allow list and watch on {resource}: {trouble}");
            }
            Some(ReadState::Failing) => {
                warn!("{kind} cannot be read, and that has not gone away by itself: {trouble}");
            }
            Some(ReadState::Readable) | None => return,
        }
        self.events.extend(trouble.unreadable(&resource).map(FeedEvent::Unreadable));
        self.said = Reported::Unreadable;
    }

    fn skip_malformed(&self) -> usize {
        warn!("the cluster has sent something as {} that is no object, and it is passed over", self.kind);
        1
    }

    fn log_recovery(&self, turned: Option<ReadState>) {
        if turned == Some(ReadState::Readable) {
            info!("{} is read again", self.kind);
        }
    }
}

/// Whether objects that were read in one way would look the same when read in the other.
fn looks_alike(one: &Served, other: &Served) -> bool {
    let way = |served: &Served| {
        (Arc::clone(&served.version), Arc::clone(&served.plural), served.namespaced, served.has_status)
    };
    way(one) == way(other)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn served(version: &str) -> Served {
        Served {
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
        Action::List { path: "/apis/acme.io/v1/widgets".to_owned(), rest: rest.map(str::to_owned) }
    }

    fn watch(since: &str) -> Action {
        Action::Watch { path: "/apis/acme.io/v1/widgets".to_owned(), since: ResourceVersion::new(since) }
    }

    /// What there is to tell, in a word each.
    fn told(reflector: &mut Reflector) -> String {
        let word = |events| match events {
            FeedEvent::Served(_) => "served".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotServed) => "not served".to_owned(),
            FeedEvent::Unreadable(Unreadable::Forbidden { .. }) => "forbidden".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotConnected) => "not connected".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotInInput) => "not given".to_owned(),
            FeedEvent::Unreadable(Unreadable::Failing { .. }) => "failing".to_owned(),
            FeedEvent::Restored => "put back".to_owned(),
            FeedEvent::ListStarted => "listing".to_owned(),
            FeedEvent::Applied(name, _) => name.to_string(),
            FeedEvent::Deleted(name) => format!("{name} gone"),
            FeedEvent::ListCompleted => "listed".to_owned(),
        };
        std::iter::from_fn(|| reflector.take()).map(word).collect::<Vec<_>>().join(", ")
    }

    fn widget(name: &str, version: u32) -> String {
        format!(
            r#"{{"metadata":{{"namespace":"shop","name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#
        )
    }

    /// One that watches since version 5.
    fn watching() -> Reflector {
        let mut reflector = reflector();
        reflector.discovered(&Discovered::Served(served("v1")), now());
        reflector.page(Ok(br#"{"metadata":{"resourceVersion":"5"},"items":[]}"#), now());
        assert_eq!(told(&mut reflector), "served, listing, listed");
        assert_eq!(reflector.next(), watch("5"));
        reflector
    }

    #[test]
    fn pages_are_one_list() {
        let mut reflector = reflector();
        assert_eq!(reflector.next(), Action::Discover);
        assert!(!reflector.discovered(&Discovered::Unknown, now()));
        assert!(reflector.discovered(&Discovered::Served(served("v1")), now()));
        assert_eq!(reflector.next(), list(None));
        let first = format!(
            r#"{{"metadata":{{"resourceVersion":"5","continue":"more"}},"items":[{}]}}"#,
            widget("a", 3)
        );
        reflector.page(Ok(first.as_bytes()), now());
        assert_eq!(reflector.next(), list(Some("more")));
        let second = format!(r#"{{"metadata":{{"resourceVersion":"5"}},"items":[7,{}]}}"#, widget("b", 4));
        let heard = reflector.page(Ok(second.as_bytes()), now());
        assert_eq!(heard, Received { read: 1, nonsense: 1, ..Received::default() });
        assert_eq!(told(&mut reflector), "served, listing, shop/a, shop/b, listed");
        assert_eq!(reflector.next(), watch("5"));
    }

    #[test]
    fn a_list_that_breaks_off_begins_anew() {
        let mut reflector = reflector();
        reflector.discovered(&Discovered::Served(served("v1")), now());
        let first = format!(
            r#"{{"metadata":{{"resourceVersion":"5","continue":"more"}},"items":[{}]}}"#,
            widget("a", 3)
        );
        reflector.page(Ok(first.as_bytes()), now());
        reflector.page(Err(ReadError::Expired), now());
        assert!(matches!(reflector.next(), Action::Sleep(_)));
        reflector.slept();
        assert_eq!(reflector.next(), list(None));
        assert_eq!(told(&mut reflector), "served, listing, shop/a", "the end of the list is not told");
    }

    #[test]
    fn lines_are_told_and_remembered() {
        let mut reflector = watching();
        assert!(reflector.opened());
        let line = format!(r#"{{"type":"ADDED","object":{}}}"#, widget("a", 6));
        assert!(reflector.line(line.as_bytes(), now()).is_ok());
        let line = format!(r#"{{"type":"DELETED","object":{}}}"#, widget("a", 7));
        assert!(reflector.line(line.as_bytes(), now()).is_ok());
        assert_eq!(told(&mut reflector), "shop/a, shop/a gone");
        reflector.ended(Ended { lived: true, trouble: None }, now());
        reflector.slept();
        assert_eq!(reflector.next(), watch("7"));
    }

    #[test]
    fn what_is_not_there_is_looked_for() {
        let mut reflector = watching();
        let absent = || Ended::from(ReadError::NotFound { why: "no".into() });
        reflector.ended(absent(), now());
        assert_eq!(reflector.next(), Action::Rediscover);
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert!(matches!(reflector.next(), Action::Sleep(_)), "it is there, so this may pass");
        reflector.slept();
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert_eq!(reflector.next(), watch("5"));
        reflector.ended(absent(), now());
        reflector.discovered(&Discovered::NotServed, now());
        assert_eq!((reflector.next(), &*told(&mut reflector)), (Action::Discover, "not served"));
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert_eq!((reflector.next(), &*told(&mut reflector)), (list(None), "served"));
    }

    /// Discovery names it, and there is nothing behind the name: it is asked for less and less often, and told once.
    #[test]
    fn what_is_served_and_never_there_is_not_asked_for_again_and_again() {
        let (mut reflector, mut longest) = (reflector(), Duration::ZERO);
        reflector.discovered(&Discovered::Served(served("v1")), now());
        for _ in 0..40 {
            assert_eq!(reflector.next(), list(None));
            reflector.page(Err(ReadError::NotFound { why: "no".into() }), now());
            reflector.discovered(&Discovered::Served(served("v1")), now());
            let Action::Sleep(pause) = reflector.next() else { panic!("it rests") };
            longest = longest.max(pause);
            reflector.slept();
            reflector.discovered(&Discovered::Served(served("v1")), now());
        }
        assert_eq!(told(&mut reflector), "served, failing, served");
        assert!(longest > Duration::from_secs(10), "{longest:?}");
    }

    #[test]
    fn another_version_is_listed_anew() {
        let mut reflector = watching();
        assert!(!reflector.discovered(&Discovered::NotServed, now()), "a watch that goes on knows better");
        assert!(!reflector.discovered(&Discovered::Served(served("v1")), now()));
        assert!(reflector.discovered(&Discovered::Served(served("v2")), now()));
        assert_eq!(
            reflector.next(),
            Action::List { path: "/apis/acme.io/v2/widgets".to_owned(), rest: None }
        );
    }

    #[test]
    fn another_lens_is_another_list() {
        let mut reflector = watching();
        let lens = Arc::new(Lens::new(reflector.kind(), Arc::default()));
        reflector.set_lens(lens);
        assert_eq!(reflector.next(), Action::Discover);
        reflector.discovered(&Discovered::Served(served("v1")), now());
        assert_eq!((reflector.next(), &*told(&mut reflector)), (list(None), ""));
    }
}
