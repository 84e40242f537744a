//! The kinds of writes that a controller makes: how a test provokes each of them, and checks its result.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Instant,
};

use anyhow::{Result, ensure};
use bellwether_testkit::{Fault, Injected, Requests, TIMEOUT, Verb, eventually};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    super::{condition, text},
    FaultFixture, MEMBERS, SHOP, STATUS,
    namespace_actions::{APPLICATIONS, EVENTS, PODS},
    observer::{Observer, Revision},
};
use crate::controller::Controller;

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WriteKind {
    /// The status of an Application.
    Status,
    /// The first status, which publishes `ownedKinds`.
    FirstStatus,
    /// The owner references of a member.
    Owners,
    /// The removal of owner references, because the spec no longer names the kind.
    OwnersRemoved,
    /// The dry run of a health-check Pod.
    PodDryRun,
    /// The creation of a health-check Pod.
    PodCreated,
    /// The deletion of a health-check Pod.
    PodDeleted,
    /// The Event of a transition.
    Event,
    /// The creation of the Lease.
    LeaseCreated,
    /// A renewal of the Lease.
    LeaseRenewed,
}

/// As in the names of recoveries, such as "kill -9 before a status".
impl fmt::Display for WriteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "a status",
            Self::FirstStatus => "a first status",
            Self::Owners => "owners",
            Self::OwnersRemoved => "the end of owners",
            Self::PodDryRun => "a Pod's trial",
            Self::PodCreated => "a Pod's creation",
            Self::PodDeleted => "a Pod's deletion",
            Self::Event => "an Event",
            Self::LeaseCreated => "a Lease's creation",
            Self::LeaseRenewed => "a Lease's renewal",
        })
    }
}

impl WriteKind {
    pub(super) const ALL: [Self; 10] = [
        Self::Status,
        Self::FirstStatus,
        Self::Owners,
        Self::OwnersRemoved,
        Self::PodDryRun,
        Self::PodCreated,
        Self::PodDeleted,
        Self::Event,
        Self::LeaseCreated,
        Self::LeaseRenewed,
    ];

    fn requests(self) -> Requests {
        match self {
            Self::Status | Self::FirstStatus => Requests::of(Verb::Patch, STATUS),
            Self::Owners | Self::OwnersRemoved => Requests::of(Verb::Patch, MEMBERS),
            Self::PodDryRun | Self::PodCreated => Requests::of(Verb::Create, "pods"),
            Self::PodDeleted => Requests::of(Verb::Delete, "pods"),
            Self::Event => Requests::of(Verb::Create, "events.events.k8s.io"),
            Self::LeaseCreated => Requests::of(Verb::Create, "leases.coordination.k8s.io"),
            Self::LeaseRenewed => Requests::of(Verb::Update, "leases.coordination.k8s.io"),
        }
        .times(1)
    }

    fn is_about_pods(self) -> bool {
        matches!(self, Self::PodDryRun | Self::PodCreated | Self::PodDeleted)
    }

    fn is_about_leases(self) -> bool {
        matches!(self, Self::LeaseCreated | Self::LeaseRenewed)
    }

    /// The arguments of a controller that makes this write.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        if self.is_about_leases() { &[] } else { &["--leader-elect=false"] }
    }
}

/// No scheduler handles these Pods: the tests write their status.
pub(super) fn health_check() -> Value {
    json!({ "template": { "spec": {
        "containers": [{ "name": "check", "image": "check", "readinessProbe": { "tcpSocket": { "port": 80 } } }],
    } } })
}

pub(super) struct Struck {
    pub(super) controller: Controller,
    pub(super) fault: Injected,
    _before: Option<Injected>,
}

