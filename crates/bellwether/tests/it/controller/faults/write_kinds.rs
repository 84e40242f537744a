//! The kinds of writes that a controller makes: how a test provokes each of them, and checks its result.

use std::{collections::BTreeSet, fmt, time::Instant};

use anyhow::{Result, ensure};
use bellwether_testkit::{Fault, Injected, Requests, Verb};
use serde_json::{Value, json};

use super::{
    super::{condition, text},
    MEMBERS, SHOP, STATUS, Stage,
    namespace_actions::{APPLICATIONS, EVENTS, PODS},
    observer::Observer,
};
use crate::controller::Controller;

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    /// The status of an Application.
    Status,
    /// The first status, which publishes `ownedKinds`.
    Announced,
    /// The owner references of a member.
    Owners,
    /// The removal of owner references, because the spec no longer names the kind.
    Released,
    /// The dry run of a health-check Pod.
    PodTried,
    /// The creation of a health-check Pod.
    PodMade,
    /// The deletion of a health-check Pod.
    PodDeleted,
    /// The Event of a transition.
    Event,
    /// The creation of the Lease.
    LeaseTaken,
    /// A renewal of the Lease.
    LeaseRenewed,
}

/// As in the names of recoveries, such as "kill -9 before a status".
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "a status",
            Self::Announced => "a first status",
            Self::Owners => "owners",
            Self::Released => "the end of owners",
            Self::PodTried => "a Pod's trial",
            Self::PodMade => "a Pod's creation",
            Self::PodDeleted => "a Pod's deletion",
            Self::Event => "an Event",
            Self::LeaseTaken => "a Lease's creation",
            Self::LeaseRenewed => "a Lease's renewal",
        })
    }
}

impl Work {
    pub(super) const ALL: [Self; 10] = [
        Self::Status,
        Self::Announced,
        Self::Owners,
        Self::Released,
        Self::PodTried,
        Self::PodMade,
        Self::PodDeleted,
        Self::Event,
        Self::LeaseTaken,
        Self::LeaseRenewed,
    ];

    fn requests(self) -> Requests {
        match self {
            Self::Status | Self::Announced => Requests::of(Verb::Patch, STATUS),
            Self::Owners | Self::Released => Requests::of(Verb::Patch, MEMBERS),
            Self::PodTried | Self::PodMade => Requests::of(Verb::Create, "pods"),
            Self::PodDeleted => Requests::of(Verb::Delete, "pods"),
            Self::Event => Requests::of(Verb::Create, "events.events.k8s.io"),
            Self::LeaseTaken => Requests::of(Verb::Create, "leases.coordination.k8s.io"),
            Self::LeaseRenewed => Requests::of(Verb::Update, "leases.coordination.k8s.io"),
        }
        .times(1)
    }

    fn is_about_pods(self) -> bool {
        matches!(self, Self::PodTried | Self::PodMade | Self::PodDeleted)
    }

