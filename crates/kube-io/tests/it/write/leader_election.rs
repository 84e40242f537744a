//! Leader election on a real Lease: failover, release, renew deadline, faults, 403.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bellwether_kube_io::leader_election::{LeaderElector, Leadership, LeaseSettings};
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

use super::{SOON, WriterFixture, soon};

const LEASE: &str = "bellwether";
/// Long enough for a busy machine.
const DURATION: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);

struct Candidate {
    leadership: watch::Receiver<Leadership>,
    elector: LeaderElector,
}

impl Candidate {
    fn new(client: &Client, namespace: &str, identity: &str) -> Self {
        let settings = LeaseSettings {
            duration: DURATION,
            renew_deadline: DEADLINE,
            retry: RETRY,
            ..LeaseSettings::new(namespace, LEASE, identity)
        };
        let (leadership, elector) = LeaderElector::start(client.clone(), settings);
        Self { leadership, elector }
    }

    fn leads(&self) -> bool {
        leads(&self.leadership)
    }

    async fn lead(&mut self) -> Result<()> {
        soon(self.leadership.wait_for(|leadership| matches!(leadership, Leadership::Leading { .. })))
            .await??;
        Ok(())
    }

    /// Waits until it stands by, and returns the holder.
    async fn stand_by(&mut self) -> Result<Option<String>> {
        let standby =
            soon(self.leadership.wait_for(|leadership| matches!(leadership, Leadership::Standby { .. })))
                .await??;
        match &*standby {
            Leadership::Standby { holder } => Ok(holder.clone()),
            Leadership::Leading { .. } => Ok(None),
        }
    }

    /// Waits until it stands by for this holder.
    async fn stand_by_for(&mut self, other: &str) -> Result<()> {
        let wanted = Leadership::Standby { holder: Some(other.to_owned()) };
        soon(self.leadership.wait_for(|leadership| *leadership == wanted)).await??;
        Ok(())
    }
}

fn leads(leadership: &watch::Receiver<Leadership>) -> bool {
    let leadership = leadership.borrow();
    // The time is taken after the value, so that the value was valid at this time.
    leadership.leads_at(Instant::now())
}

/// Checks continuously that no two candidates lead. Returns how often it found one leader.
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
                let leaders = receivers.iter().filter(|receiver| leads(receiver)).count();
                ensure!(leaders < 2, "both lead");
                found += leaders;
                sleep(Duration::from_millis(2)).await;
            }
            Ok(found)
        });
        Self { task, stop }
    }

    async fn finish(self) -> Result<usize> {
        self.stop.send_replace(true);
        soon(self.task).await??
    }
}

async fn lease(fixture: &WriterFixture) -> Result<Lease> {
    Ok(leases(fixture).get(LEASE).await?)
}

fn leases(fixture: &WriterFixture) -> Api<Lease> {
    Api::namespaced(fixture.client.clone(), &fixture.namespace)
}

