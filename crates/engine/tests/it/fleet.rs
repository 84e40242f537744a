//! A hub and clusters in memory, with the engine that reads and writes them. The test controls which clusters
//! answer, and the clock.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bellwether_api::{CombinedResult, ValueType};
use bellwether_engine::{
    BoundRows, BoundRowsQuery, Cluster, ClusterEvent, ClusterMetadata, DiscoveredKinds, Driver, Effect,
    Engine, Event, FeedEvent, FeedId, Group, GroupKind, Lens, NamespacedName, Now, Outcome,
    ProjectionContext, SINGLETON_LABEL, ServedResource, Slot, Unreadable, Write,
};
use bellwether_simulation::{object::Object, objects};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::server::{FeedMessage, Server};

const MAX_STEPS: usize = 100_000;

pub(crate) struct Fleet {
    sites: BTreeMap<Cluster, Site>,
    driver: Driver,
    now: Timestamp,
    pub(crate) writes: Vec<(Slot, Write, Outcome)>,
    /// API groups of the hub whose API server does not respond to discovery.
    unavailable_groups: BTreeSet<Box<str>>,
    /// For the next writes, one by one; then none.
    pub(crate) faults: VecDeque<Fault>,
    pub(crate) writing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Written, no response.
    LoseResponse,
    /// Not written, no response.
    Fail,
    /// Another writer was faster.
    Conflict,
    /// The same, and the watch shows it before the response arrives.
    ConflictSeenFirst,
    /// Written. The watch shows that the policies are deleted before the response arrives or is lost.
    DeletePolicies {
        is_lost: bool,
        /// The object is deleted, too.
        is_gone: bool,
    },
}

struct Site {
    server: Server,
    feeds: BTreeMap<FeedId, SiteFeed>,
    answers: bool,
    is_queued: bool,
    unreadable: BTreeMap<GroupKind, Unreadable>,
    metadata: ClusterMetadata,
    uid: String,
}

struct SiteFeed {
    kind: GroupKind,
    lens: Arc<Lens>,
    queue: VecDeque<FeedMessage>,
}

impl Site {
    fn new(first_uid: fn(u64) -> String) -> Self {
        let mut server = Server::with_uids(first_uid);
        for (kind, plural, namespaced) in [
            ("BindingPolicy.bellwether.dev", "bindingpolicies", false),
            ("StatusCollector.bellwether.dev", "statuscollectors", false),
            ("CombinedStatus.bellwether.dev", "combinedstatuses", true),
            ("Namespace", "namespaces", false),
        ] {
            let resource = ServedResource {
                version: if kind == "Namespace" { "v1" } else { "v1alpha1" }.into(),
                versions: Box::default(),
                plural: plural.into(),
                namespaced,
                has_status: plural != "combinedstatuses",
            };
            server.kinds.insert(objects::kind(kind), resource);
        }
        Self {
            server,
            feeds: BTreeMap::new(),
            answers: true,
            is_queued: false,
            unreadable: BTreeMap::new(),
            metadata: ClusterMetadata::default(),
            uid: String::new(),
        }
    }

    fn list(&self, kind: &GroupKind) -> VecDeque<FeedMessage> {
        let Some(served) = self.server.kinds.get(kind) else {
            return [FeedMessage::Unreadable(Unreadable::NotServed)].into();
        };
        if let Some(why) = self.unreadable.get(kind) {
            return [FeedMessage::Unreadable(why.clone())].into();
        }
        let objects = self.server.of_kind(kind).map(|object| FeedMessage::Set(object.clone()));
        let begin = [FeedMessage::Served(served.clone()), FeedMessage::Listing];
        begin.into_iter().chain(objects).chain([FeedMessage::Listed]).collect()
    }
}

impl Fleet {
    /// A hub and these clusters, each with the label `name`.
    pub(crate) fn new(clusters: &[&str]) -> Self {
        Self::with(engine(), clusters)
    }

    /// Its engine is that of the commands: policies are among the groups.
    pub(crate) fn for_readers(clusters: &[&str]) -> Self {
        Self::with(engine().with_all_bound_objects(), clusters)
    }

    fn with(engine: Engine, clusters: &[&str]) -> Self {
        let mut fleet = Self {
            sites: [(Cluster::hub(), Site::new(|number| format!("hub-{number}")))].into(),
            driver: Driver::new(engine, 4),
            now: "2026-11-14T10:00:00Z".parse().expect("a time"),
            writes: Vec::new(),
            unavailable_groups: BTreeSet::new(),
            faults: VecDeque::new(),
            writing: true,
        };
        fleet.start();
        for cluster in clusters {
            fleet.join(cluster, &[]);
        }
        fleet.step([Event::InventoryListed]);
        fleet.settle();
        fleet
    }

