//! Clock jumps: forward, back, and a fast clock.
//!
//! libfaketime gives the controller a clock of its own. The variable BELLWETHER_FAKETIME has the path of the
//! library. `cargo xtask test` and `cargo xtask faults` set it; they download the Debian package if the
//! library is not installed.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Fault, FaultProxy, Part, Requests, Verb, eventually};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{
    FaultFixture, MEMBERS, SHOP, TIMEOUT, dead_api_servers,
    fleet::{COLLECTOR, FleetFixture},
    namespace_actions::{APPLICATIONS, PODS, ResourcePath},
    observer::Observer,
    recovered,
    write_kinds::health_check,
};
use crate::controller::{Controller, text};

const LEASES: ResourcePath = ResourcePath { root: "/apis/coordination.k8s.io/v1", plural: "leases" };

/// The clock of a controller, which libfaketime reads from a file.
struct Clock {
    file: NamedTempFile,
    library: PathBuf,
}

impl Clock {
    fn new() -> Result<Self> {
        let library = env::var_os("BELLWETHER_FAKETIME")
            .context("set BELLWETHER_FAKETIME to the path of libfaketime")?;
        let clock = Self { file: NamedTempFile::new()?, library: library.into() };
        clock.set("+0")?;
        Ok(clock)
    }

    /// Sets the offset and the speed in libfaketime's format, such as `-1d` or `+0 x30`.
    fn set(&self, by: &str) -> Result<()> {
        // A rename, because libfaketime must never read an empty file.
        let next = self.file.path().with_extension("next");
        fs::write(&next, by)?;
        Ok(fs::rename(next, self.file.path())?)
    }

