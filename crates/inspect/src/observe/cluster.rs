//! A cluster, looked at once.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use bellwether_engine::{FeedEvent, GroupKind, NamespacedName, Served};
use bellwether_kube_io::{
    read::{ClusterSnapshot, ReadError, Settings},
    write::{Connection, Login, LoginError},
};
use bellwether_model::{Object, Plan};
use kube::Client;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use super::kind_request::KindRequest;

/// So long may an answer take to begin, and pause. People wait for it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// So many objects come in one answer: one list for each kind, unless there is very much of it.
const PAGE_SIZE: u32 = 20_000;

/// A cluster, and the connection to it.
pub struct ObservedCluster {
    runtime: Runtime,
    connection: Connection,
    glance: Arc<ClusterSnapshot>,
    namespace: String,
}

impl ObservedCluster {
    /// Connects to a cluster, and asks it which kinds it has. Without a namespace, that of the context is meant.
    pub(super) fn open(login: &Login, namespace: Option<&str>, all_namespaces: bool) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let look = async {
            let connection = login.connect().await?;
            connection.check().await?;
            let namespace = namespace.unwrap_or(&connection.namespace).to_owned();
            let settings = Settings {
                namespace: (!all_namespaces).then(|| namespace.clone()),
                answers_within: ANSWERS_WITHIN,
                page_size: PAGE_SIZE,
                ..Settings::default()
            };
            let glance =
                ClusterSnapshot::at(connection.client.clone(), settings).await.map_err(|trouble| {
                    anyhow!(
                        "the cluster at {} does not say which kinds it has: {trouble}",
                        connection.address
                    )
                })?;
            anyhow::Ok((connection, glance, namespace))
        };
        let (connection, glance, namespace) = runtime.block_on(look).map_err(with_hint)?;
        Ok(Self { runtime, connection, glance: Arc::new(glance), namespace })
    }

    /// The namespace that is meant where none is named.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn serves(&self, kind: &GroupKind) -> bool {
        self.glance.served(kind).is_some()
    }

    /// How it serves a kind.
    pub(super) fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.glance.served(kind).cloned()
    }

    /// What is missing for a kind to be read, and the way out.
    pub(super) fn forbidden(&self, kind: &GroupKind, scope: Option<&str>) -> String {
        let resource = self.resource(kind);
        match scope {
            Some(namespace) => format!(
                "you may not list {resource} in namespace {namespace}: ask for that right, or choose another namespace \
                 with -n"
            ),
            None => format!("you may not list {resource} in all namespaces: choose one with -n"),
        }
    }

    /// The same for a kind that is in no namespace.
    pub(super) fn forbidden_everywhere(&self, kind: &GroupKind) -> String {
        let resource = self.resource(kind);
        format!("you may not list {resource}, which are of the whole cluster: ask for that right")
    }

    /// That some of our own kinds are not there yet.
    pub(super) fn lacks(&self, kinds: &str) -> String {
        format!(
            "the cluster at {} does not know {kinds} yet: install them with bellwether crds | kubectl apply --server-side \
             -f -",
            self.connection.address
        )
    }

    /// A kind as rights name it: `deployments.apps`.
    fn resource(&self, kind: &GroupKind) -> String {
        match self.glance.served(kind) {
            Some(served) if kind.group.is_empty() => served.plural.to_string(),
            Some(served) => format!("{}.{}", served.plural, kind.group),
            None => kind.to_string(),
        }
    }

    pub(super) fn answer(
        &self,
        asked: Vec<KindRequest>,
        namespace: Option<&str>,
    ) -> Result<Vec<(GroupKind, Vec<FeedEvent>)>> {
        let listed = self.runtime.block_on(async {
            let mut lists = JoinSet::new();
            for KindRequest { kind, lens } in asked {
                let (glance, namespace) = (Arc::clone(&self.glance), namespace.map(str::to_owned));
                lists.spawn(async move {
                    let news = glance.list_in(namespace.as_deref(), &kind, lens).await;
                    news.map(|news| (kind, news))
                });
            }
            lists.join_all().await
        });
        let mut listed: Vec<_> =
            listed.into_iter().collect::<Result<_, ReadError>>().map_err(|trouble| self.away(&trouble))?;
        // What comes first does not matter to the engine; that it is the same each time does to those who look for a bug.
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(listed)
    }

    pub(super) fn object_named(&self, kind: &str, name: &str) -> Result<(GroupKind, NamespacedName)> {
        let kind = self.glance.kind(kind)?;
        let namespace = if self.is_namespaced(&kind) { &self.namespace } else { "" };
        let name = NamespacedName::new(namespace, name);
        Ok((kind, name))
    }

    pub(super) fn is_namespaced(&self, kind: &GroupKind) -> bool {
        self.glance.served(kind).is_none_or(|served| served.namespaced)
    }

    pub(super) fn with<R>(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Result<Option<R>> {
        let json = match self.runtime.block_on(self.glance.get(kind, name)) {
            Ok(json) => json,
            Err(ReadError::Unavailable { why, .. }) => return Err(self.away(&ReadError::unavailable(why))),
            Err(ReadError::Forbidden { .. }) => {
                let resource = self.resource(kind);
                return Err(anyhow!("you may not get {resource}, such as {name}: ask for that right"));
            }
            Err(trouble) => return Err(anyhow!("cannot read {kind} {name}: {trouble}")),
        };
        let Some(json) = json else { return Ok(None) };
        let object = Object::from_json(&json, &Plan::whole())
            .with_context(|| format!("the cluster's answer about {kind} {name} makes no sense"))?;
        Ok(Some(make(&object)))
    }

    fn away(&self, trouble: &ReadError) -> anyhow::Error {
        anyhow!("the cluster at {} does not answer any more: {trouble}", self.connection.address)
    }

    /// How to reach it, for whoever writes or follows.
    pub fn client(&self) -> &Client {
        &self.connection.client
    }

    /// On which runtime its connections live.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// How it serves kinds.
    pub fn glance(&self) -> &ClusterSnapshot {
        &self.glance
    }
}

/// Where nobody answers, there are other places to look.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(LoginError::Unreachable { .. } | LoginError::Nowhere { .. }) => {
            anyhow!("{error}; choose another cluster with --context, or look at a dump with --from DIR")
        }
        _ => error,
    }
}
