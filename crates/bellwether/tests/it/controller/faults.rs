//! Fault injection between the controller and the API server: what breaks, and how the controller recovers.
//!
//! Only the controller goes through the fault proxy; the requests of the tests and of the [`observer`] reach
//! the API server directly. Every test ends with [`FaultFixture::check_invariants`]: each published status
//! was true when it was published, no object and no owner reference is lost, the controller stops writing,
//! and a restarted controller has nothing to write.
//!
//! The tests append the time from the end of a fault to the correct status to the file that the variable
//! BELLWETHER_RECOVERIES names, for `cargo xtask faults`. No test limits these times, apart from the common
//! timeout.

mod clock;
mod connections;
mod crashes;
mod dead_api_servers;
mod fleet;
mod fleet_connections;
mod fleet_writes;
mod kinds_and_rights;
mod namespace_actions;
mod namespaces;
mod observer;
mod overloaded_api_server;
mod recreated_objects;
mod restored;
mod rules;
mod split_brain;
mod stale_reads;
mod too_large;
mod write_kinds;
mod writes;
mod wrong_types;

use std::{
    env,
    fs::File,
    io::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use bellwether_testkit::{Cluster, Fault, FaultProxy, Injected, Recorded, Requests, TIMEOUT, Verb, shared};
use serde_json::json;
use tokio::sync::OnceCell;

use super::Controller;
use namespace_actions::{APPLICATIONS, TestNamespace};
use observer::{Counts, Observer};

/// The Application of most tests.
const SHOP: &str = "shop";

/// Resources that faults strike, as `plural.group/subresource`.
const STATUS: &str = "applications.bellwether.dev/status";
const MEMBERS: &str = "deployments.apps";
const OWN: &str = "applications.bellwether.dev";

/// In parallel, because these tests mostly wait for timeouts.
#[tokio::test]
async fn stories_that_take_long() -> Result<()> {
    tokio::try_join!(
        async { connections::a_list_falls_silent().await.context("a list falls silent") },
        async { connections::a_write_falls_silent().await.context("a write falls silent") },
        async {
            split_brain::the_leader_stands_still_and_goes_on()
                .await
                .context("the leader stands still and goes on")
        },
        async { too_large::others_have_filled_it().await.context("others have filled an Application") },
    )?;
    Ok(())
}

/// A namespace, its observer, and the fault proxy in front of its controller.
struct FaultFixture<'a> {
    cluster: &'a Cluster,
    namespace: TestNamespace,
    observer: Observer,
    proxy: FaultProxy,
    fences: AtomicUsize,
}

impl FaultFixture<'static> {
    /// In the shared cluster, for tests whose faults are in the proxy alone.
    async fn new(name: &str) -> Result<Self> {
        static INSTALLED: OnceCell<Result<()>> = OnceCell::const_new();
        let cluster = shared::cluster().await?;
        let install = async || cluster.install(&bellwether_api::crds()).await;
        let installed = INSTALLED.get_or_init(install).await;
        installed.as_ref().map_err(|error| anyhow!("cannot install the CRDs: {error:#}"))?;
        FaultFixture::in_cluster(cluster, name).await
    }
}

impl<'a> FaultFixture<'a> {
    /// The cluster must have the CRDs.
    async fn in_cluster(cluster: &'a Cluster, name: &str) -> Result<Self> {
        let namespace = TestNamespace::new(cluster, name).await?;
        let (observer, proxy) = (Observer::of(&namespace).await?, FaultProxy::before(cluster).await?);
        Ok(Self { cluster, namespace, observer, proxy, fences: AtomicUsize::new(0) })
    }

    /// Creates an Application and two Deployments: `web`, which is ready, and `db`, which is not.
    async fn shop(&self) -> Result<()> {
        self.namespace.application(SHOP, json!({})).await?;
        for name in ["web", "db"] {
            self.namespace.deployment(name, SHOP).await?;
        }
        self.namespace.set_ready("web", true).await
    }

