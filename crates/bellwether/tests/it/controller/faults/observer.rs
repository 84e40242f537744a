//! Watches the API server directly, and records every revision of the objects in a namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use http::StatusCode;
use kube::{Client, core::WatchEvent};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet, time::timeout};

use super::{
    super::{condition, text},
    TIMEOUT, TestNamespace,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS, EVENTS, PODS, ResourcePath},
};

/// One revision of an object.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    /// The plural of the resource.
    pub(super) resource: &'static str,
    pub(super) name: String,
    pub(super) uid: String,
    /// The resourceVersion. All objects of a cluster share one sequence, which orders them.
    pub(super) version: u64,
    /// Whether this is the deletion.
    pub(super) gone: bool,
    pub(super) object: Value,
    pub(super) at: Instant,
}

/// The total number of objects and the number of ready ones, in the status of an Application.
pub(super) type Counts = (u64, u64);

/// All revisions of some resources in a namespace.
pub(super) struct Observer {
    resources: &'static [ResourcePath],
    revisions: Arc<Mutex<Vec<Revision>>>,
    /// The number of revisions.
    count: watch::Receiver<usize>,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Observes Applications, Deployments, Pods and Events from now on.
    pub(super) async fn of(namespace: &TestNamespace) -> Result<Self> {
        Self::of_resources(namespace, &[APPLICATIONS, DEPLOYMENTS, PODS, EVENTS]).await
    }