    /// The environment of a program with this clock. Only the wall clock changes, unless `fast`: then the
    /// monotonic clock changes too.
    fn environment(&self, fast: bool) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.display().to_string();
        let mut environment = vec![
            ("LD_PRELOAD", path(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", path(self.file.path())),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
        ];
        if !fast {
            environment.push(("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()));
        }
        environment
    }
}

impl FaultFixture<'_> {
    async fn controller_with(&self, clock: &Clock, fast: bool, more: &[&str]) -> Result<Controller> {
        let here = ["--watch-namespace", &self.namespace.name, "--namespace", &self.namespace.name];
        let access = self.cluster.admin().via(self.proxy.address());
        let controller = Controller::launch_with(&access, &[&here, more].concat(), clock.environment(fast))?;
        controller.is_ready().await?;
        Ok(controller)
    }

    async fn lease(&self) -> Result<Value> {
        let name = format!("bellwether-controller-{}", self.namespace.name);
        Ok(self.namespace.get(LEASES, &name).await?["spec"].take())
    }
}

/// The clock of the leader jumps by a day: it stays leader, writes changes at once, and writes nothing
/// because of the jump.
#[rstest]
#[case::forward("clock a day forward", "+1d")]
#[case::back("clock a day back", "-1d")]
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn the_clock_jumps(#[case] name: &str, #[case] by: &str) -> Result<()> {
    let fixture = FaultFixture::new("clock").await?;
    let clock = Clock::new()?;
    fixture.shop().await?;
    let controller = fixture.controller_with(&clock, false, &[]).await?;
    fixture.counts_are(SHOP, (2, 1)).await?;
    fixture.fence().await?;
    let lease = fixture.lease().await?;

    clock.set(by)?;
    let since = Instant::now();
    fixture.namespace.set_ready("db", true).await?;
    fixture.recovers(name, since, (2, 2)).await?;
    let renewed = async || anyhow::Ok(text(&fixture.lease().await?["renewTime"]).parse::<Timestamp>()?);
    let is_far =
        async || Ok(renewed().await?.duration_since(Timestamp::now()).abs() > SignedDuration::from_hours(23));
    eventually(TIMEOUT, "the Lease is renewed in another time", is_far).await?;
    clock.set("+0")?;
    let since = Instant::now();
    fixture.namespace.set_ready("web", false).await?;
    fixture.recovers(&format!("{name}, and to where it was"), since, (2, 1)).await?;

    // The Lease still has the same holder.
    let is_near =
        async || Ok(renewed().await?.duration_since(Timestamp::now()).abs() < SignedDuration::from_hours(1));
    eventually(TIMEOUT, "the Lease is renewed in our time", is_near).await?;
    let after = fixture.lease().await?;
    for field in ["holderIdentity", "leaseTransitions"] {
        assert_eq!(after[field], lease[field]);
    }
    fixture.check_invariants_of_a_fast_clock(controller, 8).await
}

/// A health-check Pod that is due in 10 s is not created a day later because the clock went back.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn the_clock_is_put_back_while_a_pod_is_due() -> Result<()> {
    let fixture = FaultFixture::new("clock-pod").await?;
    let clock = Clock::new()?;
    fixture.shop().await?;
    fixture.namespace.patch(APPLICATIONS, SHOP, json!({ "spec": { "healthCheck": health_check() } })).await?;
    let controller = fixture.controller_with(&clock, false, &["--leader-elect=false"]).await?;
    let pod = async |before: usize| {
        let another = |observer: &Observer| {
            let revisions = observer.revisions(PODS.plural);
            let uids: BTreeSet<_> = revisions.iter().map(|revision| &revision.uid).collect();
            let last = revisions.last().filter(|revision| !revision.gone && uids.len() > before)?;
            Some((last.name.clone(), last.at))
        };
        fixture.observer.until("there is another Pod", another).await
    };
    // The controller replaces the first deleted Pod at once, and the next one after 10 s.
    for before in 0..2 {
        let (name, _) = pod(before).await?;
        fixture.fence().await?;
        let path = format!("{}?gracePeriodSeconds=0", fixture.namespace.path(PODS, Some(&name)));
        fixture.namespace.request(Method::DELETE, &path, &json!({})).await?;
    }
    fixture.fence().await?;
    clock.set("-1d")?;
    let since = Instant::now();
    let (_, at) = pod(2).await?;
    recovered("clock a day back while a Pod is due in 10 s", since, at)?;
    fixture.check_invariants(controller, 20).await
}

/// The speed of a fast clock.
const TIMES: u32 = 30;

/// After a conflict, the engine waits this long for a newer resourceVersion before it writes again.
const CONFLICT_TIMEOUT: Duration = Duration::from_secs(30);

/// The idle timeout of the reflector detects a half-open watch. It takes minutes, so the clock is fast here.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn silence_is_noticed() -> Result<()> {
    let fixture = FaultFixture::new("clock-silent").await?;
    let clock = Clock::new()?;
    fixture.shop().await?;
    let silent = Fault::HalfOpen { after_lines: 0 };
    let fault = fixture.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), silent);
    let controller = fixture.controller_with(&clock, true, &["--leader-elect=false"]).await?;
    fixture.counts_are(SHOP, (2, 1)).await?;
    fault.struck(1).await;
    fixture.namespace.set_ready("db", true).await?;
    // Not before: a fast clock shortens the connect timeout too much for a loaded machine.
    clock.set(&format!("+0 x{TIMES}"))?;
    let since = Instant::now();
    let at = fixture.counts_are(SHOP, (2, 2)).await?;
    let took = at.saturating_duration_since(since) * TIMES;
    recovered("half-open watch, noticed by itself (a clock 30 times as fast)", since, since + took)?;
    // The watch shows no new resourceVersions, so the writes of owner references conflict and are repeated. The
    // later the silence is noticed, the more often.
    let rounds = usize::try_from(took.as_secs() / CONFLICT_TIMEOUT.as_secs())?;
    fixture.check_invariants_of_a_fast_clock(controller, 30 + 2 * rounds).await
}