    fn start(&mut self) {
        self.step([Event::Tick]);
        self.discover();
    }

    fn discover(&mut self) {
        let unavailable_groups = self.unavailable_groups.clone();
        let kinds = self.sites[&Cluster::hub()].server.kinds.iter();
        let served = kinds.filter(|(kind, _)| !unavailable_groups.contains(&*kind.group));
        let served = served.map(|(kind, served)| (kind.clone(), served.clone())).collect();
        let kinds = Arc::new(DiscoveredKinds { served, unavailable_groups });
        self.step([Event::Cluster(Cluster::hub(), ClusterEvent::Kinds(kinds))]);
    }

    /// Restarts while the API servers of these groups do not respond to discovery of the hub.
    pub(crate) fn restart_without_groups(&mut self, groups: &[&str]) -> &mut Self {
        self.unavailable_groups = groups.iter().map(|group| (*group).into()).collect();
        self.restart()
    }

    /// All API groups respond to discovery.
    pub(crate) fn recover_groups(&mut self) -> &mut Self {
        self.unavailable_groups.clear();
        self.discover();
        self.settle()
    }

    /// A new process without any memory.
    pub(crate) fn restart(&mut self) -> &mut Self {
        self.driver = Driver::new(engine(), 4);
        for site in self.sites.values_mut() {
            site.feeds.clear();
        }
        self.start();
        let clusters: Vec<_> = self.sites.keys().filter(|cluster| !cluster.is_hub()).cloned().collect();
        for cluster in clusters {
            self.announce(&cluster);
            self.settle();
        }
        self.step([Event::InventoryListed]);
        self.settle();
        let hub = &self.sites[&Cluster::hub()].server;
        let is_labelled = |kind: &&GroupKind| {
            hub.list(kind).any(|object| object["metadata"]["labels"][SINGLETON_LABEL] == "true")
        };
        let kinds: Vec<_> = hub.kinds.keys().filter(is_labelled).cloned().collect();
        self.step(kinds.into_iter().map(Event::SingletonKind));
        self.settle()
    }

    /// A cluster joins the inventory.
    pub(crate) fn join(&mut self, name: &str, labels: &[(&str, &str)]) {
        let mut site = Site::new(|number| format!("u{number}"));
        (site.metadata, site.uid) = (metadata(name, labels), format!("uid-of-{name}"));
        self.sites.insert(Cluster::named(name), site);
        self.announce(&Cluster::named(name));
    }

    /// A cluster joins whose UID is not known.
    pub(crate) fn join_unidentified(&mut self, name: &str) -> &mut Self {
        let mut site = Site::new(|number| format!("u{number}"));
        site.metadata = metadata(name, &[]);
        self.sites.insert(Cluster::named(name), site);
        self.announce(&Cluster::named(name));
        self.settle()
    }

    pub(crate) fn identify(&mut self, name: &str, uid: &str) -> &mut Self {
        uid.clone_into(&mut self.site(name).uid);
        self.cluster(&Cluster::named(name), ClusterEvent::Identified(uid.into()));
        self.settle()
    }

    /// A cluster joins that is not connected to yet.
    pub(crate) fn queue(&mut self, name: &str) {
        self.join(name, &[]);
        let site = self.site(name);
        (site.is_queued, site.answers) = (true, false);
        self.cluster(&Cluster::named(name), ClusterEvent::Removed);
        self.announce(&Cluster::named(name));
    }

    /// It is its turn.
    pub(crate) fn connect(&mut self, name: &str) -> &mut Self {
        let site = self.site(name);
        (site.is_queued, site.answers) = (false, true);
        self.cluster(&Cluster::named(name), ClusterEvent::Connecting);
        self.resume(name)
    }

    fn announce(&mut self, cluster: &Cluster) {
        let site = &self.sites[cluster];
        let (metadata, uid) = (
            Arc::new(site.metadata.clone()),
            (site.answers && !site.uid.is_empty()).then(|| site.uid.as_str().into()),
        );
        self.cluster(cluster, ClusterEvent::Added);
        self.cluster(cluster, ClusterEvent::Metadata(metadata));
        if self.sites[cluster].is_queued {
            return;
        }
        self.cluster(cluster, ClusterEvent::Connecting);
        if let Some(uid) = uid {
            self.cluster(cluster, ClusterEvent::Identified(uid));
        }
    }

