//! Twenty clusters: one that is slow, all that reconnect at once, rotated client certificates, an invalid Secret.
//!
//! All clusters have the same objects: each is another name for one API server, behind a proxy of its own. The
//! observer has every version of the CombinedStatus.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{
    Access, Fault, FaultProxy, Injected, Login, Requests, StatusCode, TIMEOUT, Verb, eventually,
};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    super::{Controller, combined_status::rows_of},
    MEMBERS,
    fleet::{COLLECTOR, FleetFixture, RESULTS, is_of},
    namespace_actions::{COMBINED_STATUSES, SECRETS},
};

const CLUSTERS: usize = 20;

/// The Deployment that is bound to all clusters.
const WEB: &str = "web";

/// Silent clusters are stale soon.
const SOON: &str = "30s";

/// No cluster is stale because the machine is slow.
const LATE: &str = "1h";

/// The cluster whose kubeconfig has a client certificate of its own.
const ROTATED: usize = 4;

struct Twenty {
    fleet: FleetFixture,
    proxies: Vec<FaultProxy>,
}

/// One after the other, on one hub: twenty connections are expensive.
#[tokio::test]
async fn twenty_clusters() -> Result<()> {
    let twenty = Twenty::new().await?;
    twenty.tell(SOON, &[COLLECTOR]).await?;
    let held = twenty.hold(0);
    let controller = twenty.fleet.launch(&["--max-connecting-clusters=2"])?;
    let told = async {
        twenty.one_is_slow_from_the_start(held).await.context("one is slow from the start")?;
        twenty.one_becomes_slow().await.context("one becomes slow")?;
        twenty.tell(LATE, &[COLLECTOR]).await?;
        twenty.all_reconnect_at_once().await.context("all reconnect at once")?;
        twenty.the_controller_restarts(&controller).await.context("the controller restarts")?;
        twenty.a_client_certificate_is_exchanged().await.context("a client certificate is exchanged")?;
        twenty.a_collector_always_fails().await.context("a collector always fails")?;
        twenty.a_secret_is_invalid().await.context("a Secret is invalid")
    };
    told.await.with_context(|| controller.log_since_start())
}

impl Twenty {
    async fn new() -> Result<Self> {
        let fleet = FleetFixture::new("twenty").await?;
        fleet.deployment(WEB).await?;
        let spoke = FleetFixture::spoke().await?;
        let mut proxies = Vec::new();
        for number in 0..CLUSTERS {
            let proxy = FaultProxy::before(spoke).await?;
            fleet.register(number, &spoke.admin().via(proxy.address())).await?;
            proxies.push(proxy);
        }
        let twenty = Self { fleet, proxies };
        twenty.fleet.register(ROTATED, &twenty.certificate("first").await?).await?;
        Ok(twenty)
    }

    /// A new client certificate for the cluster whose certificates are exchanged.
    async fn certificate(&self, user: &str) -> Result<Access> {
        let spoke = FleetFixture::spoke().await?;
        let identity = spoke.authority().client(user, Some("system:masters"))?;
        let login = Login::Certificate(Box::new(identity));
        Ok(Access { login, ..spoke.admin().via(self.proxies[ROTATED].address()) })
    }

    async fn tell(&self, threshold: &str, collectors: &[&str]) -> Result<()> {
        self.fleet.policy(WEB, threshold, json!({"statusCollectors": collectors})).await
    }

    /// No request to this cluster is answered, and no event arrives from it.
    fn hold(&self, cluster: usize) -> [Injected; 2] {
        let inject = |fault| self.proxies[cluster].inject(Requests::all(), fault);
        [inject(Fault::HoldResponse), inject(Fault::HoldEvents)]
    }

    /// Waits until all clusters but these are fresh and have these replicas; the others are stale.
    async fn all_have(&self, replicas: u64, stale: &[usize]) -> Result<Value> {
        let is_row_so = |row: &Value| {
            let is_stale = stale.iter().any(|cluster| row[0] == name(*cluster));
            row[1] == is_stale && (is_stale || row[2] == replicas)
        };
        let what = format!("all have {replicas} replicas, except {stale:?}");
        self.fleet
            .combined_is(WEB, &what, |status| {
                let rows = rows_of(status, COLLECTOR);
                let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
                rows.len() == CLUSTERS && rows.iter().all(is_row_so)
            })
            .await
    }