    /// Creates the shop, starts a controller, and waits until the status has 1 of 2 objects ready.
    async fn controlled_shop(&self) -> Result<Controller> {
        self.shop().await?;
        let controller = self.controller().await?;
        self.counts_are(SHOP, (2, 1)).await?;
        // Also wait for the writes that follow, such as owner references.
        self.fence().await?;
        Ok(controller)
    }

    /// Starts a controller for this namespace without leader election, and waits until it is ready.
    async fn controller(&self) -> Result<Controller> {
        let controller = self.launch(&["--leader-elect=false"])?;
        controller.is_ready().await?;
        Ok(controller)
    }

    fn launch(&self, more: &[&str]) -> Result<Controller> {
        self.launch_via(&self.proxy, more)
    }

    /// Starts a controller for this namespace behind another proxy.
    fn launch_via(&self, proxy: &FaultProxy, more: &[&str]) -> Result<Controller> {
        let here = ["--watch-namespace", &self.namespace.name, "--namespace", &self.namespace.name];
        Controller::launch(&self.cluster.admin().via(proxy.address()), &[&here, more].concat())
    }

    /// Waits until the latest status of an Application has these counts, and returns since when.
    async fn counts_are(&self, application: &str, counts: Counts) -> Result<Instant> {
        let last = || {
            let statuses = self.observer.statuses(application);
            statuses.last().map(|revision| format!("{:#}", revision.object["status"])).unwrap_or_default()
        };
        let what = format!("the counts of {application} are {counts:?}");
        let since = self.observer.until(&what, |observer| observer.counts_since(application, counts)).await;
        since.with_context(|| format!("its last status is {}", last()))
    }

    /// Waits for the correct status after a fault, and records how long it took.
    async fn recovers(&self, fault: &str, since: Instant, counts: Counts) -> Result<()> {
        let at = self.counts_are(SHOP, counts).await?;
        recovered(fault, since, at)
    }

    /// Waits until the Application that the annotation names owns a Deployment.
    async fn is_owned(&self, deployment: &str) -> Result<Instant> {
        let is_so = |observer: &Observer| observer.owned_since(deployment);
        self.observer.until(&format!("{deployment} is owned"), is_so).await
    }

    /// Waits until no existing Application owns a Deployment.
    async fn is_free(&self, deployment: &str) -> Result<Instant> {
        let is_so = |observer: &Observer| observer.free_since(deployment);
        self.observer.until(&format!("{deployment} has no owner"), is_so).await
    }

    /// The writes of the controller, without Events, Leases and those for fences.
    fn writes(&self) -> Vec<Recorded> {
        let mut requests = self.proxy.requests();
        requests.retain(|request| {
            let call = &request.call;
            let is_write = matches!(
                call.verb,
                Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection
            );
            let plural = call.resource.as_ref().map_or("", |resource| &resource.plural);
            let is_fence = call.name.as_ref().is_some_and(|name| name.starts_with("fence"));
            is_write && !is_fence && !matches!(plural, "events" | "leases")
        });
        requests
    }

    /// Creates another Application and waits for its status. By then the controller has seen every earlier
    /// change, and has at least started every earlier write.
    async fn fence(&self) -> Result<String> {
        let name = format!("fence-{}", self.fences.fetch_add(1, Ordering::Relaxed));
        self.namespace.application(&name, json!({})).await?;
        self.namespace.unowned_deployment(&format!("{name}-a"), &name).await?;
        self.counts_are(&name, (1, 0)).await?;
        Ok(name)
    }

    /// After a fence, waits for a status change that is not a transition. The outbox delays such changes
    /// longest, so earlier delayed writes are made by then.
    async fn slow_fence(&self) -> Result<()> {
        let name = self.fence().await?;
        self.namespace.unowned_deployment(&format!("{name}-b"), &name).await?;
        self.counts_are(&name, (2, 0)).await.map(drop)
    }

    /// The end of every test. The controller has made at most `most` writes and makes no more; every
    /// published status was true; no object and no owner reference is lost; a restarted controller writes
    /// nothing.
    async fn check_invariants(&self, controller: Controller, most: usize) -> Result<()> {
        self.ends(controller, most).await?;
        self.check_restart(0).await
    }