    /// Replaces the labels of a cluster.
    pub(crate) fn label(&mut self, name: &str, labels: &[(&str, &str)]) -> &mut Self {
        let metadata = metadata(name, labels);
        self.site(name).metadata = metadata.clone();
        self.cluster(&Cluster::named(name), ClusterEvent::Metadata(Arc::new(metadata)));
        self.settle()
    }

    pub(crate) fn remove_cluster(&mut self, name: &str) -> &mut Self {
        let cluster = Cluster::named(name);
        self.sites.remove(&cluster);
        self.cluster(&cluster, ClusterEvent::Removed);
        self.settle()
    }

    /// Another cluster under the same name, without objects.
    pub(crate) fn rebuild(&mut self, name: &str) -> &mut Self {
        let cluster = Cluster::named(name);
        let site = self.sites.get_mut(&cluster).expect("the cluster is in the fleet");
        site.server = Site::new(|number| format!("new-{number}")).server;
        site.uid = format!("new-{}", site.uid);
        let (feeds, uid): (Vec<_>, _) = (site.feeds.keys().copied().collect(), site.uid.as_str().into());
        self.cluster(&cluster, ClusterEvent::Identified(uid));
        self.relist(&cluster, &feeds);
        self.settle()
    }

    /// Stops answering.
    pub(crate) fn stop(&mut self, name: &str) -> &mut Self {
        self.site(name).answers = false;
        self
    }

    pub(crate) fn resume(&mut self, name: &str) -> &mut Self {
        self.resume_all(&[name.to_owned()])
    }

    /// All at once.
    pub(crate) fn resume_all(&mut self, names: &[String]) -> &mut Self {
        for name in names {
            let site = self.site(name);
            site.answers = true;
            let feeds: Vec<_> = site.feeds.keys().copied().collect();
            self.relist(&Cluster::named(name), &feeds);
        }
        self.settle()
    }

    pub(crate) fn unreadable(&mut self, name: &str, kind: &str, why: Option<Unreadable>) -> &mut Self {
        let kind = objects::kind(kind);
        let site = self.site(name);
        match why {
            Some(why) => site.unreadable.insert(kind.clone(), why),
            None => site.unreadable.remove(&kind),
        };
        let feeds: Vec<_> =
            site.feeds.iter().filter(|(_, feed)| feed.kind == kind).map(|(id, _)| *id).collect();
        self.relist(&cluster_of(name), &feeds);
        self.settle()
    }

    /// Serves a kind, such as `Event.events.k8s.io`.
    pub(crate) fn serve(&mut self, name: &str, kind: &str, plural: &str) -> &mut Self {
        let resource = ServedResource {
            version: "v1".into(),
            versions: Box::default(),
            plural: plural.into(),
            namespaced: true,
            has_status: false,
        };
        self.site(name).server.kinds.insert(objects::kind(kind), resource);
        self.discover();
        self.settle()
    }

    fn relist(&mut self, cluster: &Cluster, feeds: &[FeedId]) {
        let site = self.sites.get_mut(cluster).expect("the cluster is in the fleet");
        site.server.changes().for_each(drop);
        for id in feeds {
            let list = site.list(&site.feeds[id].kind);
            site.feeds.get_mut(id).expect("it is followed").queue = list;
        }
    }

    /// `""` is the hub.
    fn site(&mut self, name: &str) -> &mut Site {
        self.sites.get_mut(&cluster_of(name)).expect("the cluster is in the fleet")
    }

    /// Like a user, and settles. `""` is the hub.
    pub(crate) fn put(&mut self, cluster: &str, object: Value) -> &mut Self {
        self.put_all(cluster, [object])
    }

    pub(crate) fn put_all(&mut self, cluster: &str, objects: impl IntoIterator<Item = Value>) -> &mut Self {
        for object in objects {
            self.site(cluster).server.put(object);
        }
        self.settle()
    }

    pub(crate) fn edit(
        &mut self,
        cluster: &str,
        (kind, name): (&str, &str),
        edit: impl FnOnce(&mut Value),
    ) -> &mut Self {
        self.edit_now(cluster, (kind, name), edit);
        self.settle()
    }

    /// Without any time passing.
    pub(crate) fn edit_now(
        &mut self,
        cluster: &str,
        (kind, name): (&str, &str),
        edit: impl FnOnce(&mut Value),
    ) {
        let (kind, name) = key(kind, name);
        let server = &mut self.site(cluster).server;
        assert!(server.get(&kind, &name).is_some(), "{kind} {name} does not exist");
        server.edit(&kind, &name, edit);
        self.settle_now();
    }