    fn is_about_leases(self) -> bool {
        matches!(self, Self::LeaseTaken | Self::LeaseRenewed)
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

impl Stage<'_> {
    /// Starts a controller, provokes the write, and waits until the fault strikes it.
    pub(super) async fn struck(&self, work: Work, fault: Fault) -> Result<Struck> {
        if matches!(work, Work::LeaseTaken | Work::Announced) {
            self.shop().await?;
            let fault = self.proxy.inject(work.requests(), fault);
            let controller = self.launch(work.arguments())?;
            fault.struck(1).await;
            return Ok(Struck { controller, fault, _before: None });
        }
        self.shop().await?;
        let controller = self.launch(work.arguments())?;
        self.says(SHOP, (2, 1)).await?;
        if work.is_about_pods() {
            self.land.is_ready("db", true).await?;
            self.says(SHOP, (2, 2)).await?;
        }
        let fence = self.fence().await?;
        if work == Work::Event {
            // Earlier Events match the same requests.
            for application in [SHOP, &fence] {
                let is_told = |observer: &Observer| has_told(observer, application, "False").then_some(());
                self.observer.until("people were told of what was before", is_told).await?;
            }
        }
        if work == Work::PodDeleted {
            self.check(health_check()).await?;
            self.pod_answers().await?;
        }
        // The dry run comes before the creation, and matches the same requests.
        let harmless = Fault::Delay(std::time::Duration::ZERO);
        let before = (work == Work::PodMade).then(|| self.proxy.inject(work.requests(), harmless));
        let fault = self.proxy.inject(work.requests(), fault);
        match work {
            Work::Status | Work::Event => self.land.is_ready("db", true).await?,
            Work::Owners => self.land.deployment("mail", SHOP).await.map(drop)?,
            Work::Released => {
                let other = json!({ "spec": { "componentKinds": [{ "kind": "ConfigMap" }] } });
                self.land.patch(APPLICATIONS, SHOP, other).await.map(drop)?;
            }
            Work::PodTried | Work::PodMade => self.check(health_check()).await?,
            Work::PodDeleted => self.check(Value::Null).await?,
            Work::Announced | Work::LeaseTaken | Work::LeaseRenewed => {}
        }
        fault.struck(1).await;
        Ok(Struck { controller, fault, _before: before })
    }

    async fn check(&self, health_check: Value) -> Result<()> {
        self.land
            .patch(APPLICATIONS, SHOP, json!({ "spec": { "healthCheck": health_check } }))
            .await
            .map(drop)
    }

    /// Waits for the health-check Pod, reports it as ready, and waits until the Application is ready.
    async fn pod_answers(&self) -> Result<Instant> {
        let found = |observer: &Observer| observer.present(PODS.plural).into_keys().next();
        let pod = self.observer.until("there is a Pod", found).await?;
        let ready =
            json!({ "type": "Ready", "status": "True", "reason": "Said", "message": "people say so" });
        self.land.report(PODS, &pod, json!({ "phase": "Running", "conditions": [ready] })).await?;
        self.observer
            .until("it is ready", |observer| {
                let statuses = observer.statuses(SHOP);
                let seen = statuses.last()?;
                let status = &seen.object["status"];
                let is_so = status["ready"] == "True" && condition(status, "Ready")["status"] == "True";
                is_so.then_some(seen.at)
            })
            .await
    }

    /// Waits for the state that this write leads to.
    pub(super) async fn is_done(&self, work: Work) -> Result<Instant> {
        let at = match work {
            Work::Status | Work::Event => self.says(SHOP, (2, 2)).await?,
            Work::Announced => {
                self.says(SHOP, (2, 1)).await?;
                self.is_owned("web").await?.max(self.is_owned("db").await?)
            }
            Work::Released => {
                self.says(SHOP, (0, 0)).await?;
                self.is_free("web").await?.max(self.is_free("db").await?)
            }
            Work::Owners => {
                self.says(SHOP, (3, 1)).await?;
                self.is_owned("mail").await?
            }
            Work::PodTried | Work::PodMade => self.pod_answers().await?,
            Work::PodDeleted => {
                let is_gone = |observer: &Observer| {
                    let seen = observer.seen(PODS.plural);
                    seen.last().filter(|seen| seen.gone).map(|seen| seen.at)
                };
                let gone = self.observer.until("the Pod is gone", is_gone).await?;
                gone.max(self.says(SHOP, (2, 2)).await?)
            }
            Work::LeaseTaken | Work::LeaseRenewed => {
                self.land.is_ready("db", true).await?;
                self.says(SHOP, (2, 2)).await?
            }
        };
        Ok(at)
    }

    /// Checks that no Pod was created twice and no Event recorded twice.
    pub(super) fn is_done_once(&self, work: Work) -> Result<()> {
        let pods: BTreeSet<_> = self.observer.seen(PODS.plural).into_iter().map(|seen| seen.uid).collect();
        ensure!(pods.len() == usize::from(work.is_about_pods()), "{} Pods have been made", pods.len());
        let left = self.observer.present(PODS.plural).len();
        ensure!(
            left == usize::from(work.is_about_pods() && work != Work::PodDeleted),
            "{left} Pods are there"
        );
        // Each transition has one Event, or none if the controller was killed before it recorded one.
        let turns = turns_told(&self.observer, SHOP);
        let differ: BTreeSet<_> = turns.iter().collect();
        ensure!(differ.len() == turns.len(), "something was told twice: {turns:?}");
        Ok(())
    }
}

/// The notes of the Events of an Application.
fn turns_told(observer: &Observer, application: &str) -> Vec<String> {
    let events = observer.present(EVENTS.plural).into_values();
    let events = events.filter(|event| event.object["regarding"]["name"] == application);
    events.map(|event| text(&event.object["note"])).collect()
}

/// Whether an Event of an Application has these words in its note.
pub(super) fn has_told(observer: &Observer, application: &str, words: &str) -> bool {
    turns_told(observer, application).iter().any(|note| note.contains(words))
}
