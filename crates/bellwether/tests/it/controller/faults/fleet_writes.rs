//! The writes for BindingPolicies and StatusCollectors: kill -9 before and after each, lost responses, and conflicts.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Fault, FaultProxy, Requests, StatusCode, TIMEOUT, Verb, eventually};
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    super::{Controller, combined_status::rows_of, condition},
    fleet::{COLLECTOR, FleetFixture, RESULTS, is_of, of},
    namespace_actions::{COMBINED_STATUSES, DEPLOYMENTS},
    observer::Revision,
};

/// A Deployment whose state is combined.
const WEB: &str = "web";

/// A Deployment whose status is copied from its only cluster.
const SINGLETON: &str = "singleton";

const LABEL: &str = "bellwether.dev/singleton-status";

/// A write, in an order in which each prepares the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FleetWrite {
    CollectorStatus,
    Created,
    Updated,
    PolicyStatus,
    Deleted,
    Labelled,
    SingletonStatus,
    Cleared,
    Unlabelled,
    /// The namespace of CombinedStatuses of cluster-scoped objects.
    Namespace,
}

impl FleetWrite {
    const ALL: [Self; 10] = [
        Self::CollectorStatus,
        Self::Created,
        Self::Updated,
        Self::PolicyStatus,
        Self::Deleted,
        Self::Labelled,
        Self::SingletonStatus,
        Self::Cleared,
        Self::Unlabelled,
        Self::Namespace,
    ];

