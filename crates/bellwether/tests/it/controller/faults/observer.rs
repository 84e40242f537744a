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
    Land, TIMEOUT,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS, EVENTS, PODS, What},
};

/// One revision of an object.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The plural of the resource.
    pub(super) what: &'static str,
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

const WHAT: [What; 4] = [APPLICATIONS, DEPLOYMENTS, PODS, EVENTS];

/// All revisions of the Applications, Deployments, Pods and Events of a namespace.
pub(super) struct Observer {
    seen: Arc<Mutex<Vec<Seen>>>,
    news: watch::Receiver<usize>,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Observes from now on.
    pub(super) async fn of(land: &Land) -> Result<Self> {
        let (seen, (tell, news)) = (Arc::<Mutex<Vec<Seen>>>::default(), watch::channel(0));
        let mut watches = JoinSet::new();
        for what in WHAT {
            let path = land.path(what, None);
            let list = list(&land.client, &path, "").await?;
            let mut view = View {
                client: land.client.clone(),
                what: what.plural,
                path,
                version: version(&list),
                present: BTreeMap::new(),
                seen: Arc::clone(&seen),
                tell: tell.clone(),
            };
            watches.spawn(async move {
                loop {
                    // After an error, the next watch starts at the last recorded resourceVersion.
                    let _ = view.watch().await;
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            });
        }
        Ok(Self { seen, news, _watches: watches })
    }

    /// All revisions of a resource, ordered by resourceVersion.
    pub(super) fn seen(&self, what: &str) -> Vec<Seen> {
        let mut seen: Vec<_> = lock(&self.seen).iter().filter(|seen| seen.what == what).cloned().collect();
        seen.sort_by_key(|seen| seen.version);
        seen
    }

    /// Waits until `is_so` returns a value. Fails after [`TIMEOUT`].
    pub(super) async fn until<T>(&self, what: &str, mut is_so: impl FnMut(&Self) -> Option<T>) -> Result<T> {
        let mut news = self.news.clone();
        let look = async {
            loop {
                news.mark_unchanged();
                if let Some(found) = is_so(self) {
                    return Ok(found);
                }
                news.changed().await?;
            }
        };
        timeout(TIMEOUT, look).await.with_context(|| format!("it was not seen that {what}"))?
    }

    /// Waits until all changes so far are recorded.
    pub(super) async fn catches_up(&self, land: &Land) -> Result<()> {
        for what in WHAT {
            let list = list(&land.client, &land.path(what, None), "").await?;
            let items = list["items"].as_array().into_iter().flatten();
            let there: BTreeMap<_, _> =
                items.map(|it| (text(&it["metadata"]["name"]), version(it))).collect();
            let is_so = |observer: &Self| {
                let present = observer.present(what.plural);
                let is_seen = |(name, then): (&String, &u64)| {
                    present.get(name).is_some_and(|seen| seen.version >= *then)
                };
                let is_there = |seen: &Seen| there.contains_key(&seen.name) || seen.version > version(&list);
                (there.iter().all(is_seen) && present.values().all(is_there)).then_some(())
            };
            self.until(&format!("{} are as they are", what.plural), is_so).await?;
        }
        Ok(())
    }

    /// The objects that exist, by name.
    pub(super) fn present(&self, what: &str) -> BTreeMap<String, Seen> {
        let latest = self.seen(what).into_iter().map(|seen| (seen.name.clone(), seen));
        let mut latest: BTreeMap<_, _> = latest.collect();
        latest.retain(|_, seen| !seen.gone);
        latest
    }

    /// The number of deletions.
    pub(super) fn gone(&self, what: &str) -> usize {
        self.seen(what).iter().filter(|seen| seen.gone).count()
    }

    /// The statuses of an Application in order, without consecutive duplicates.
    pub(super) fn statuses(&self, application: &str) -> Vec<Seen> {
        let mut seen = self.seen(APPLICATIONS.plural);
        seen.retain(|seen| {
            seen.name == application && !seen.gone && !seen.object["status"]["objectCounts"].is_null()
        });
        seen.dedup_by(|next, before| {
            next.uid == before.uid && next.object["status"] == before.object["status"]
        });
        seen
    }

    /// The reasons of the Ready condition in order, without consecutive duplicates.
    pub(super) fn reasons(&self, application: &str) -> Vec<String> {
        let statuses = self.statuses(application);
        let ready = statuses.iter().map(|seen| text(&condition(&seen.object["status"], "Ready")["reason"]));
        let mut reasons: Vec<_> = ready.collect();
        reasons.dedup();
        reasons
    }

    /// Since when the status of an Application has these counts; `None` if the latest one has not.
    pub(super) fn says(&self, application: &str, counts: Counts) -> Option<Instant> {
        let seen = self.seen(APPLICATIONS.plural);
        let present = seen.iter().rfind(|seen| seen.name == application).filter(|seen| !seen.gone)?;
        let said = |seen: &&Seen| seen.uid == present.uid && said(&seen.object["status"]) == Some(counts);
        let since = seen.iter().rev().filter(|seen| seen.name == application).take_while(said).last()?;
        Some(since.at)
    }

    /// Checks that every status of every Application over Deployments was true at some time before it was
    /// published, and that no status describes an older state than the one before.
    pub(super) fn nothing_wrong(&self) -> Result<()> {
        let deployments = self.seen(DEPLOYMENTS.plural);
        let names: BTreeSet<_> = self.seen(APPLICATIONS.plural).into_iter().map(|seen| seen.name).collect();
        for application in names {
            let truths = truths(&application, &deployments);
            let mut from = 0;
            for seen in self.statuses(&application).iter().filter(|seen| is_over_deployments(&seen.object)) {
                let status = &seen.object["status"];
                if condition(status, "Resolved")["status"] == "False" {
                    let ready = condition(status, "Ready");
                    ensure!(ready["status"] != "True", "{application} knows too much: {status:#}");
                    continue;
                }
                let said =
                    said(status).with_context(|| format!("{application} contradicts itself: {status:#}"))?;
                let is_it = |(since, truth): &(u64, Counts)| *since < seen.version && *truth == said;
                let found = truths.iter().skip(from).position(is_it);
                from += found.with_context(|| {
                    format!("{application} said {said:?}, which was never so by then: {truths:?}, {status:#}")
                })?;
            }
        }
        Ok(())
    }

    /// Since when the only existing owner of a Deployment is the Application that its annotation names.
    pub(super) fn owned_since(&self, deployment: &str) -> Option<Instant> {
        let seen = self.seen(DEPLOYMENTS.plural);
        let applications = self.present(APPLICATIONS.plural);
        let is_so =
            |seen: &&Seen| !seen.gone && owners(seen, &applications).is_ok_and(|owners| !owners.is_empty());
        let since = seen.iter().rev().filter(|seen| seen.name == deployment).take_while(is_so).last()?;
        Some(since.at)
    }

    /// Since when a Deployment has no existing owner, and should have none.
    pub(super) fn free_since(&self, deployment: &str) -> Option<Instant> {
        let seen = self.seen(DEPLOYMENTS.plural);
        let applications = self.present(APPLICATIONS.plural);
        let is_so =
            |seen: &&Seen| !seen.gone && owners(seen, &applications).is_ok_and(|owners| owners.is_empty());
        let since = seen.iter().rev().filter(|seen| seen.name == deployment).take_while(is_so).last()?;
        Some(since.at)
    }

    /// Checks that all Deployments have the right owners, and that only the test has deleted objects.
    pub(super) fn nothing_lost(&self, deleted: usize) -> Result<()> {
        let applications = self.present(APPLICATIONS.plural);
        for deployment in self.present(DEPLOYMENTS.plural).values() {
            owners(deployment, &applications)?;
        }
        let gone = self.gone(DEPLOYMENTS.plural) + self.gone(APPLICATIONS.plural);
        ensure!(gone == deleted, "{gone} objects went, of which people have deleted {deleted}");
        Ok(())
    }
}

/// The existing Applications that own an object. Fails unless these are exactly the one that its annotation
/// names, or none if that one does not count Deployments.
fn owners(seen: &Seen, applications: &BTreeMap<String, Seen>) -> Result<Vec<String>> {
    let metadata = &seen.object["metadata"];
    let named = metadata["annotations"]["kubernetes.io/application"].as_str();
    let named_one = named.and_then(|name| applications.get(name));
    let expected = named_one.filter(|it| counts_deployments(&it.object)).map(|it| it.uid.clone());
    let owners =
        metadata["ownerReferences"].as_array().into_iter().flatten().map(|owner| text(&owner["uid"]));
    let is_there = |uid: &String| applications.values().any(|application| application.uid == *uid);
    let owners: Vec<_> = owners.filter(is_there).collect();
    ensure!(owners == Vec::from_iter(expected), "{} is owned by {owners:?}, but names {named:?}", seen.name);
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
fn said(status: &Value) -> Option<Counts> {
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
fn truths(application: &str, deployments: &[Seen]) -> Vec<(u64, Counts)> {
    let mut members: BTreeMap<&str, bool> = BTreeMap::new();
    let mut truths = vec![(0, (0, 0))];
    for seen in deployments {
        let is_member = !seen.gone && seen.object["metadata"]["labels"]["app"] == application;
        if is_member {
            let (metadata, status) = (&seen.object["metadata"], &seen.object["status"]);
            let is_observed = status["observedGeneration"] == metadata["generation"];
            members.insert(&seen.name, is_observed && status["readyReplicas"] == 1);
        } else {
            members.remove(&*seen.name);
        }
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let ready = members.values().filter(|ready| **ready).count();
        truths.push((seen.version, (count(members.len()), count(ready))));
    }
    truths
}

/// The watch of one resource.
struct View {
    client: Client,
    what: &'static str,
    path: String,
    /// All revisions up to this one are recorded.
    version: u64,
    /// The objects that exist, with their resourceVersions.
    present: BTreeMap<String, (Value, u64)>,
    seen: Arc<Mutex<Vec<Seen>>>,
    tell: watch::Sender<usize>,
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
        let seen = Seen { what: self.what, name, uid, version, gone, object, at: Instant::now() };
        lock(&self.seen).push(seen);
        self.tell.send_modify(|count| *count += 1);
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
