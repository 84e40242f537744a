//! Who leads, on a real Lease.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bellwether_kube_io::write::{Campaign, Leadership, LeaseSettings, campaign};
use bellwether_testkit::{Cluster, Fault, FaultProxy, Part, Requests, StatusCode, eventually, rule};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{SOON, Stage, soon};

const LEASE: &str = "bellwether";
/// A machine that does much else must not be mistaken for one that stands still.
const DURATION: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);

struct Candidate {
    leadership: watch::Receiver<Leadership>,
    campaign: Campaign,
}

impl Candidate {
    /// A candidate with short times.
    fn new(client: &Client, namespace: &str, identity: &str) -> Self {
        let settings = LeaseSettings {
            duration: DURATION,
            renew_deadline: DEADLINE,
            retry: RETRY,
            ..LeaseSettings::new(namespace, LEASE, identity)
        };
        let (leadership, campaign) = campaign(client.clone(), settings);
        Self { leadership, campaign }
    }

    fn leads(&self) -> bool {
        leads(&self.leadership)
    }

    /// Waits until it leads.
    async fn lead(&mut self) -> Result<()> {
        soon(self.leadership.wait_for(|it| matches!(it, Leadership::Leading { .. }))).await??;
        Ok(())
    }

    /// Waits until it stands by, and says who leads as far as it knows.
    async fn stand_by(&mut self) -> Result<Option<String>> {
        let standby = soon(self.leadership.wait_for(|it| matches!(it, Leadership::Standby { .. }))).await??;
        match &*standby {
            Leadership::Standby { holder } => Ok(holder.clone()),
            Leadership::Leading { .. } => Ok(None),
        }
    }

    /// Waits until it knows who else leads.
    async fn stand_by_for(&mut self, other: &str) -> Result<()> {
        let wanted = Leadership::Standby { holder: Some(other.to_owned()) };
        soon(self.leadership.wait_for(|it| *it == wanted)).await??;
        Ok(())
    }
}

fn leads(leadership: &watch::Receiver<Leadership>) -> bool {
    let leadership = leadership.borrow();
    // The time is taken after the look: what held then held at that moment.
    leadership.leads_at(Instant::now())
}

/// Looks all the time whether two lead at once. Ended, it says how often it found one leader.
struct Referee {
    task: JoinHandle<Result<usize>>,
    stop: watch::Sender<bool>,
}

impl Referee {
    fn watch(candidates: [&Candidate; 2]) -> Self {
        let receivers = candidates.map(|candidate| candidate.leadership.clone());
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut found = 0;
            while !*stopped.borrow() {
                let leaders = receivers.iter().filter(|it| leads(it)).count();
                ensure!(leaders < 2, "both lead");
                found += leaders;
                sleep(Duration::from_millis(2)).await;
            }
            Ok(found)
        });
        Self { task, stop }
    }

    async fn judge(self) -> Result<usize> {
        self.stop.send_replace(true);
        soon(self.task).await??
    }
}

async fn lease(stage: &Stage) -> Result<Lease> {
    Ok(leases(stage).get(LEASE).await?)
}

fn leases(stage: &Stage) -> Api<Lease> {
    Api::namespaced(stage.client.clone(), &stage.namespace)
}