impl FaultFixture<'_> {
    /// Starts a controller, provokes the write, and waits until the fault strikes it.
    pub(super) async fn struck(&self, kind: WriteKind, fault: Fault) -> Result<Struck> {
        if matches!(kind, WriteKind::LeaseCreated | WriteKind::FirstStatus) {
            self.shop().await?;
            let fault = self.proxy.inject(kind.requests(), fault);
            let controller = self.launch(kind.arguments())?;
            fault.struck(1).await;
            return Ok(Struck { controller, fault, _before: None });
        }
        self.shop().await?;
        let controller = self.launch(kind.arguments())?;
        self.counts_are(SHOP, (2, 1)).await?;
        if kind.is_about_pods() {
            self.namespace.set_ready("db", true).await?;
            self.counts_are(SHOP, (2, 2)).await?;
        }
        self.fence().await?;
        if kind == WriteKind::Event {
            self.is_out_of_grace(SHOP).await?;
        }
        if kind == WriteKind::PodDeleted {
            self.check(health_check()).await?;
            self.pod_becomes_ready().await?;
        }
        // The dry run comes before the creation, and matches the same requests.
        let harmless = Fault::Delay(std::time::Duration::ZERO);
        let before = (kind == WriteKind::PodCreated).then(|| self.proxy.inject(kind.requests(), harmless));
        let fault = self.proxy.inject(kind.requests(), fault);
        match kind {
            WriteKind::Status | WriteKind::Event => self.namespace.set_ready("db", true).await?,
            WriteKind::Owners => self.namespace.deployment("mail", SHOP).await.map(drop)?,
            WriteKind::OwnersRemoved => {
                let other = json!({ "spec": { "componentKinds": [{ "kind": "ConfigMap" }] } });
                self.namespace.patch(APPLICATIONS, SHOP, other).await.map(drop)?;
            }
            WriteKind::PodDryRun | WriteKind::PodCreated => self.check(health_check()).await?,
            WriteKind::PodDeleted => self.check(Value::Null).await?,
            WriteKind::FirstStatus | WriteKind::LeaseCreated | WriteKind::LeaseRenewed => {}
        }
        fault.struck(1).await;
        Ok(Struck { controller, fault, _before: before })
    }

    /// Waits until the state of an Application is worth an Event: while a manifest is applied, it is not.
    async fn is_out_of_grace(&self, name: &str) -> Result<()> {
        let application = self.namespace.get(APPLICATIONS, name).await?;
        let created: Timestamp = text(&application["metadata"]["creationTimestamp"]).parse()?;
        let end = created + SignedDuration::from_secs(11);
        eventually(TIMEOUT, "the grace period is over", async || Ok(Timestamp::now() > end)).await
    }

    async fn check(&self, health_check: Value) -> Result<()> {
        self.namespace
            .patch(APPLICATIONS, SHOP, json!({ "spec": { "healthCheck": health_check } }))
            .await
            .map(drop)
    }

    /// Waits for the health-check Pod, reports it as ready, and waits until the Application is ready.
    async fn pod_becomes_ready(&self) -> Result<Instant> {
        let found = |observer: &Observer| observer.present(PODS.plural).into_keys().next();
        let pod = self.observer.until("there is a Pod", found).await?;
        let ready = json!({ "type": "Ready", "status": "True", "reason": "Reported", "message": "written by the test" });
        self.namespace.report(PODS, &pod, json!({ "phase": "Running", "conditions": [ready] })).await?;
        self.observer
            .until("it is ready", |observer| {
                let statuses = observer.statuses(SHOP);
                let revision = statuses.last()?;
                let status = &revision.object["status"];
                let is_so = status["ready"] == "True" && condition(status, "Ready")["status"] == "True";
                is_so.then_some(revision.at)
            })
            .await
    }

    /// Waits for the state that this write leads to.
    pub(super) async fn is_done(&self, kind: WriteKind) -> Result<Instant> {
        let at = match kind {
            WriteKind::Status | WriteKind::Event => self.counts_are(SHOP, (2, 2)).await?,
            WriteKind::FirstStatus => {
                self.counts_are(SHOP, (2, 1)).await?;
                self.is_owned("web").await?.max(self.is_owned("db").await?)
            }
            WriteKind::OwnersRemoved => {
                self.counts_are(SHOP, (0, 0)).await?;
                self.is_free("web").await?.max(self.is_free("db").await?)
            }
            WriteKind::Owners => {
                self.counts_are(SHOP, (3, 1)).await?;
                self.is_owned("mail").await?
            }
            WriteKind::PodDryRun | WriteKind::PodCreated => self.pod_becomes_ready().await?,
            WriteKind::PodDeleted => {
                let is_gone = |observer: &Observer| {
                    let revisions = observer.revisions(PODS.plural);
                    revisions.last().filter(|revision| revision.gone).map(|revision| revision.at)
                };
                let gone = self.observer.until("the Pod is gone", is_gone).await?;
                gone.max(self.counts_are(SHOP, (2, 2)).await?)
            }
            WriteKind::LeaseCreated | WriteKind::LeaseRenewed => {
                self.namespace.set_ready("db", true).await?;
                self.counts_are(SHOP, (2, 2)).await?
            }
        };
        Ok(at)
    }

    /// Checks that no Pod was created twice and no Event recorded twice.
    pub(super) fn is_done_once(&self, kind: WriteKind) -> Result<()> {
        let pods: BTreeSet<_> =
            self.observer.revisions(PODS.plural).into_iter().map(|revision| revision.uid).collect();
        ensure!(pods.len() == usize::from(kind.is_about_pods()), "{} Pods were created", pods.len());
        let left = self.observer.present(PODS.plural).len();
        ensure!(
            left == usize::from(kind.is_about_pods() && kind != WriteKind::PodDeleted),
            "{left} Pods exist"
        );
        // Each published `lastEvent` has at most one Event: none in the grace period, and none if the controller
        // was killed before it recorded it.
        let published = published_events(&self.observer, SHOP);
        for (state, recorded) in recorded_events(&self.observer, SHOP) {
            let most = published.iter().filter(|(published, _)| *published == state).count();
            ensure!(recorded.len() <= most, "{most} changes to {state}, and the Events {recorded:?}");
        }
        Ok(())
    }
}

/// The state and time of each different `lastEvent` in the published statuses of an Application.
fn published_events(observer: &Observer, application: &str) -> BTreeSet<(String, String)> {
    let events = observer.statuses(application).into_iter().map(|revision| {
        let last_event = &revision.object["status"]["lastEvent"];
        (text(&last_event["state"]), text(&last_event["time"]))
    });
    events.collect()
}

/// The notes of the Events of an Application, by their reason: the state.
fn recorded_events(observer: &Observer, application: &str) -> BTreeMap<String, Vec<String>> {
    let mut events = BTreeMap::<_, Vec<_>>::new();
    for Revision { object: event, .. } in observer.present(EVENTS.plural).into_values() {
        if event["regarding"]["name"] == application {
            events.entry(text(&event["reason"])).or_default().push(text(&event["note"]));
        }
    }
    events
}

/// Whether an Event of an Application has these words in its note.
pub(super) fn has_recorded(observer: &Observer, application: &str, words: &str) -> bool {
    recorded_events(observer, application).values().flatten().any(|note| note.contains(words))
}