    pub(crate) fn delete(&mut self, cluster: &str, kind: &str, name: &str) -> &mut Self {
        assert!(self.remove(cluster, kind, name), "{kind} {name} does not exist");
        self
    }

    /// Like [`Fleet::delete`]; returns whether the object existed.
    pub(crate) fn remove(&mut self, cluster: &str, kind: &str, name: &str) -> bool {
        let (kind, name) = key(kind, name);
        let existed = self.site(cluster).server.remove(&kind, &name);
        self.settle();
        existed
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        let (kind, name) = key(kind, name);
        self.sites[&Cluster::hub()].server.get(&kind, &name)
    }

    pub(crate) fn get_in(&self, cluster: &str, kind: &str, name: &str) -> Option<&Value> {
        let (kind, name) = key(kind, name);
        self.sites[&cluster_of(cluster)].server.get(&kind, &name)
    }

    pub(crate) fn combined_statuses(&self) -> Vec<&Value> {
        let hub = &self.sites[&Cluster::hub()].server;
        hub.list(&GroupKind::bellwether("CombinedStatus")).collect()
    }

    /// The only CombinedStatus.
    pub(crate) fn combined_status(&self) -> &Value {
        match self.combined_statuses()[..] {
            [one] => one,
            ref all => panic!("there are {} CombinedStatuses", all.len()),
        }
    }

    /// The rows of a collector in the only CombinedStatus, as JSON.
    pub(crate) fn rows(&self, collector: &str) -> Vec<Value> {
        Self::rows_of(self.combined_status(), collector)
    }

    pub(crate) fn rows_of(status: &Value, collector: &str) -> Vec<Value> {
        let results = status["results"].as_array().cloned().unwrap_or_default();
        let result = results.into_iter().find(|result| result["name"] == collector);
        let result = result.unwrap_or_else(|| panic!("{collector} has no result"));
        let result: CombinedResult = serde_json::from_value(result).expect("a result");
        result.rows.into_iter().map(|row| row.columns.into_iter().map(plain).collect()).collect()
    }

    /// `bound`, `reporting`, `stale`, `missing` of the only CombinedStatus.
    pub(crate) fn counts(&self) -> [i64; 4] {
        let counts = &self.combined_status()["clusters"];
        ["bound", "reporting", "stale", "missing"].map(|count| counts[count].as_i64().unwrap_or(-1))
    }

    /// As `west Stale`, in the order of the only CombinedStatus.
    pub(crate) fn not_reporting(&self) -> Vec<String> {
        let clusters = self.combined_status()["clusters"]["notReporting"].as_array();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let clusters = clusters.into_iter().flatten();
        clusters.map(|it| format!("{} {}", text(&it["name"]), text(&it["reason"]))).collect()
    }

    /// The groups, as readers see them.
    pub(crate) fn groups(&self) -> Vec<Group> {
        self.driver.groups(self.now)
    }

    /// Until nothing is left to do.
    pub(crate) fn settle(&mut self) -> &mut Self {
        self.pass(SignedDuration::from_secs(2))
    }

    /// Clusters that answer are heard from every five seconds.
    pub(crate) fn pass(&mut self, time: SignedDuration) -> &mut Self {
        let end = self.now + time;
        for _ in 0..MAX_STEPS {
            self.settle_now();
            let heard = self.now + SignedDuration::from_secs(5);
            let next = self.driver.next().filter(|next| *next > self.now);
            let next = next.unwrap_or(end).min(heard).min(end);
            if self.now == end {
                return self;
            }
            self.now = next;
            let answering = self.sites.iter().filter(|(_, site)| site.answers);
            let heard: Vec<_> = answering
                .map(|(cluster, _)| Event::Cluster(cluster.clone(), ClusterEvent::Heard(self.now)))
                .collect();
            self.step(heard);
            let effects = self.driver.tick(self.clock());
            self.apply(effects);
        }
        panic!("time does not pass");
    }

    fn settle_now(&mut self) {
        for _ in 0..MAX_STEPS {
            if !self.deliver() && !self.write() {
                return;
            }
        }
        panic!("it never ends: {:?}", self.writes.last());
    }

    /// Sets the wall clock of the controller.
    pub(crate) fn set_clock(&mut self, by: SignedDuration) -> &mut Self {
        let passed = self.clock().passed;
        self.now += by;
        let effects = self.driver.tick(Now { time: self.now, passed });
        self.apply(effects);
        self
    }

