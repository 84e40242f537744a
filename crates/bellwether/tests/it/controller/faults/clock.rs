//! Clocks that jump.
//!
//! The controller is given a clock of its own by libfaketime, whose file the variable BELLWETHER_FAKETIME names.
//! `cargo xtask test` and `cargo xtask faults` set it, and fetch the file where there is a Debian to fetch it from.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Fault, Part, Requests, Verb, eventually};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{
    MEMBERS, SHOP, Stage, TIMEOUT,
    land::{APPLICATIONS, PODS, What},
    recovered, servers,
    witness::Witness,
    work::health_check,
};
use crate::controller::{Controller, text};

const LEASES: What = What { root: "/apis/coordination.k8s.io/v1", plural: "leases" };

/// A clock that can be set.
struct Clock {
    file: NamedTempFile,
    library: PathBuf,
}

impl Clock {
    fn new() -> Result<Self> {
        let library =
            env::var_os("BELLWETHER_FAKETIME").context("say in BELLWETHER_FAKETIME where libfaketime is")?;
        let clock = Self { file: NamedTempFile::new()?, library: library.into() };
        clock.set("+0")?;
        Ok(clock)
    }

    /// From now on it goes wrong by this much.
    fn set(&self, by: &str) -> Result<()> {
        // Whoever reads it must not find it empty.
        let next = self.file.path().with_extension("next");
        fs::write(&next, by)?;
        Ok(fs::rename(next, self.file.path())?)
    }

    /// The environment of a program that goes by it. Only the time of day jumps; what measures how long something takes does
    /// not, unless the clock is to be fast.
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

impl Stage<'_> {
    async fn controller_with(&self, clock: &Clock, fast: bool, more: &[&str]) -> Result<Controller> {
        let here = ["--watch-namespace", &self.land.namespace, "--namespace", &self.land.namespace];
        let access = self.cluster.admin().via(self.proxy.address());
        let controller = Controller::launch_with(&access, &[&here, more].concat(), clock.environment(fast))?;
        controller.is_ready().await?;
        Ok(controller)
    }

    async fn lease(&self) -> Result<Value> {
        let name = format!("bellwether-controller-{}", self.land.namespace);
        Ok(self.land.get(LEASES, &name).await?["spec"].take())
    }
}

/// The clock jumps by a day while it leads and works: it leads on, what happens is written at once, and nothing is written
/// because of the clock.
#[rstest]
#[case::forward("clock a day forward", "+1d")]
#[case::back("clock a day back", "-1d")]
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn the_clock_jumps(#[case] name: &str, #[case] by: &str) -> Result<()> {
    let stage = Stage::set("clock").await?;
    let clock = Clock::new()?;
    stage.shop().await?;
    let controller = stage.controller_with(&clock, false, &[]).await?;
    stage.says(SHOP, (2, 1)).await?;
    stage.fence().await?;
    let lease = stage.lease().await?;

    clock.set(by)?;
    let since = Instant::now();
    stage.land.is_ready("db", true).await?;
    stage.recovers(name, since, (2, 2)).await?;
    let renewed = async || anyhow::Ok(text(&stage.lease().await?["renewTime"]).parse::<Timestamp>()?);
    let is_far =
        async || Ok(renewed().await?.duration_since(Timestamp::now()).abs() > SignedDuration::from_hours(23));
    eventually(TIMEOUT, "the Lease is renewed in another time", is_far).await?;
    clock.set("+0")?;
    let since = Instant::now();
    stage.land.is_ready("web", false).await?;
    stage.recovers(&format!("{name}, and to where it was"), since, (2, 1)).await?;

    // It is still the one who had it before.
    let is_near =
        async || Ok(renewed().await?.duration_since(Timestamp::now()).abs() < SignedDuration::from_hours(1));
    eventually(TIMEOUT, "the Lease is renewed in our time", is_near).await?;
    let after = stage.lease().await?;
    for field in ["holderIdentity", "leaseTransitions"] {
        assert_eq!(after[field], lease[field]);
    }
    stage.ends_well(controller, 8).await
}