    /// Waits until all clusters but one have these replicas, stale or not.
    async fn others_have(&self, replicas: u64, but: usize) -> Result<Value> {
        let what = format!("all but {} have {replicas} replicas", name(but));
        self.fleet
            .combined_is(WEB, &what, |status| {
                let rows = rows_of(status, COLLECTOR);
                let mut others = rows.as_array().into_iter().flatten().filter(|row| row[0] != name(but));
                others.all(|row| row[2] == replicas)
            })
            .await
    }

    fn lists(&self) -> Vec<usize> {
        self.proxies.iter().map(|proxy| proxy.count(&Requests::of(Verb::List, MEMBERS))).collect()
    }

    fn writes(&self) -> usize {
        self.fleet.count(&Requests::of(Verb::Patch, RESULTS))
    }

    /// Every version so far has a row for each cluster and counts what its rows say, and no row goes back.
    fn check_versions(&self) -> Result<()> {
        let mut before = BTreeMap::new();
        let mut versions = self.fleet.observer.revisions(COMBINED_STATUSES.plural);
        versions.retain(|revision| is_of(revision, WEB));
        for version in versions {
            ensure!(!version.gone, "it was deleted");
            let counts = &version.object["clusters"];
            let rows = rows_of(&version.object, COLLECTOR);
            let rows = rows.as_array().context("no rows")?;
            let wrong = || format!("{counts} {}", json!(rows));
            let stale = rows.iter().filter(|row| row[1] == true).count();
            let expected = json!([rows.len(), rows.len() - stale, stale, 0]);
            let fields = ["bound", "reporting", "stale", "missing"].map(|field| counts[field].clone());
            ensure!(json!(fields) == expected, "{}", wrong());
            let is_complete = (0..CLUSTERS).all(|cluster| rows.iter().any(|row| row[0] == name(cluster)));
            ensure!(is_complete, "{}", wrong());
            for row in rows {
                let replicas = row[2].as_u64();
                ensure!(row[1] == true || replicas.is_some(), "fresh, and unknown: {}", wrong());
                let last = before.insert(row[0].to_string(), replicas).flatten();
                // What a stale cluster reported to a controller before is not known to the next one.
                ensure!(replicas >= last || row[1] == true, "{} was {last:?}: {}", row[0], wrong());
            }
        }
        Ok(())
    }

    async fn one_is_slow_from_the_start(&self, held: [Injected; 2]) -> Result<()> {
        let status = self.all_have(1, &[0]).await?;
        ensure!(status["clusters"]["notReporting"][0]["name"] == "c1", "{:#}", status["clusters"]);
        self.fleet.report(WEB, 2).await?;
        self.all_have(2, &[0]).await?;
        let requests = self.proxies[0].requests();
        let is_held = !requests.is_empty() && requests.iter().all(|request| request.status.is_none());
        ensure!(is_held, "c1 was answered: {requests:#?}");
        drop(held);
        self.all_have(2, &[]).await?;
        for proxy in &self.proxies[1..] {
            let discoveries = proxy.count(&Requests::all().path("/apis"));
            // One, but two on a machine that is so busy that the list of CRDs takes seconds.
            ensure!((1..=2).contains(&discoveries), "{discoveries} discoveries");
        }
        self.check_versions()
    }

    async fn one_becomes_slow(&self) -> Result<()> {
        let held = self.hold(1);
        self.proxies[1].cut_all().await;
        timeout(TIMEOUT, held[1].struck(1)).await.context("c2 is not watched")?;
        self.fleet.report(WEB, 3).await?;
        // The changes of the others show while those of the slow one are held.
        let status = self.others_have(3, 1).await?;
        let rows = rows_of(&status, COLLECTOR);
        let slow = rows.as_array().into_iter().flatten().find(|row| row[0] == name(1)).context("no row")?;
        ensure!(slow[2] == 2, "its events are held: {slow}");
        self.all_have(3, &[1]).await?;
        drop(held);
        self.all_have(3, &[]).await?;
        self.check_versions()
    }