    /// The same after the clock of the controller was ahead: a restarted controller corrects times that are in
    /// the future, once for each Application.
    async fn check_invariants_of_a_fast_clock(&self, controller: Controller, most: usize) -> Result<()> {
        self.ends(controller, most).await?;
        let applications = self.fences.load(Ordering::Relaxed) + 1;
        self.check_restart(applications).await
    }

    /// Waits until `writes` grows no more, and returns them all.
    async fn settled(&self, writes: impl Fn() -> Vec<Recorded>) -> Result<Vec<Recorded>> {
        let mut settled = writes();
        // The outbox may still delay changes of messages.
        for round in 0.. {
            self.slow_fence().await?;
            let more = writes().split_off(settled.len());
            ensure!(more.is_empty() || round < 2, "it does not stop writing: {}", in_lines(&more));
            if more.is_empty() {
                break;
            }
            settled.extend(more);
        }
        Ok(settled)
    }

    async fn ends(&self, controller: Controller, most: usize) -> Result<()> {
        self.fence().await?;
        // A bad state of a young Application is recorded as an Event later, which writes its status.
        let is_recorded = |revision: observer::Revision| {
            let status = &revision.object["status"];
            let is_bad = status["state"] == "Failed" || status["state"] == "Missing";
            !is_bad || status["lastEvent"]["state"] == status["state"]
        };
        self.observer
            .until("bad states are recorded", |observer| {
                let mut applications = observer.present(APPLICATIONS.plural).into_values();
                applications.all(is_recorded).then_some(())
            })
            .await?;
        let writes = self.settled(|| self.writes()).await?;
        ensure!(writes.len() <= most, "{} writes are too many: {}", writes.len(), in_lines(&writes));
        controller.program.kill();
        Ok(())
    }

    /// A restarted controller makes at most this many writes.
    async fn check_restart(&self, corrections: usize) -> Result<()> {
        self.proxy.forget();
        let _restarted = self.controller().await?;
        self.fence().await?;
        let writes = self.writes();
        ensure!(writes.len() <= corrections, "a restarted controller writes: {}", in_lines(&writes));
        self.observer.catches_up(&self.namespace).await?;
        self.observer.check_statuses()?;
        self.observer.check_owners_and_deletions(self.namespace.deleted())
    }

    /// Holds all watch events of these resources from now on.
    async fn hold_watch_events(&self, resources: &[&str]) -> HeldWatches {
        let hold = |resource: &&str| {
            self.proxy.inject(Requests::of(Verb::Watch, resource).times(1), Fault::HoldEvents)
        };
        let faults: Vec<_> = resources.iter().map(hold).collect();
        self.proxy.cut_all().await;
        for fault in &faults {
            fault.struck(1).await;
        }
        HeldWatches(faults)
    }

    fn count(&self, verb: Verb, resource: &str) -> usize {
        self.proxy.count(&Requests::of(verb, resource))
    }
}

/// Watches whose events the proxy holds.
struct HeldWatches(Vec<Injected>);

impl HeldWatches {
    /// Delivers the held events.
    fn deliver(self) {
        drop(self.0);
    }

    /// Drops the held events together with the connections.
    async fn discard(self, proxy: &FaultProxy) {
        proxy.cut_all().await;
    }
}

fn in_lines(requests: &[Recorded]) -> String {
    let line = |request: &Recorded| {
        let Recorded { at, call, uri, status, struck, .. } = request;
        format!("\n{at} {:?} {uri} {status:?}{}", call.verb, if *struck { " struck" } else { "" })
    };
    requests.iter().map(line).collect()
}

/// Appends to the file that BELLWETHER_RECOVERIES names, if it is set.
pub(super) fn recovered(fault: &str, since: Instant, at: Instant) -> Result<()> {
    let Some(file) = env::var_os("BELLWETHER_RECOVERIES") else { return Ok(()) };
    let line = format!("{fault}\t{}\n", at.saturating_duration_since(since).as_millis());
    let mut file = File::options().create(true).append(true).open(file)?;
    Ok(file.write_all(line.as_bytes())?)
}