/// A health-check Pod that was to be made again in ten seconds is not made a day later because the clock was put back.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn the_clock_is_put_back_while_a_pod_is_due() -> Result<()> {
    let stage = Stage::set("clock-pod").await?;
    let clock = Clock::new()?;
    stage.shop().await?;
    stage.land.patch(APPLICATIONS, SHOP, json!({ "spec": { "healthCheck": health_check() } })).await?;
    let controller = stage.controller_with(&clock, false, &["--leader-elect=false"]).await?;
    let pod = async |before: usize| {
        let another = |witness: &Witness| {
            let seen = witness.seen(PODS.plural);
            let uids: BTreeSet<_> = seen.iter().map(|seen| &seen.uid).collect();
            let last = seen.last().filter(|seen| !seen.gone && uids.len() > before)?;
            Some((last.name.clone(), last.at))
        };
        stage.witness.until("there is another Pod", another).await
    };
    // The first that goes is replaced at once, the next in ten seconds.
    for before in 0..2 {
        let (name, _) = pod(before).await?;
        stage.fence().await?;
        let path = format!("{}?gracePeriodSeconds=0", stage.land.path(PODS, Some(&name)));
        stage.land.ask(Method::DELETE, &path, &json!({})).await?;
    }
    stage.fence().await?;
    clock.set("-1d")?;
    let since = Instant::now();
    let (_, at) = pod(2).await?;
    recovered("clock a day back while a Pod is due in 10 s", since, at)?;
    stage.ends_well(controller, 20).await
}

/// How fast a fast clock is.
const TIMES: u32 = 30;

/// A watch that falls silent for good is noticed by itself. That takes minutes, and so the clock is fast here.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn silence_is_noticed() -> Result<()> {
    let stage = Stage::set("clock-silent").await?;
    let clock = Clock::new()?;
    stage.shop().await?;
    let silent = Fault::HalfOpen { after_lines: 0 };
    let fault = stage.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), silent);
    let controller = stage.controller_with(&clock, true, &["--leader-elect=false"]).await?;
    stage.says(SHOP, (2, 1)).await?;
    fault.struck(1).await;
    stage.land.is_ready("db", true).await?;
    // Not before: to log in takes more than a fraction of a second on a busy machine.
    clock.set(&format!("+0 x{TIMES}"))?;
    let since = Instant::now();
    let at = stage.says(SHOP, (2, 2)).await?;
    let took = at.saturating_duration_since(since) * TIMES;
    recovered("half-open watch, noticed by itself (a clock 30 times as fast)", since, since + took)?;
    stage.ends_well(controller, 40).await
}

/// Once the API server has been gone for minutes, what was heard from it is no reason to call anything well any more: a probe
/// says so, and takes it back as soon as it is heard from again.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn a_probe_does_not_believe_in_what_was_heard_long_ago() -> Result<()> {
    let cluster = servers::cluster("clock-probe").await?;
    let stage = Stage::on(&cluster, "clock-probe").await?;
    let clock = Clock::new()?;
    stage.shop().await?;
    stage.land.is_ready("db", true).await?;
    // Both clocks go on: time passes. A clock on the wall alone that is set is not silence.
    let controller = stage.controller_with(&clock, true, &["--leader-elect=false"]).await?;
    stage.says(SHOP, (2, 2)).await?;
    let path = format!("/readyz/applications/{}/{SHOP}", stage.land.namespace);
    controller.probed(&path, 200, |_| true).await?;

    cluster.kill_part(Part::ApiServer)?;
    // For a moment nobody has missed anything.
    assert_eq!(controller.probe(&path).await?.0, 200);
    clock.set("+4m")?;
    let unheard = |said: &Value| {
        text(&said["message"]).starts_with("the API server has not responded since ")
            && said["healthy"] == false
    };
    controller.probed(&path, 503, unheard).await?;
    cluster.start_part(Part::ApiServer).await?;
    controller.probed(&path, 200, |said| said["state"] == "Ready").await?;
    stage.ends_well(controller, 30).await
}

/// A clock that is set forward says nothing of when the API server was heard from.
#[tokio::test]
#[ignore = "needs libfaketime, which cargo xtask test finds"]
async fn a_probe_does_not_take_a_clock_that_was_set_for_silence() -> Result<()> {
    let stage = Stage::set("clock-set").await?;
    let clock = Clock::new()?;
    stage.shop().await?;
    stage.land.is_ready("db", true).await?;
    let controller = stage.controller_with(&clock, false, &["--leader-elect=false"]).await?;
    stage.says(SHOP, (2, 2)).await?;
    let path = format!("/readyz/applications/{}/{SHOP}", stage.land.namespace);
    controller.probed(&path, 200, |_| true).await?;
    for set in ["+4m", "+1h", "-1d"] {
        clock.set(set)?;
        for _ in 0..20 {
            let (code, said) = controller.probe(&path).await?;
            assert_eq!(code, 200, "after the clock was set to {set}: {said}");
        }
    }
    stage.ends_well(controller, 30).await
}