async fn holder(fixture: &WriterFixture) -> Result<String> {
    lease(fixture).await?.spec.and_then(|spec| spec.holder_identity).context("a Lease has a holder")
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_after_a_crash_waits_for_the_lease_duration() -> Result<()> {
    let fixture = WriterFixture::new("crash").await?;
    let mut first = Candidate::new(&fixture.client, &fixture.namespace, "first");
    first.lead().await?;
    let mut second = Candidate::new(&fixture.client, &fixture.namespace, "second");
    second.stand_by_for("first").await?;
    assert_eq!(holder(&fixture).await?, "first");
    let referee = Referee::watch([&first, &second]);
    // Long enough for several renewals.
    sleep(DURATION + DEADLINE).await;
    assert!(first.leads() && !second.leads());

    let crashed = Instant::now();
    let Candidate { mut leadership, elector } = first;
    drop(elector);
    // A dropped elector sends `Standby`.
    soon(leadership.wait_for(|value| *value == Leadership::Standby { holder: None })).await??;
    second.lead().await?;
    // The first led when it crashed, so that its last renewal is at most the deadline old.
    assert!(crashed.elapsed() + DEADLINE > DURATION, "too early: {:?}", crashed.elapsed());
    assert_eq!(holder(&fixture).await?, "second");
    assert_eq!(lease(&fixture).await?.spec.and_then(|spec| spec.lease_transitions), Some(1));
    assert!(referee.finish().await? > 100);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_lease_is_taken_at_once() -> Result<()> {
    let fixture = WriterFixture::new("released").await?;
    let patient = |identity: &str| {
        let settings = LeaseSettings {
            duration: 4 * SOON,
            retry: RETRY,
            ..LeaseSettings::new(&fixture.namespace, LEASE, identity)
        };
        let (leadership, elector) = LeaderElector::start(fixture.client.clone(), settings);
        Candidate { leadership, elector }
    };
    let mut first = patient("first");
    first.lead().await?;
    let mut second = patient("second");
    second.stand_by_for("first").await?;
    let referee = Referee::watch([&first, &second]);

    let Candidate { leadership, elector } = first;
    soon(elector.release()).await?;
    assert!(!leads(&leadership));
    second.lead().await?;
    soon(second.elector.release()).await?;
    assert_eq!(holder(&fixture).await?, "", "it has no holder");
    referee.finish().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_steps_down_when_the_api_server_does_not_respond() -> Result<()> {
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
async fn no_two_candidates_lead_under_faults() -> Result<()> {
    let fixture = WriterFixture::new("faults").await?;
    let proxies = [FaultProxy::before(fixture.cluster).await?, FaultProxy::before(fixture.cluster).await?];
    let mut candidates = Vec::new();
    for (proxy, identity) in proxies.iter().zip(["first", "second"]) {
        let client = fixture.cluster.admin().via(proxy.address()).client().await?;
        candidates.push(Candidate::new(&client, &fixture.namespace, identity));
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
    // Each fault lasts longer than the lease duration, on alternating proxies.
    for (fault, proxy) in faults.into_iter().zip(proxies.iter().cycle()) {
        let fault = proxy.inject(leases(), fault);
        sleep(DURATION + DEADLINE).await;
        fault.lift();
    }
    // Then each can still take over from the other.
    for (proxy, other) in proxies.iter().zip([&mut second, &mut first]) {
        let fault = proxy.inject(leases(), unavailable);
        other.lead().await?;
        fault.lift();
    }
    assert!(referee.finish().await? > 100);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_lease_is_created_again_by_its_holder() -> Result<()> {
    let fixture = WriterFixture::new("deleted").await?;
    let mut first = Candidate::new(&fixture.client, &fixture.namespace, "first");
    first.lead().await?;
    let mut second = Candidate::new(&fixture.client, &fixture.namespace, "second");
    second.stand_by_for("first").await?;
    let referee = Referee::watch([&first, &second]);
    let old = lease(&fixture).await?;
    leases(&fixture).delete(LEASE, &DeleteParams::default()).await?;
    eventually(SOON, "a new Lease exists", async || {
        Ok(leases(&fixture).get_opt(LEASE).await?.is_some_and(|new| new.metadata.uid != old.metadata.uid))
    })
    .await?;
    assert_eq!(holder(&fixture).await?, "first");
    sleep(DEADLINE).await;
    assert!(first.leads() && !second.leads());
    referee.finish().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_others_on_the_lease_stay() -> Result<()> {
    let fixture = WriterFixture::new("labels").await?;
    let mut only = Candidate::new(&fixture.client, &fixture.namespace, "only");
    only.lead().await?;
    let label = Patch::Merge(json!({ "metadata": { "labels": { "team": "a" } } }));
    let labelled = leases(&fixture).patch(LEASE, &PatchParams::default(), &label).await?;
    let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
    eventually(SOON, "it is renewed", async || Ok(renewed(&lease(&fixture).await?) > renewed(&labelled)))
        .await?;
    let labels = lease(&fixture).await?.metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("team").map(String::as_str), Some("a"));
    assert!(only.leads());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_permission_a_candidate_retries() -> Result<()> {
    let fixture = WriterFixture::new("forbidden").await?;
    let weak = fixture.cluster.user("weak-candidate")?;
    let mut only = Candidate::new(&weak.client().await?, &fixture.namespace, "only");
    let led = timeout(3 * RETRY, only.leadership.changed()).await;
    assert!(led.is_err(), "{:?}", only.leadership.borrow());
    let rights = rule(&["get", "create", "update"], "coordination.k8s.io", &["leases"]);
    let grant = fixture.cluster.grant(&weak, Some(&fixture.namespace), vec![rights]).await?;
    only.lead().await?;
    grant.revoke().await?;
    assert_eq!(only.stand_by().await?, None);
    Ok(())
}