    /// The writes that wait after a relist in a cluster.
    pub(crate) fn enqueued_by_relist(&mut self, name: &str) -> usize {
        assert_eq!(self.driver.waiting(), 0);
        let feeds: Vec<_> = self.site(name).feeds.keys().copied().collect();
        self.relist(&Cluster::named(name), &feeds);
        self.deliver();
        self.driver.waiting()
    }

    pub(crate) fn backup(&self) -> Server {
        self.sites[&Cluster::hub()].server.clone()
    }

    /// Restores the hub from a backup: resourceVersions go back.
    pub(crate) fn restore(&mut self, backup: Server) -> &mut Self {
        let site = self.site("");
        site.server = backup;
        let feeds: Vec<_> = site.feeds.keys().copied().collect();
        for feed in &feeds {
            self.step([Event::Feed(*feed, FeedEvent::Restored)]);
        }
        self.relist(&Cluster::hub(), &feeds);
        self.settle()
    }

    fn cluster(&mut self, cluster: &Cluster, event: ClusterEvent) {
        self.step([Event::Cluster(cluster.clone(), event)]);
    }

    fn clock(&self) -> Now {
        let passed = self.now.duration_since(Timestamp::UNIX_EPOCH);
        Now { time: self.now, passed: Duration::try_from(passed).expect("after 1970") }
    }

    fn step(&mut self, events: impl IntoIterator<Item = Event>) {
        let effects = self.driver.step(self.clock(), events);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Follow { feed, cluster, kind, lens } => {
                    let Some(site) = self.sites.get_mut(&cluster) else {
                        let gone = FeedEvent::Unreadable(Unreadable::NotConnected);
                        self.step([Event::Feed(feed, gone)]);
                        continue;
                    };
                    let known = site.feeds.remove(&feed).map(|feed| feed.queue).unwrap_or_default();
                    let queue = if site.answers { site.list(&kind) } else { known };
                    site.feeds.insert(feed, SiteFeed { kind, lens, queue });
                }
                Effect::Leave { feed, cluster } => {
                    self.sites.get_mut(&cluster).map(|site| site.feeds.remove(&feed));
                }
                Effect::EnqueueWrite(..) | Effect::Wake(_) => panic!("the driver carries it out"),
                Effect::Changed(..) | Effect::Record(_) | Effect::Warn(_) => {}
            }
        }
    }

    /// An engine that has not read anything.
    pub(crate) fn before_its_lists() -> Self {
        let driver = Driver::new(Engine::new().with_combined_statuses(), 4);
        Self { driver, ..Self::new(&[]) }
    }

    pub(crate) fn bound_rows(&self, query: &BoundRowsQuery) -> Option<BoundRows> {
        self.driver.bound_rows(query)
    }

    /// The kinds that are followed in a cluster.
    pub(crate) fn followed(&self, name: &str) -> BTreeSet<String> {
        self.sites[&cluster_of(name)].feeds.values().map(|feed| feed.kind.to_string()).collect()
    }

    fn deliver(&mut self) -> bool {
        let mut events = Vec::new();
        for site in self.sites.values_mut().filter(|site| site.answers) {
            for (kind, message) in site.server.changes() {
                for feed in site.feeds.values_mut().filter(|feed| feed.kind == kind) {
                    if !site.unreadable.contains_key(&kind) {
                        feed.queue.push_back(message.clone());
                    }
                }
            }
            for (id, feed) in &mut site.feeds {
                let served = site.server.kinds.get(&feed.kind);
                let cx =
                    ProjectionContext { now: self.now, has_status: served.map(|served| served.has_status) };
                let messages = feed.queue.drain(..);
                events.extend(messages.map(|message| Event::Feed(*id, event(&message, &feed.lens, cx))));
            }
        }
        let has_events = !events.is_empty();
        // One by one: an event may be for a feed that another one ends.
        for event in events {
            self.step([event]);
        }
        has_events
    }

    fn write(&mut self) -> bool {
        let due = self.driver.write(self.clock(), self.writing);
        let has_writes = !due.is_empty();
        for (slot, write) in due {
            assert!(slot.object.cluster.is_hub(), "nothing is written to {}", slot.object);
            let is_seen_first =
                matches!(self.faults.front(), Some(Fault::ConflictSeenFirst | Fault::DeletePolicies { .. }));
            let outcome = self.perform(&slot, &write);
            if is_seen_first {
                self.deliver();
            }
            self.writes.push((slot.clone(), write.clone(), outcome.clone()));
            let effects = self.driver.written(self.clock(), (slot, write), outcome, None);
            self.apply(effects);
        }
        has_writes
    }

    fn perform(&mut self, slot: &Slot, write: &Write) -> Outcome {
        let fault = self.faults.pop_front().unwrap_or(Fault::None);
        let hub = &mut self.site("").server;
        match fault {
            Fault::None => hub.perform(slot, write),
            Fault::Fail => Outcome::Failed("no answer".into()),
            Fault::LoseResponse => {
                hub.perform(slot, write);
                Outcome::Failed("no answer".into())
            }
            Fault::DeletePolicies { is_lost, is_gone } => {
                let policies = GroupKind::bellwether("BindingPolicy");
                let names: Vec<_> =
                    hub.list(&policies).map(|policy| policy["metadata"]["name"].clone()).collect();
                for name in names {
                    hub.remove(&policies, &NamespacedName::new("", name.as_str().expect("a name")));
                }
                let outcome = hub.perform(slot, write);
                if is_gone {
                    hub.remove(&slot.object.kind, &slot.object.name);
                }
                if is_lost { Outcome::Failed("no answer".into()) } else { outcome }
            }
            Fault::Conflict | Fault::ConflictSeenFirst => {
                hub.edit(&slot.object.kind, &slot.object.name, |object| {
                    object["metadata"]["annotations"]["quicker"] = "yes".into();
                });
                hub.perform(slot, write)
            }
        }
    }
}