    fn requests(self) -> Requests {
        match self {
            Self::CollectorStatus => Requests::of(Verb::Patch, "statuscollectors.bellwether.dev/status"),
            Self::Created => Requests::of(Verb::Create, RESULTS),
            Self::Updated => Requests::of(Verb::Patch, RESULTS),
            Self::PolicyStatus => Requests::of(Verb::Patch, "bindingpolicies.bellwether.dev/status"),
            Self::Deleted => Requests::of(Verb::Delete, RESULTS),
            Self::Labelled | Self::Unlabelled => Requests::of(Verb::Patch, "deployments.apps"),
            Self::SingletonStatus | Self::Cleared => Requests::of(Verb::Patch, "deployments.apps/status"),
            Self::Namespace => Requests::of(Verb::Create, "namespaces"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// kill -9: the request has left the process and never arrives.
    KilledBefore,
    /// kill -9: the API server has made the write, and the controller has no response yet.
    KilledAfter,
    /// The API server makes the write, and the response is lost.
    AnswerLost,
}

/// The next controller completes the write, and does nothing twice. Each story has a hub of its own, because
/// BindingPolicies are cluster-scoped; all in parallel, because they mostly wait.
#[tokio::test]
async fn every_write_for_a_fleet() -> Result<()> {
    tokio::try_join!(
        every_write(When::KilledBefore),
        every_write(When::KilledAfter),
        every_write(When::AnswerLost),
        async { two_leaders_for_a_moment().await.context("two leaders for a moment") },
    )?;
    Ok(())
}

async fn every_write(when: When) -> Result<()> {
    let fixture = FleetFixture::new("fleet-writes").await?;
    fixture.register(0, FleetFixture::spoke().await?.admin()).await?;
    for deployment in [WEB, SINGLETON] {
        fixture.deployment(deployment).await?;
    }
    let controller = fixture.launch(&[])?;
    fixture.fence(1).await?;
    for write in FleetWrite::ALL {
        let done = fixture.is_struck(write, when, &controller);
        done.await.with_context(|| format!("{when:?}: {write:?}\n{}", controller.log_since_start()))?;
    }
    if when == When::AnswerLost {
        fixture.another_client_writes(&controller).await.context("a conflict")?;
    }
    // A restart has nothing to write.
    controller.program.kill();
    fixture.proxy.forget();
    controller.start()?;
    fixture.fence(1).await?;
    ensure!(fixture.writes() == 0, "a restarted controller writes: {:#?}", fixture.proxy.requests());
    let revisions = fixture.observer.revisions(COMBINED_STATUSES.plural);
    let uids = revisions.iter().filter(|revision| is_of(revision, WEB)).map(|revision| &revision.uid);
    let uids: BTreeSet<_> = uids.collect();
    let expected = if when == When::AnswerLost { 2 } else { 1 };
    ensure!(uids.len() == expected, "{when:?}: the CombinedStatus of {WEB} was created as {uids:?}");
    Ok(())
}

/// How long the proxy delays a write: longer than a failover takes.
const SLOWLY: Duration = Duration::from_secs(30);

/// The leader is paused within the write of a CombinedStatus for so long that another one leads. Its late write fails
/// with a 409 conflict. After it resumes, it writes nothing.
async fn two_leaders_for_a_moment() -> Result<()> {
    let fixture = FleetFixture::new("fleet-leaders").await?;
    fixture.register(0, FleetFixture::spoke().await?.admin()).await?;
    fixture.deployment(WEB).await?;
    fixture.policy(WEB, "10m", json!({"statusCollectors": [COLLECTOR]})).await?;
    let first = fixture.launch_via(&fixture.proxy, &[])?;
    fixture.rows_are(WEB, json!([["c1", false, 1]])).await?;
    fixture.fence(1).await?;
    let other_way = FaultProxy::before(&fixture.hub).await?;
    let second = fixture.launch_via(&other_way, &[])?;
    second.is_ready().await?;

    let late = fixture.proxy.inject(Requests::of(Verb::Patch, RESULTS).times(1), Fault::Delay(SLOWLY));
    fixture.report(WEB, 2).await?;
    timeout(TIMEOUT, late.struck(1)).await.context("the write is not made")?;
    first.program.pause()?;
    fixture.report(WEB, 3).await?;
    let seen = fixture.rows_are(WEB, json!([["c1", false, 3]])).await;
    seen.with_context(|| second.log_since_start())?;
    late.done(1).await;
    let requests = fixture.proxy.requests();
    let answers: Vec<_> =
        requests.iter().filter(|request| request.struck).map(|request| request.status).collect();
    fixture.fence(1).await?;
    fixture.rows_are(WEB, json!([["c1", false, 3]])).await?;
    let revisions = fixture.observer.revisions(COMBINED_STATUSES.plural);
    let replicas = revisions.iter().filter(|revision| is_of(revision, WEB)).map(replicas_of);
    let replicas: Vec<_> = replicas.collect();
    // On a slow machine, the late write arrives before the failover.
    ensure!(replicas == [1, 3] || replicas == [1, 2, 3], "{replicas:?}, and the answers {answers:?}");
    ensure!(replicas == [1, 2, 3] || answers == [Some(StatusCode::CONFLICT)], "{answers:?}");

    fixture.proxy.forget();
    first.program.resume()?;
    fixture.report(WEB, 4).await?;
    fixture.rows_are(WEB, json!([["c1", false, 4]])).await?;
    let leads = async || Ok(first.metric("bellwether_leader").await? == 0);
    eventually(TIMEOUT, "the first does not lead", leads).await?;
    fixture.fence(1).await?;
    let leases = fixture.proxy.count(&Requests::writes().resource("leases.coordination.k8s.io"));
    ensure!(fixture.proxy.count(&Requests::writes()) == leases, "{:#?}", fixture.proxy.requests());
    Ok(())
}

/// In the only cluster.
fn replicas_of(revision: &Revision) -> u64 {
    rows_of(&revision.object, COLLECTOR)[0][2].as_u64().unwrap_or_default()
}

impl FleetFixture {
    /// Provokes a write, strikes it, and waits until it is complete.
    async fn is_struck(&self, write: FleetWrite, when: When, controller: &Controller) -> Result<()> {
        if write == FleetWrite::Unlabelled {
            self.policy(SINGLETON, "10m", json!({"wantSingletonReportedState": true})).await?;
            self.singleton_is(Some(2)).await?;
        }
        let fault = match when {
            When::KilledBefore => Fault::HalfOpen { after_lines: 0 },
            When::KilledAfter => Fault::HoldResponse,
            When::AnswerLost => Fault::LoseResponse,
        };
        self.proxy.forget();
        let fault = self.proxy.inject(write.requests().times(1), fault);
        self.provoke(write).await?;
        timeout(TIMEOUT, fault.struck(1)).await.context("the write is not made")?;
        if when != When::KilledBefore {
            fault.done(1).await;
        }
        if when != When::AnswerLost {
            controller.program.kill();
            self.proxy.forget();
            fault.lift();
            controller.start()?;
        }
        self.is_done(write).await?;
        self.fence(1).await?;
        let made = self.count(&write.requests());
        let expected = match when {
            When::KilledBefore => 1..=1,
            When::KilledAfter => 0..=0,
            // The controller may try again, in vain.
            When::AnswerLost => 1..=2,
        };
        ensure!(expected.contains(&made), "made {made} times: {:#?}", self.proxy.requests());
        Ok(())
    }

    async fn provoke(&self, write: FleetWrite) -> Result<()> {
        match write {
            FleetWrite::CollectorStatus => {
                self.collector("count", json!({"combinedFields": [{"name": "count", "type": "COUNT"}]})).await
            }
            FleetWrite::Created => self.policy(WEB, "10m", json!({"statusCollectors": [COLLECTOR]})).await,
            FleetWrite::Updated => self.report(WEB, 2).await,
            FleetWrite::PolicyStatus => {
                self.policy(WEB, "10m", json!({"statusCollectors": [COLLECTOR, "missing"]})).await
            }
            FleetWrite::Deleted => self.delete_own("bindingpolicies", WEB).await,
            FleetWrite::Labelled => {
                self.policy(SINGLETON, "10m", json!({"wantSingletonReportedState": true})).await
            }
            FleetWrite::SingletonStatus => self.report(SINGLETON, 2).await,
            FleetWrite::Cleared | FleetWrite::Unlabelled => {
                self.delete_own("bindingpolicies", SINGLETON).await
            }
            FleetWrite::Namespace => self.bind_cluster_scoped().await,
        }
    }

    async fn is_done(&self, write: FleetWrite) -> Result<()> {
        match write {
            FleetWrite::CollectorStatus => self.own_is("statuscollectors", "count", ("Valid", "True")).await,
            FleetWrite::Created => self.rows_are(WEB, json!([["c1", false, 1]])).await,
            FleetWrite::Updated => self.rows_are(WEB, json!([["c1", false, 2]])).await,
            FleetWrite::PolicyStatus => {
                self.own_is("bindingpolicies", WEB, ("CollectorsAvailable", "False")).await
            }
            FleetWrite::Deleted => self.has_no_combined(WEB).await,
            FleetWrite::Labelled => self.singleton_is(Some(1)).await,
            FleetWrite::SingletonStatus => self.singleton_is(Some(2)).await,
            FleetWrite::Cleared | FleetWrite::Unlabelled => self.singleton_is(None).await,
            FleetWrite::Namespace => {
                let path = format!(
                    "{}/namespaces/bellwether-report/{}",
                    COMBINED_STATUSES.root, COMBINED_STATUSES.plural
                );
                eventually(TIMEOUT, "the PriorityClass is reported", async || {
                    let list = self.namespace.request(Method::GET, &path, &Value::Null).await?;
                    Ok(list["items"].as_array().map(Vec::len) == Some(1))
                })
                .await
            }
        }
    }

    /// A policy for a PriorityClass of the hub, which the clusters do not have.
    async fn bind_cluster_scoped(&self) -> Result<()> {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "scoped"}, "value": 7,
        });
        self.namespace.apply("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
        let clause = json!({
            "resources": ["priorityclasses"], "objectNames": ["scoped"], "statusCollectors": [COLLECTOR],
        });
        let spec = json!({"clusterSelectors": [{}], "downsync": [clause], "stalenessThreshold": "10m"});
        self.own("BindingPolicy", "bindingpolicies", "scoped", spec).await
    }

    /// Waits until an object of ours has a condition with this status.
    async fn own_is(&self, plural: &str, name: &str, (type_, status): (&str, &str)) -> Result<()> {
        let mut last = Value::Null;
        eventually(TIMEOUT, &format!("{type_} of {name} is {status}"), async || {
            last = self.get_own(plural, name).await?["status"].take();
            Ok(condition(&last, type_)["status"] == status)
        })
        .await
        .with_context(|| format!("the last status was {last:#}"))
    }

    /// Waits until the singleton has the label and these replicas, or neither.
    async fn singleton_is(&self, replicas: Option<u64>) -> Result<()> {
        let mut last = Value::Null;
        eventually(TIMEOUT, &format!("{SINGLETON} has the replicas {replicas:?}"), async || {
            last = self.namespace.get(DEPLOYMENTS, SINGLETON).await?;
            let is_labelled = last["metadata"]["labels"][LABEL] == "true";
            Ok(is_labelled == replicas.is_some() && last["status"]["replicas"].as_u64() == replicas)
        })
        .await
        .with_context(|| format!("the last was {last:#}"))
    }

    /// Another client writes to a CombinedStatus, and the controller has not seen it: 409 conflict.
    async fn another_client_writes(&self, controller: &Controller) -> Result<()> {
        self.policy(WEB, "10m", json!({"statusCollectors": [COLLECTOR]})).await?;
        self.rows_are(WEB, json!([["c1", false, 2]])).await?;
        self.fence(1).await?;
        let name = of(&self.observer, WEB).context("it exists")?.name;
        self.proxy.forget();
        let held = self.proxy.inject(Requests::of(Verb::Watch, RESULTS).times(1), Fault::HoldEvents);
        self.proxy.cut_all().await;
        timeout(TIMEOUT, held.struck(1)).await.context("no watch")?;
        let note = json!({"metadata": {"annotations": {"note": "theirs"}}});
        self.namespace.patch(COMBINED_STATUSES, &name, note).await?;
        self.report(WEB, 3).await?;
        eventually(TIMEOUT, "a write conflicts", async || {
            let requests = self.proxy.requests();
            Ok(requests.iter().any(|request| {
                request.call.name.as_ref() == Some(&name) && request.status == Some(StatusCode::CONFLICT)
            }))
        })
        .await
        .with_context(|| controller.log_since_start())?;
        held.lift();
        self.rows_are(WEB, json!([["c1", false, 3]])).await?;
        let last = self.namespace.get(COMBINED_STATUSES, &name).await?;
        ensure!(last["metadata"]["annotations"]["note"] == "theirs", "the note is lost: {last:#}");
        Ok(())
    }
}