    pub(super) async fn of_resources(
        namespace: &TestNamespace,
        resources: &'static [ResourcePath],
    ) -> Result<Self> {
        let (revisions, (sender, count)) = (Arc::<Mutex<Vec<Revision>>>::default(), watch::channel(0));
        let mut watches = JoinSet::new();
        for &resource in resources {
            let path = namespace.path(resource, None);
            let list = list(&namespace.client, &path, "").await?;
            let mut view = View {
                client: namespace.client.clone(),
                resource: resource.plural,
                path,
                version: version(&list),
                present: BTreeMap::new(),
                revisions: Arc::clone(&revisions),
                count: sender.clone(),
            };
            watches.spawn(async move {
                loop {
                    // After an error, the next watch starts at the last recorded resourceVersion.
                    let _ = view.watch().await;
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            });
        }
        Ok(Self { resources, revisions, count, _watches: watches })
    }

    /// All revisions of a resource, ordered by resourceVersion.
    pub(super) fn revisions(&self, resource: &str) -> Vec<Revision> {
        let mut revisions: Vec<_> =
            lock(&self.revisions).iter().filter(|revision| revision.resource == resource).cloned().collect();
        revisions.sort_by_key(|revision| revision.version);
        revisions
    }

    /// Waits until `is_so` returns a value. Fails after [`TIMEOUT`].
    pub(super) async fn until<T>(&self, what: &str, mut is_so: impl FnMut(&Self) -> Option<T>) -> Result<T> {
        let mut count = self.count.clone();
        let found = async {
            loop {
                count.mark_unchanged();
                if let Some(found) = is_so(self) {
                    return Ok(found);
                }
                count.changed().await?;
            }
        };
        timeout(TIMEOUT, found).await.with_context(|| format!("timed out waiting until {what}"))?
    }

    /// Waits until all changes so far are recorded.
    pub(super) async fn catches_up(&self, namespace: &TestNamespace) -> Result<()> {
        for &resource in self.resources {
            let list = list(&namespace.client, &namespace.path(resource, None), "").await?;
            let items = list["items"].as_array().into_iter().flatten();
            let there: BTreeMap<_, _> =
                items.map(|it| (text(&it["metadata"]["name"]), version(it))).collect();
            let is_so = |observer: &Self| {
                let present = observer.present(resource.plural);
                let is_seen = |(name, then): (&String, &u64)| {
                    present.get(name).is_some_and(|revision| revision.version >= *then)
                };
                let is_there = |revision: &Revision| {
                    there.contains_key(&revision.name) || revision.version > version(&list)
                };
                (there.iter().all(is_seen) && present.values().all(is_there)).then_some(())
            };
            self.until(&format!("all {} are recorded", resource.plural), is_so).await?;
        }
        Ok(())
    }

    /// The objects that exist, by name.
    pub(super) fn present(&self, resource: &str) -> BTreeMap<String, Revision> {
        let latest = self.revisions(resource).into_iter().map(|revision| (revision.name.clone(), revision));
        let mut latest: BTreeMap<_, _> = latest.collect();
        latest.retain(|_, revision| !revision.gone);
        latest
    }

    /// The number of deletions.
    pub(super) fn gone(&self, resource: &str) -> usize {
        self.revisions(resource).iter().filter(|revision| revision.gone).count()
    }

    /// The statuses of an Application in order, without consecutive duplicates.
    pub(super) fn statuses(&self, application: &str) -> Vec<Revision> {
        let mut revisions = self.revisions(APPLICATIONS.plural);
        revisions.retain(|revision| {
            revision.name == application
                && !revision.gone
                && !revision.object["status"]["objectCounts"].is_null()
        });
        revisions.dedup_by(|next, before| {
            next.uid == before.uid && next.object["status"] == before.object["status"]
        });
        revisions
    }

    /// The reasons of the Ready condition in order, without consecutive duplicates.
    pub(super) fn reasons(&self, application: &str) -> Vec<String> {
        let statuses = self.statuses(application);
        let ready =
            statuses.iter().map(|revision| text(&condition(&revision.object["status"], "Ready")["reason"]));
        let mut reasons: Vec<_> = ready.collect();
        reasons.dedup();
        reasons
    }

    /// Since when the status of an Application has these counts; `None` if the latest one has not.
    pub(super) fn counts_since(&self, application: &str, counts: Counts) -> Option<Instant> {
        let revisions = self.revisions(APPLICATIONS.plural);
        let present = revisions
            .iter()
            .rfind(|revision| revision.name == application)
            .filter(|revision| !revision.gone)?;
        let has_counts = |revision: &&Revision| {
            revision.uid == present.uid && counts_of(&revision.object["status"]) == Some(counts)
        };
        let since = revisions
            .iter()
            .rev()
            .filter(|revision| revision.name == application)
            .take_while(has_counts)
            .last()?;
        Some(since.at)
    }

    /// Checks that every status of every Application over Deployments was true at some time before it was
    /// published, and that no status describes an older state than the one before.
    pub(super) fn check_statuses(&self) -> Result<()> {
        let deployments = self.revisions(DEPLOYMENTS.plural);
        let names: BTreeSet<_> =
            self.revisions(APPLICATIONS.plural).into_iter().map(|revision| revision.name).collect();
        for application in names {
            let truths = truths(&application, &deployments);
            let mut from = 0;
            for revision in
                self.statuses(&application).iter().filter(|revision| is_over_deployments(&revision.object))
            {
                let status = &revision.object["status"];
                if condition(status, "Resolved")["status"] == "False" {
                    let ready = condition(status, "Ready");
                    ensure!(ready["status"] != "True", "{application} is Ready and not Resolved: {status:#}");
                    continue;
                }
                let counts = counts_of(status)
                    .with_context(|| format!("{application} contradicts itself: {status:#}"))?;
                let is_it = |(since, truth): &(u64, Counts)| *since < revision.version && *truth == counts;
                let found = truths.iter().skip(from).position(is_it);
                from += found.with_context(|| {
                    format!(
                        "{application} has {counts:?}, which was never true by then: {truths:?}, {status:#}"
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Since when the only existing owner of a Deployment is the Application that its annotation names.
    pub(super) fn owned_since(&self, deployment: &str) -> Option<Instant> {
        let revisions = self.revisions(DEPLOYMENTS.plural);
        let applications = self.present(APPLICATIONS.plural);
        let is_so = |revision: &&Revision| {
            !revision.gone && owners(revision, &applications).is_ok_and(|owners| !owners.is_empty())
        };
        let since =
            revisions.iter().rev().filter(|revision| revision.name == deployment).take_while(is_so).last()?;
        Some(since.at)
    }

    /// Since when a Deployment has no existing owner, and should have none.
    pub(super) fn free_since(&self, deployment: &str) -> Option<Instant> {
        let revisions = self.revisions(DEPLOYMENTS.plural);
        let applications = self.present(APPLICATIONS.plural);
        let is_so = |revision: &&Revision| {
            !revision.gone && owners(revision, &applications).is_ok_and(|owners| owners.is_empty())
        };
        let since =
            revisions.iter().rev().filter(|revision| revision.name == deployment).take_while(is_so).last()?;
        Some(since.at)
    }

    /// Checks that all Deployments have the right owners, and that only the test has deleted objects.
    pub(super) fn check_owners_and_deletions(&self, deleted: usize) -> Result<()> {
        let applications = self.present(APPLICATIONS.plural);
        for deployment in self.present(DEPLOYMENTS.plural).values() {
            owners(deployment, &applications)?;
        }
        let gone = self.gone(DEPLOYMENTS.plural) + self.gone(APPLICATIONS.plural);
        ensure!(gone == deleted, "{gone} objects were deleted, {deleted} of them by the test");
        Ok(())
    }
}

/// The existing Applications that own an object. Fails unless these are exactly the one that its annotation
/// names, or none if that one does not count Deployments.
fn owners(revision: &Revision, applications: &BTreeMap<String, Revision>) -> Result<Vec<String>> {
    let metadata = &revision.object["metadata"];
    let named = metadata["annotations"]["kubernetes.io/application"].as_str();
    let named_one = named.and_then(|name| applications.get(name));
    let expected = named_one.filter(|it| counts_deployments(&it.object)).map(|it| it.uid.clone());
    let owners =
        metadata["ownerReferences"].as_array().into_iter().flatten().map(|owner| text(&owner["uid"]));
    let is_there = |uid: &String| applications.values().any(|application| application.uid == *uid);
    let owners: Vec<_> = owners.filter(is_there).collect();
    ensure!(
        owners == Vec::from_iter(expected),
        "{} is owned by {owners:?}, but names {named:?}",
        revision.name
    );
    Ok(owners)
}

/// Whether Deployments are members of an Application.
fn counts_deployments(application: &Value) -> bool {
    let kinds = application["spec"]["componentKinds"].as_array().into_iter().flatten();
    let components = application["spec"]["components"].as_object().into_iter().flat_map(|all| all.values());
    kinds.chain(components).any(|it| it["kind"] == "Deployment")
}

/// Whether Deployments alone decide the readiness of an Application.
fn is_over_deployments(application: &Value) -> bool {
    let spec = &application["spec"];
    spec["componentKinds"] == json!([{ "group": "apps", "kind": "Deployment" }])
        && spec["components"].is_null()
        && spec["healthCheck"].is_null()
}

/// The counts of a status; `None` if they contradict the Ready condition or the list of objects.
fn counts_of(status: &Value) -> Option<Counts> {
    let count = |state: &str| status["objectCounts"][state].as_u64();
    let counts @ (total, ready) = (count("total")?, count("ready")?);
    let expected = match counts {
        (0, _) => "Unknown",
        _ if ready < total => "False",
        _ => "True",
    };
    let listed = status["objects"].as_array().map_or(0, Vec::len);
    let agree =
        condition(status, "Ready")["status"] == expected && u64::try_from(listed) == Ok(total.min(100));
    agree.then_some(counts)
}

/// The correct counts of an Application over Deployments, and since which resourceVersion.
fn truths(application: &str, deployments: &[Revision]) -> Vec<(u64, Counts)> {
    let mut members: BTreeMap<&str, bool> = BTreeMap::new();
    let mut truths = vec![(0, (0, 0))];
    for revision in deployments {
        let is_member = !revision.gone && revision.object["metadata"]["labels"]["app"] == application;
        if is_member {
            let (metadata, status) = (&revision.object["metadata"], &revision.object["status"]);
            let is_observed = status["observedGeneration"] == metadata["generation"];
            members.insert(&revision.name, is_observed && status["readyReplicas"] == 1);
        } else {
            members.remove(&*revision.name);
        }
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let ready = members.values().filter(|ready| **ready).count();
        truths.push((revision.version, (count(members.len()), count(ready))));
    }
    truths
}

/// The watch of one resource.
struct View {
    client: Client,
    resource: &'static str,
    path: String,
    /// All revisions up to this one are recorded.
    version: u64,
    /// The objects that exist, with their resourceVersions.
    present: BTreeMap<String, (Value, u64)>,
    revisions: Arc<Mutex<Vec<Revision>>>,
    count: watch::Sender<usize>,
}

impl View {
    async fn watch(&mut self) -> Result<()> {
        let uri = format!("{}?watch=true&resourceVersion={}", self.path, self.version);
        let events = self.client.request_events::<Value>(http::Request::get(uri).body(Vec::new())?).await;
        if let Err(kube::Error::Api(status)) = &events
            && status.code == StatusCode::GONE.as_u16()
        {
            return self.fill_gap().await;
        }
        let mut events = Box::pin(events?);
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => self.record(object, false),
                WatchEvent::Deleted(object) => self.record(object, true),
                WatchEvent::Error(status) if status.code == StatusCode::GONE.as_u16() => {
                    return self.fill_gap().await;
                }
                WatchEvent::Error(_) | WatchEvent::Bookmark(_) => {}
            }
        }
        Ok(())
    }

    /// After a restart, an API server responds 410 Gone to older resourceVersions. etcd still has all
    /// revisions, so this lists at each of them.
    async fn fill_gap(&mut self) -> Result<()> {
        let latest = version(&list(&self.client, &self.path, "").await?);
        while self.version < latest {
            let next = self.version + 1;
            let exactly = format!("?resourceVersionMatch=Exact&resourceVersion={next}");
            let mut then = list(&self.client, &self.path, &exactly).await?;
            let items = then["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let names: BTreeSet<_> = items.iter().map(|item| text(&item["metadata"]["name"])).collect();
            let gone: Vec<_> = self.present.iter().filter(|(name, _)| !names.contains(*name)).collect();
            let gone: Vec<_> = gone.into_iter().map(|(_, (object, _))| object.clone()).collect();
            for mut object in gone {
                object["metadata"]["resourceVersion"] = next.to_string().into();
                self.record(object, true);
            }
            for item in items {
                let known = self.present.get(&text(&item["metadata"]["name"])).map(|(_, version)| *version);
                if known != Some(version(&item)) {
                    self.record(item, false);
                }
            }
            self.version = next;
        }
        Ok(())
    }

    fn record(&mut self, object: Value, gone: bool) {
        let (metadata, version) = (&object["metadata"], version(&object));
        let (name, uid) = (text(&metadata["name"]), text(&metadata["uid"]));
        self.version = self.version.max(version);
        if gone {
            self.present.remove(&name);
        } else {
            self.present.insert(name.clone(), (object.clone(), version));
        }
        let revision =
            Revision { resource: self.resource, name, uid, version, gone, object, at: Instant::now() };
        lock(&self.revisions).push(revision);
        self.count.send_modify(|count| *count += 1);
    }
}

async fn list(client: &Client, path: &str, query: &str) -> Result<Value> {
    Ok(client.request(http::Request::get(format!("{path}{query}")).body(Vec::new())?).await?)
}

/// The resourceVersion of an object or of a list; 0 if missing.
pub(super) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