    /// Every connection is cut at once, three times: each watch goes on where it was, and nothing is written.
    async fn all_reconnect_at_once(&self) -> Result<()> {
        self.fleet.report(WEB, 4).await?;
        self.all_have(4, &[]).await?;
        let (lists, writes) = (self.lists(), self.writes());
        let watches = Requests::of(Verb::Watch, MEMBERS);
        for _ in 0..3 {
            let before: Vec<_> = self.proxies.iter().map(|proxy| proxy.count(&watches)).collect();
            join_all(self.proxies.iter().map(FaultProxy::cut_all)).await;
            eventually(TIMEOUT, "all are watched again", async || {
                Ok(self.proxies.iter().zip(&before).all(|(proxy, before)| proxy.count(&watches) > *before))
            })
            .await?;
        }
        ensure!(self.writes() == writes, "nothing had changed");
        self.fleet.report(WEB, 5).await?;
        self.all_have(5, &[]).await?;
        ensure!(self.lists() == lists, "lists: {lists:?}, then {:?}", self.lists());
        self.check_versions()
    }

    async fn the_controller_restarts(&self, controller: &Controller) -> Result<()> {
        controller.program.kill();
        self.fleet.report(WEB, 6).await?;
        controller.start()?;
        self.all_have(6, &[]).await?;
        self.check_versions()
    }

    /// The API server rejects the old certificate before there is a new one.
    async fn a_client_certificate_is_exchanged(&self) -> Result<()> {
        let (proxy, lists) = (&self.proxies[ROTATED], self.lists());
        let rejected = Fault::Answer { status: StatusCode::UNAUTHORIZED, retry_after: None };
        let rejected = proxy.inject(Requests::all().user("first"), rejected);
        proxy.cut_all().await;
        timeout(TIMEOUT, rejected.struck(3)).await.context("it is not requested")?;
        self.fleet.report(WEB, 7).await?;
        self.others_have(7, ROTATED).await?;
        self.fleet.register(ROTATED, &self.certificate("second").await?).await?;
        self.all_have(7, &[]).await?;
        ensure!(proxy.count(&Requests::of(Verb::Watch, MEMBERS).user("second")) > 0, "it is not watched");
        ensure!(self.lists() == lists, "lists: {lists:?}, then {:?}", self.lists());
        self.check_versions()
    }

    async fn a_collector_always_fails(&self) -> Result<()> {
        let select = json!([{"name": "fails", "def": "returned.status.replicas.startsWith('a')"}]);
        self.fleet.collector("fails", json!({"select": select})).await?;
        self.tell(LATE, &[COLLECTOR, "fails"]).await?;
        let result = |status: &Value| {
            let mut results = status["results"].as_array().into_iter().flatten();
            results.find(|result| result["name"] == "fails").cloned().unwrap_or_default()
        };
        let has_errors = |status: &Value| result(status)["rowErrors"].as_array().map(Vec::len) == Some(10);
        let status = self.fleet.combined_is(WEB, "ten errors", has_errors).await?;
        ensure!(rows_of(&status, "fails") == json!([]), "{:#}", result(&status));
        self.fleet.report(WEB, 8).await?;
        let status = self.all_have(8, &[]).await?;
        ensure!(has_errors(&status), "{:#}", result(&status));
        self.tell(LATE, &[COLLECTOR]).await?;
        self.check_versions()
    }

    /// A cluster that cannot be connected is bound, and stale; the others go on.
    async fn a_secret_is_invalid(&self) -> Result<()> {
        self.fleet.register_with(CLUSTERS, "%rubbish").await?;
        let is_bound = |status: &Value| status["clusters"]["bound"] == CLUSTERS + 1;
        let status = self.fleet.combined_is(WEB, "it is bound", is_bound).await?;
        let rows = rows_of(&status, COLLECTOR);
        let row = rows.as_array().into_iter().flatten().find(|row| row[0] == name(CLUSTERS));
        ensure!(row == Some(&json!([name(CLUSTERS), true, null])), "{row:?}");
        self.fleet.report(WEB, 9).await?;
        self.others_have(9, CLUSTERS).await?;
        self.fleet.namespace.delete(SECRETS, &name(CLUSTERS)).await?;
        self.all_have(9, &[]).await?;
        self.check_versions()
    }
}

fn name(cluster: usize) -> String {
    format!("c{}", cluster + 1)
}
