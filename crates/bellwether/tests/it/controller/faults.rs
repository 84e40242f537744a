//! What goes wrong between a controller and its cluster, and how that ends.
//!
//! Faults strike the controller alone: it reaches the API server through a proxy that breaks what a story wants broken,
//! while people, and the witness, reach it directly. Every story ends in the same way ([`Stage::ends_well`]): what was
//! published was true when it was, nothing was lost, nobody writes any more, and a controller that knows nothing of the
//! fault has nothing to add.
//!
//! How long it takes from the end of a fault to the right answer is written down in the file that the variable
//! BELLWETHER_RECOVERIES names, for `cargo xtask faults`. No story fails because of a time.

mod busy;
mod clock;
mod connections;
mod crashes;
mod kinds_and_rights;
mod land;
mod leaders;
mod namespaces;
mod objects;
mod past;
mod rules;
mod servers;
mod too_large;
mod witness;
mod work;
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
use land::Land;
use witness::{Counts, Witness};

/// The Application of most stories.
const SHOP: &str = "shop";

/// The resources whose reading and writing is broken.
const STATUS: &str = "applications.bellwether.dev/status";
const MEMBERS: &str = "deployments.apps";
const OWN: &str = "applications.bellwether.dev";

/// Those that mostly wait for something to run out are told at the same time.
#[tokio::test]
async fn stories_that_take_long() -> Result<()> {
    tokio::try_join!(
        async { connections::a_list_falls_silent().await.context("a list falls silent") },
        async { connections::a_write_falls_silent().await.context("a write falls silent") },
        async {
            leaders::the_leader_stands_still_and_goes_on()
                .await
                .context("the leader stands still and goes on")
        },
        async { too_large::others_have_filled_it().await.context("others have filled an Application") },
    )?;
    Ok(())
}

/// A namespace, its people, its witness, and a proxy for its controller.
struct Stage<'a> {
    cluster: &'a Cluster,
    land: Land,
    witness: Witness,
    proxy: FaultProxy,
    fences: AtomicUsize,
}

impl Stage<'static> {
    /// A stage in the cluster that all stories share whose faults are in the proxy alone.
    async fn set(of: &str) -> Result<Self> {
        static INSTALLED: OnceCell<Result<()>> = OnceCell::const_new();
        let cluster = shared::cluster().await?;
        let install = async || cluster.install(&bellwether_api::crds()).await;
        let installed = INSTALLED.get_or_init(install).await;
        installed.as_ref().map_err(|error| anyhow!("cannot install the CRDs: {error:#}"))?;
        Stage::on(cluster, of).await
    }
}

impl<'a> Stage<'a> {
    /// A stage in a cluster that has the CRDs.
    async fn on(cluster: &'a Cluster, of: &str) -> Result<Self> {
        let land = Land::new(cluster, of).await?;
        let (witness, proxy) = (Witness::of(&land).await?, FaultProxy::before(cluster).await?);
        Ok(Self { cluster, land, witness, proxy, fences: AtomicUsize::new(0) })
    }

    /// Two Deployments of which the second is not ready, and their Application.
    async fn shop(&self) -> Result<()> {
        self.land.application(SHOP, json!({})).await?;
        for name in ["web", "db"] {
            self.land.deployment(name, SHOP).await?;
        }
        self.land.is_ready("web", true).await
    }

    /// The same, with a controller that has said so: the second is not ready.
    async fn looked_after_shop(&self) -> Result<Controller> {
        self.shop().await?;
        let controller = self.controller().await?;
        self.says(SHOP, (2, 1)).await?;
        // What follows from that, such as who owns what, is done as well.
        self.fence().await?;
        Ok(controller)
    }

    /// A controller for this namespace, alone, as soon as it knows all there is.
    async fn controller(&self) -> Result<Controller> {
        let controller = self.launch(&["--leader-elect=false"])?;
        controller.is_ready().await?;
        Ok(controller)
    }

    fn launch(&self, more: &[&str]) -> Result<Controller> {
        self.launch_via(&self.proxy, more)
    }

    /// A controller for this namespace that goes another way.
    fn launch_via(&self, proxy: &FaultProxy, more: &[&str]) -> Result<Controller> {
        let here = ["--watch-namespace", &self.land.namespace, "--namespace", &self.land.namespace];
        Controller::launch(&self.cluster.admin().via(proxy.address()), &[&here, more].concat())
    }

    /// Waits until an Application says so, and that is its last word so far.
    async fn says(&self, application: &str, counts: Counts) -> Result<Instant> {
        let last = || {
            let statuses = self.witness.statuses(application);
            statuses.last().map(|seen| format!("{:#}", seen.object["status"])).unwrap_or_default()
        };
        let what = format!("{application} says {counts:?}");
        let said = self.witness.until(&what, |witness| witness.says(application, counts)).await;
        said.with_context(|| format!("its last status is {}", last()))
    }

