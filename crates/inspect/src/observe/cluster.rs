//! A cluster, read once.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use bellwether_engine::{FeedEvent, GroupKind, NamespacedName, ServedResource};
use bellwether_kube_io::{
    client::{ClientError, ClientOptions, Connection},
    read::{ClusterSnapshot, ReadError, ReaderSettings},
};
use bellwether_model::{Object, Plan};
use kube::Client;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use super::kind_request::KindRequest;
use crate::shell::program;

/// Until a response begins, and between its parts. A person waits for it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// One request for each kind, unless there are very many objects of it.
const PAGE_SIZE: u32 = 20_000;

pub struct ObservedCluster {
    runtime: Runtime,
    connection: Connection,
    snapshot: Arc<ClusterSnapshot>,
    namespace: String,
}

impl ObservedCluster {
    /// Connects and discovers the kinds. The namespace defaults to that of the context.
    pub(super) fn open(login: &ClientOptions, namespace: Option<&str>, all_namespaces: bool) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let connect = async {
            let connection = login.connect().await?;
            connection.check().await?;
            let namespace = namespace.unwrap_or(&connection.namespace).to_owned();
            let settings = ReaderSettings {
                namespace: (!all_namespaces).then(|| namespace.clone()),
                response_timeout: RESPONSE_TIMEOUT,
                page_size: PAGE_SIZE,
                ..ReaderSettings::default()
            };
            let snapshot =
                ClusterSnapshot::at(connection.client.clone(), settings).await.map_err(|error| {
                    anyhow!("cannot discover the kinds served at {}: {error}", connection.address)
                })?;
            anyhow::Ok((connection, snapshot, namespace))
        };
        let (connection, snapshot, namespace) = runtime.block_on(connect).map_err(with_way_out)?;
        Ok(Self { runtime, connection, snapshot: Arc::new(snapshot), namespace })
    }

    /// The namespace of objects that are named without one.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn serves(&self, kind: &GroupKind) -> bool {
        self.snapshot.served(kind).is_some()
    }

    pub(super) fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.snapshot.served(kind).cloned()
    }

    /// That the user may not list a kind, in one namespace or in all.
    pub(super) fn forbidden(&self, kind: &GroupKind, namespace: Option<&str>) -> String {
        let place = match namespace {
            _ if !self.is_namespaced(kind) => String::new(),
            Some(namespace) => format!(" in namespace {namespace}"),
            None => " in all namespaces".to_owned(),
        };
        format!("you cannot list {}{place}", self.resource(kind))
    }

    /// A kind as RBAC rules name it: `deployments.apps`.
    pub(super) fn resource(&self, kind: &GroupKind) -> String {
        match self.snapshot.served(kind) {
            Some(served) if kind.group.is_empty() => served.plural.to_string(),
            Some(served) => format!("{}.{}", served.plural, kind.group),
            None => kind.to_string(),
        }
    }

    pub(super) fn list(
        &self,
        requests: Vec<KindRequest>,
        namespace: Option<&str>,
    ) -> Result<Vec<(GroupKind, Vec<FeedEvent>)>> {
        let listed = self.runtime.block_on(async {
            let mut lists = JoinSet::new();
            for KindRequest { kind, lens } in requests {
                let (snapshot, namespace) = (Arc::clone(&self.snapshot), namespace.map(str::to_owned));
                lists.spawn(async move {
                    let events = snapshot.list_in(namespace.as_deref(), &kind, lens).await;
                    events.map(|events| (kind, events))
                });
            }
            lists.join_all().await
        });
        let mut listed: Vec<_> =
            listed.into_iter().collect::<Result<_, ReadError>>().map_err(|error| self.unavailable(&error))?;
        // The engine does not depend on the order, but a bug is easier to find if it is always the same.
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(listed)
    }

    pub(super) fn object_named(&self, kind: &str, name: &str) -> Result<(GroupKind, NamespacedName)> {
        let kind = self.snapshot.kind(kind)?;
        let namespace = if self.is_namespaced(&kind) { &self.namespace } else { "" };
        let name = NamespacedName::new(namespace, name);
        Ok((kind, name))
    }

    pub(super) fn is_namespaced(&self, kind: &GroupKind) -> bool {
        self.snapshot.served(kind).is_none_or(|served| served.namespaced)
    }

    pub(super) fn with<R>(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Result<Option<R>> {
        let json = match self.runtime.block_on(self.snapshot.get(kind, name)) {
            Ok(json) => json,
            Err(ReadError::Unavailable { why, .. }) => {
                return Err(self.unavailable(&ReadError::unavailable(why)));
            }
            Err(ReadError::Forbidden { why }) => {
                let place = match &*name.namespace {
                    "" => String::new(),
                    namespace => format!(" in namespace {namespace}"),
                };
                return Err(anyhow!("{} cannot get {}{place}", denied_user(&why), self.resource(kind)));
            }
            Err(error) => return Err(anyhow!("cannot get {kind} {name}: {error}")),
        };
        let Some(json) = json else { return Ok(None) };
        let object = Object::from_json(&json, &Plan::whole())
            .with_context(|| format!("invalid response of the API server for {kind} {name}"))?;
        Ok(Some(make(&object)))
    }

    fn unavailable(&self, error: &ReadError) -> anyhow::Error {
        anyhow!("no response from the API server at {}: {error}", self.connection.address)
    }

    pub fn client(&self) -> &Client {
        &self.connection.client
    }

    /// The runtime that drives the client.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub fn snapshot(&self) -> &ClusterSnapshot {
        &self.snapshot
    }
}

/// Before discovery finds the kinds of Bellwether.
pub fn crds_not_installed() -> String {
    format!("CRDs not installed. Run: {} crds | kubectl apply --server-side -f -", program())
}

/// `user "bob"` if a message of the API server about a missing right names the user, else `you`.
pub fn denied_user(message: &str) -> String {
    let name = message.split_once("User \"").and_then(|(_, rest)| rest.split_once('"'));
    name.map_or_else(|| "you".to_owned(), |(name, _)| format!("user {name:?}"))
}

fn with_way_out(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(ClientError::Unreachable { .. } | ClientError::NoKubeconfig { .. }) => {
            anyhow!("{error}. Choose another cluster with --context, or read a dump with --from DIR")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        r#"secrets "a" is forbidden: User "bob" cannot get resource "secrets" in API group "" in the namespace "b""#,
        "user \"bob\""
    )]
    #[case("denied by policy", "you")]
    fn messages_of_the_api_server_name_the_user(#[case] message: &str, #[case] expected: &str) {
        assert_eq!(denied_user(message), expected);
    }
}