fn engine() -> Engine {
    Engine::new().with_combined_statuses()
}

fn metadata(name: &str, labels: &[(&str, &str)]) -> ClusterMetadata {
    let labels = std::iter::once(("name", name)).chain(labels.iter().copied());
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    ClusterMetadata { labels, annotations: BTreeMap::new() }
}

fn cluster_of(name: &str) -> Cluster {
    if name.is_empty() { Cluster::hub() } else { Cluster::named(name) }
}

fn key(kind: &str, name: &str) -> (GroupKind, NamespacedName) {
    let kind = objects::kind(kind);
    let is_cluster_scoped = matches!(&*kind.kind, "BindingPolicy" | "StatusCollector" | "Namespace");
    let (namespace, name) = name.split_once('/').unwrap_or((objects::NAMESPACE, name));
    let namespace = if is_cluster_scoped { "" } else { namespace };
    (kind, NamespacedName::new(namespace, name))
}

fn event(message: &FeedMessage, lens: &Lens, cx: ProjectionContext) -> FeedEvent {
    match message {
        FeedMessage::Served(served) => FeedEvent::Served(served.clone()),
        FeedMessage::Unreadable(why) => FeedEvent::Unreadable(why.clone()),
        FeedMessage::Listing => FeedEvent::ListStarted,
        FeedMessage::Listed => FeedEvent::ListCompleted,
        FeedMessage::Gone(name) => FeedEvent::Deleted(name.clone()),
        FeedMessage::Set(object) => {
            let object: &Object = object;
            let (name, seen) = object.seen(lens, cx).expect("an object");
            FeedEvent::Applied(name, Box::new(seen))
        }
    }
}

/// A cell as JSON.
fn plain(value: bellwether_api::TypedValue) -> Value {
    match value.type_ {
        ValueType::String => value.string.into(),
        ValueType::Number => {
            let number = value.number.unwrap_or_default();
            serde_json::from_str(&number).unwrap_or_else(|_| panic!("{number} is not a number"))
        }
        ValueType::Bool => value.bool.into(),
        ValueType::Null => Value::Null,
        ValueType::Object => value.object.unwrap_or_default(),
        ValueType::Array => value.array.unwrap_or_default(),
    }
}

/// A StatusCollector.
pub(crate) fn collector(name: &str, spec: &Value) -> Value {
    own("StatusCollector", name, spec)
}

/// A BindingPolicy.
pub(crate) fn policy(name: &str, spec: &Value) -> Value {
    own("BindingPolicy", name, spec)
}

fn own(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A Deployment that wants 3 replicas; without `available`, it has no status.
pub(crate) fn deployment(name: &str, available: Option<i64>) -> Value {
    let status = available.map(|available| {
        json!({
            "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": available,
            "availableReplicas": available,
        })
    });
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": objects::NAMESPACE, "labels": {"app": name}},
        "spec": {"replicas": 3},
    });
    if let Some(status) = status {
        object["status"] = status;
    }
    object
}
