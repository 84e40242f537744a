//! Every kind of write that a controller makes, what makes it make one, and how it is when it is made.

use std::{collections::BTreeSet, fmt, time::Instant};

use anyhow::{Result, ensure};
use bellwether_testkit::{Fault, Injected, Requests, Verb};
use serde_json::{Value, json};

use super::{
    super::{condition, text},
    MEMBERS, SHOP, STATUS, Stage,
    land::{APPLICATIONS, EVENTS, PODS},
    witness::Witness,
};
use crate::controller::Controller;

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    /// The status of an Application.
    Status,
    /// The first status, which names the kinds of which objects are to be owned.
    Announced,
    /// The owners of a member.
    Owners,
    /// The owners of one that is a member no longer, because its kind has left the spec.
    Released,
    /// The question whether a Pod could be made.
    PodTried,
    /// The Pod of a health check.
    PodMade,
    /// Its end.
    PodDeleted,
    /// What people are told.
    Event,
    /// The first word of a leader,
    LeaseTaken,
    /// and every further one.
    LeaseRenewed,
}

/// As a word in a sentence.
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

    /// How a controller is started for it.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        if self.is_about_leases() { &[] } else { &["--leader-elect=false"] }
    }
}

/// A template whose Pods nobody schedules.
pub(super) fn health_check() -> Value {
    json!({ "template": { "spec": {
        "containers": [{ "name": "check", "image": "check", "readinessProbe": { "tcpSocket": { "port": 80 } } }],
    } } })
}

/// A fault that will strike a write, and what the write belongs to.
pub(super) struct Struck {
    pub(super) controller: Controller,
    pub(super) fault: Injected,
    _before: Option<Injected>,
}

impl Stage<'_> {
    /// A controller in the middle of its work, one of whose writes a fault strikes.
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
            // Those of before look the same.
            for application in [SHOP, &fence] {
                let is_told = |witness: &Witness| has_told(witness, application, "False").then_some(());
                self.witness.until("people were told of what was before", is_told).await?;
            }
        }
        if work == Work::PodDeleted {
            self.check(health_check()).await?;
            self.pod_answers().await?;
        }
        // The question comes before the deed, and looks the same.
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

    /// Waits for the Pod of the health check, says that it is ready, and waits until that is the Application's word.
    async fn pod_answers(&self) -> Result<Instant> {
        let found = |witness: &Witness| witness.present(PODS.plural).into_keys().next();
        let pod = self.witness.until("there is a Pod", found).await?;
        let ready =
            json!({ "type": "Ready", "status": "True", "reason": "Said", "message": "people say so" });
        self.land.report(PODS, &pod, json!({ "phase": "Running", "conditions": [ready] })).await?;
        self.witness
            .until("it is ready", |witness| {
                let statuses = witness.statuses(SHOP);
                let seen = statuses.last()?;
                let status = &seen.object["status"];
                let is_so = status["ready"] == "True" && condition(status, "Ready")["status"] == "True";
                is_so.then_some(seen.at)
            })
            .await
    }

    /// Waits until all is as it should be after this write, made once.
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
                let is_gone = |witness: &Witness| {
                    let seen = witness.seen(PODS.plural);
                    seen.last().filter(|seen| seen.gone).map(|seen| seen.at)
                };
                let gone = self.witness.until("the Pod is gone", is_gone).await?;
                gone.max(self.says(SHOP, (2, 2)).await?)
            }
            Work::LeaseTaken | Work::LeaseRenewed => {
                self.land.is_ready("db", true).await?;
                self.says(SHOP, (2, 2)).await?
            }
        };
        Ok(at)
    }

    /// Whether nothing was done twice.
    pub(super) fn is_done_once(&self, work: Work) -> Result<()> {
        let pods: BTreeSet<_> = self.witness.seen(PODS.plural).into_iter().map(|seen| seen.uid).collect();
        ensure!(pods.len() == usize::from(work.is_about_pods()), "{} Pods have been made", pods.len());
        let left = self.witness.present(PODS.plural).len();
        ensure!(
            left == usize::from(work.is_about_pods() && work != Work::PodDeleted),
            "{left} Pods are there"
        );
        // A turn is told once, or, if whoever was to tell it was killed, not at all.
        let turns = turns_told(&self.witness, SHOP);
        let differ: BTreeSet<_> = turns.iter().collect();
        ensure!(differ.len() == turns.len(), "something was told twice: {turns:?}");
        Ok(())
    }
}

/// What people were told of an Application.
fn turns_told(witness: &Witness, application: &str) -> Vec<String> {
    let events = witness.present(EVENTS.plural).into_values();
    let events = events.filter(|event| event.object["regarding"]["name"] == application);
    events.map(|event| text(&event.object["note"])).collect()
}

/// Whether people were told of an Application in these words.
pub(super) fn has_told(witness: &Witness, application: &str, words: &str) -> bool {
    turns_told(witness, application).iter().any(|note| note.contains(words))
}