async fn holder(stage: &Stage) -> Result<String> {
    lease(stage).await?.spec.and_then(|spec| spec.holder_identity).context("a Lease has a holder")
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_leader_dies_the_other_waits_and_leads() -> Result<()> {
    let stage = Stage::set("dies").await?;
    let mut first = Candidate::new(&stage.client, &stage.namespace, "first");
    first.lead().await?;
    let mut second = Candidate::new(&stage.client, &stage.namespace, "second");
    second.stand_by_for("first").await?;
    assert_eq!(holder(&stage).await?, "first");
    let referee = Referee::watch([&first, &second]);
    // Long enough to see that it is renewed.
    sleep(DURATION + DEADLINE).await;
    assert!(first.leads() && !second.leads());

    let died = Instant::now();
    let Candidate { mut leadership, campaign } = first;
    drop(campaign);
    // However it ends, what is received says so.
    soon(leadership.wait_for(|it| *it == Leadership::Standby { holder: None })).await??;
    second.lead().await?;
    // The first led when it died, so the Lease was renewed within the deadline before.
    assert!(died.elapsed() + DEADLINE > DURATION, "too early: {:?}", died.elapsed());
    assert_eq!(holder(&stage).await?, "second");
    assert_eq!(lease(&stage).await?.spec.and_then(|spec| spec.lease_transitions), Some(1));
    assert!(referee.judge().await? > 100);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_released_is_taken_at_once() -> Result<()> {
    let stage = Stage::set("released").await?;
    let patient = |identity: &str| {
        let settings = LeaseSettings {
            duration: 4 * SOON,
            retry: RETRY,
            ..LeaseSettings::new(&stage.namespace, LEASE, identity)
        };
        let (leadership, campaign) = campaign(stage.client.clone(), settings);
        Candidate { leadership, campaign }
    };
    let mut first = patient("first");
    first.lead().await?;
    let mut second = patient("second");
    second.stand_by_for("first").await?;
    let referee = Referee::watch([&first, &second]);

    let Candidate { leadership, campaign } = first;
    soon(campaign.release()).await?;
    assert!(!leads(&leadership));
    second.lead().await?;
    soon(second.campaign.release()).await?;
    assert_eq!(holder(&stage).await?, "", "it is nobody's now");
    referee.judge().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_an_api_server_steps_down_by_itself() -> Result<()> {
    let cluster = Cluster::builder().name("paused").start().await?;
    let namespace = cluster.namespace("paused").await?;
    let mut only = Candidate::new(&cluster.admin().client().await?, &namespace, "only");
    only.lead().await?;
    let paused = Instant::now();
    cluster.pause_part(Part::ApiServer)?;
    let leadership = only.leadership.borrow().clone();
    assert!(!leadership.leads_at(Instant::now() + DEADLINE), "too late: {leadership:?}");
    only.stand_by().await?;
    assert!(paused.elapsed() > DEADLINE / 2, "too early: {:?}", paused.elapsed());
    cluster.resume_part(Part::ApiServer)?;
    only.lead().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_never_lead_however_bad_the_way_is() -> Result<()> {
    let stage = Stage::set("bad-way").await?;
    let proxies = [FaultProxy::before(stage.cluster).await?, FaultProxy::before(stage.cluster).await?];
    let mut candidates = Vec::new();
    for (proxy, identity) in proxies.iter().zip(["first", "second"]) {
        let client = stage.cluster.admin().via(proxy.address()).client().await?;
        candidates.push(Candidate::new(&client, &stage.namespace, identity));
    }
    let [mut first, mut second] = <[Candidate; 2]>::try_from(candidates).ok().context("two candidates")?;
    let referee = Referee::watch([&first, &second]);
    let leases = || Requests::all().resource("leases.coordination.k8s.io");
    let unavailable = Fault::Answer { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None };
    let faults = [
        Fault::LoseResponse,
        Fault::HoldResponse,
        unavailable,
        Fault::Delay(DEADLINE / 3),
        Fault::HalfOpen { after_lines: 0 },
    ];
    // Now on one way, now on the other, for longer than a leader can bear.
    for (fault, proxy) in faults.into_iter().zip(proxies.iter().cycle()) {
        let fault = proxy.inject(leases(), fault);
        sleep(DURATION + DEADLINE).await;
        fault.lift();
    }
    // After all that, the one still leads when the other cannot.
    for (proxy, other) in proxies.iter().zip([&mut second, &mut first]) {
        let fault = proxy.inject(leases(), unavailable);
        other.lead().await?;
        fault.lift();
    }
    assert!(referee.judge().await? > 100);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_somebody_deletes_is_written_again() -> Result<()> {
    let stage = Stage::set("deleted").await?;
    let mut first = Candidate::new(&stage.client, &stage.namespace, "first");
    first.lead().await?;
    let mut second = Candidate::new(&stage.client, &stage.namespace, "second");
    second.stand_by_for("first").await?;
    let referee = Referee::watch([&first, &second]);
    let old = lease(&stage).await?;
    leases(&stage).delete(LEASE, &DeleteParams::default()).await?;
    eventually(SOON, "there is a new Lease", async || {
        Ok(leases(&stage).get_opt(LEASE).await?.is_some_and(|new| new.metadata.uid != old.metadata.uid))
    })
    .await?;
    assert_eq!(holder(&stage).await?, "first");
    sleep(DEADLINE).await;
    assert!(first.leads() && !second.leads());
    referee.judge().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_into_the_lease_stays() -> Result<()> {
    let stage = Stage::set("labels").await?;
    let mut only = Candidate::new(&stage.client, &stage.namespace, "only");
    only.lead().await?;
    let label = Patch::Merge(json!({ "metadata": { "labels": { "team": "a" } } }));
    let labelled = leases(&stage).patch(LEASE, &PatchParams::default(), &label).await?;
    let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
    eventually(SOON, "it is renewed", async || Ok(renewed(&lease(&stage).await?) > renewed(&labelled)))
        .await?;
    let labels = lease(&stage).await?.metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("team").map(String::as_str), Some("a"));
    assert!(only.leads());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_right_to_leases_goes_on_trying() -> Result<()> {
    let stage = Stage::set("no-right").await?;
    let weak = stage.cluster.user("weak-candidate")?;
    let mut only = Candidate::new(&weak.client().await?, &stage.namespace, "only");
    let led = timeout(3 * RETRY, only.leadership.changed()).await;
    assert!(led.is_err(), "{:?}", only.leadership.borrow());
    let rights = rule(&["get", "create", "update"], "coordination.k8s.io", &["leases"]);
    let grant = stage.cluster.grant(&weak, Some(&stage.namespace), vec![rights]).await?;
    only.lead().await?;
    grant.revoke().await?;
    assert_eq!(only.stand_by().await?, None);
    Ok(())
}