    /// Waits until the Application says what is right after a fault, and writes down how long that took.
    async fn recovers(&self, fault: &str, since: Instant, counts: Counts) -> Result<()> {
        let at = self.says(SHOP, counts).await?;
        recovered(fault, since, at)
    }

    /// Waits until a Deployment has the owner that its annotation names.
    async fn is_owned(&self, deployment: &str) -> Result<Instant> {
        let is_so = |witness: &Witness| witness.owned_since(deployment);
        self.witness.until(&format!("{deployment} is owned"), is_so).await
    }

    /// Waits until a Deployment has no owner any more.
    async fn is_free(&self, deployment: &str) -> Result<Instant> {
        let is_so = |witness: &Witness| witness.free_since(deployment);
        self.witness.until(&format!("{deployment} is owned by nobody"), is_so).await
    }

    /// All that was written, apart from what the fences of this stage, Events and Leases have been the cause of.
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

    /// Lets something happen to an Application of its own, and waits until its status says so. What happened before was seen
    /// before, and what was to be written before was written, or at least begun.
    async fn fence(&self) -> Result<String> {
        let name = format!("fence-{}", self.fences.fetch_add(1, Ordering::Relaxed));
        self.land.application(&name, json!({})).await?;
        self.land.counted_deployment(&format!("{name}-a"), &name).await?;
        self.says(&name, (1, 0)).await?;
        Ok(name)
    }

    /// The same, and then a change that waits for as long as any change may be made to wait.
    async fn slow_fence(&self) -> Result<()> {
        let name = self.fence().await?;
        self.land.counted_deployment(&format!("{name}-b"), &name).await?;
        self.says(&name, (2, 0)).await.map(drop)
    }

    /// The end of every story. So many writes were enough, and no more come; nothing wrong was said on the way, and nothing
    /// is lost; one who knows nothing of all that finds nothing to write.
    async fn ends_well(&self, controller: Controller, most: usize) -> Result<()> {
        self.fence().await?;
        let mut writes = self.writes();
        // Words may have waited until now.
        for round in 0.. {
            self.slow_fence().await?;
            let more = self.writes().split_off(writes.len());
            ensure!(more.is_empty() || round < 2, "it writes on and on: {}", in_lines(&more));
            if more.is_empty() {
                break;
            }
            writes.extend(more);
        }
        ensure!(writes.len() <= most, "{} writes are too many: {}", writes.len(), in_lines(&writes));
        controller.program.kill();
        self.fresh_look().await
    }

    async fn fresh_look(&self) -> Result<()> {
        self.proxy.forget();
        let _fresh = self.controller().await?;
        self.fence().await?;
        let writes = self.writes();
        ensure!(writes.is_empty(), "a fresh look finds something to write: {}", in_lines(&writes));
        self.witness.catches_up(&self.land).await?;
        self.witness.nothing_wrong()?;
        self.witness.nothing_lost(self.land.deleted())
    }

    /// Lets the controller hear nothing of some resources from now on.
    async fn deaf_to(&self, resources: &[&str]) -> Deaf {
        let hold = |resource: &&str| {
            self.proxy.inject(Requests::of(Verb::Watch, resource).times(1), Fault::HoldEvents)
        };
        let faults: Vec<_> = resources.iter().map(hold).collect();
        self.proxy.cut_all().await;
        for fault in &faults {
            fault.struck(1).await;
        }
        Deaf(faults)
    }

    /// How often something was asked.
    fn count(&self, verb: Verb, resource: &str) -> usize {
        self.proxy.count(&Requests::of(verb, resource))
    }
}

/// Watches whose events are held back.
struct Deaf(Vec<Injected>);

impl Deaf {
    /// Lets it hear all that happened.
    fn hear(self) {
        drop(self.0);
    }

    /// Lets all that was held back be lost, together with the connections.
    async fn end(self, proxy: &FaultProxy) {
        proxy.cut_all().await;
    }
}

/// Requests, a line each.
fn in_lines(requests: &[Recorded]) -> String {
    let line = |request: &Recorded| {
        let Recorded { at, call, uri, status, struck, .. } = request;
        format!("\n{at} {:?} {uri} {status:?}{}", call.verb, if *struck { " struck" } else { "" })
    };
    requests.iter().map(line).collect()
}

/// Writes down how long it took to recover.
fn recovered(fault: &str, since: Instant, at: Instant) -> Result<()> {
    let Some(file) = env::var_os("BELLWETHER_RECOVERIES") else { return Ok(()) };
    let line = format!("{fault}\t{}\n", at.saturating_duration_since(since).as_millis());
    let mut file = File::options().create(true).append(true).open(file)?;
    Ok(file.write_all(line.as_bytes())?)
}