/// After minutes without the API server, the data of the controller is stale and the probe responds 503. It
/// recovers as soon as the API server responds.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn a_probe_fails_on_stale_data() -> Result<()> {
    let cluster = dead_api_servers::cluster("clock-probe").await?;
    let fixture = FaultFixture::in_cluster(&cluster, "clock-probe").await?;
    let clock = Clock::new()?;
    fixture.shop().await?;
    fixture.namespace.set_ready("db", true).await?;
    // The monotonic clock jumps too, because time must pass: a jump of the wall clock alone is not silence.
    let controller = fixture.controller_with(&clock, true, &["--leader-elect=false"]).await?;
    fixture.counts_are(SHOP, (2, 2)).await?;
    let path = format!("/readyz/applications/{}/{SHOP}", fixture.namespace.name);
    controller.probed(&path, 200, |_| true).await?;

    cluster.kill_part(Part::ApiServer)?;
    // Right after the kill, the data is not stale.
    assert_eq!(controller.probe(&path).await?.0, 200);
    clock.set("+4m")?;
    let is_stale = |body: &Value| {
        text(&body["message"]).starts_with("no response from the API server since ")
            && body["healthy"] == false
    };
    controller.probed(&path, 503, is_stale).await?;
    cluster.start_part(Part::ApiServer).await?;
    controller.probed(&path, 200, |body| body["state"] == "Ready").await?;
    fixture.check_invariants(controller, 30).await
}

/// A jump of the wall clock does not make the data stale.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn a_probe_does_not_take_a_clock_that_was_set_for_silence() -> Result<()> {
    let fixture = FaultFixture::new("clock-set").await?;
    let clock = Clock::new()?;
    fixture.shop().await?;
    fixture.namespace.set_ready("db", true).await?;
    let controller = fixture.controller_with(&clock, false, &["--leader-elect=false"]).await?;
    fixture.counts_are(SHOP, (2, 2)).await?;
    let path = format!("/readyz/applications/{}/{SHOP}", fixture.namespace.name);
    controller.probed(&path, 200, |_| true).await?;
    for set in ["+4m", "+1h", "-1d"] {
        clock.set(set)?;
        for _ in 0..20 {
            let (code, body) = controller.probe(&path).await?;
            assert_eq!(code, 200, "after the clock was set to {set}: {body}");
        }
    }
    fixture.check_invariants(controller, 30).await
}

/// All times of the clusters are an hour off the controller's: a cluster is fresh while it responds, and nothing is
/// written in vain.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn the_clock_of_clusters_is_an_hour_off() -> Result<()> {
    let fleet = FleetFixture::new("clock-fleet").await?;
    let spoke = FleetFixture::spoke().await?;
    let slow = FaultProxy::before(spoke).await?;
    fleet.register(0, spoke.admin()).await?;
    fleet.register(1, &spoke.admin().via(slow.address())).await?;
    fleet.deployment(SHOP).await?;
    fleet.policy(SHOP, "10s", json!({"statusCollectors": [COLLECTOR]})).await?;
    let mut replicas = 1;
    for by in ["+1h", "-1h"] {
        let clock = Clock::new()?;
        clock.set(by)?;
        let environment = clock.environment(false);
        let access = fleet.hub.admin().via(fleet.proxy.address());
        let arguments = [&fleet.arguments()[..], &["--leader-elect=false"]].concat();
        let controller = Controller::launch_with(&access, &arguments, environment)?;
        let seen = async {
            replicas += 1;
            fleet.report(SHOP, replicas).await?;
            fleet.rows_are(SHOP, json!([["c1", false, replicas], ["c2", false, replicas]])).await?;
            fleet.fence(2).await?;
            let writes = fleet.writes();
            fleet.fence(2).await?;
            ensure!(fleet.writes() == writes, "it writes in vain: {:#?}", fleet.proxy.requests());

            let all = Requests::all;
            let held = [slow.inject(all(), Fault::HoldResponse), slow.inject(all(), Fault::HoldEvents)];
            slow.cut_all().await;
            fleet.rows_are(SHOP, json!([["c1", false, replicas], ["c2", true, replicas]])).await?;
            drop(held);
            fleet.rows_are(SHOP, json!([["c1", false, replicas], ["c2", false, replicas]])).await
        };
        seen.await.with_context(|| format!("{by}: {}", controller.log_since_start()))?;
    }
    Ok(())
}
