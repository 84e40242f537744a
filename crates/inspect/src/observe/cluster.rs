//! A cluster, read once.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use bellwether_engine::{DiscoveredKinds, FeedEvent, GroupKind, NamespacedName, ServedResource, Unreadable};
use bellwether_kube_io::{
    client::{ClientError, ClientOptions, Connection},
    read::{ClusterSnapshot, ReadError, ReaderSettings},
};
use bellwether_model::{Object, Plan};
use kube::{Client, api::ListParams, core::Request};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::timeout,
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
    /// The user of the kubeconfig, once the API server has refused a list and named the user.
    user: OnceLock<Option<String>>,
}

impl ObservedCluster {
    /// Connects and discovers the kinds. The namespace defaults to that of the context.
    pub(super) fn open(login: &ClientOptions, namespace: Option<&str>, all_namespaces: bool) -> Result<Self> {
        Self::connect_in(login, namespace, all_namespaces, RESPONSE_TIMEOUT).map_err(with_way_out)
    }

    /// To read all namespaces. It must respond within this time.
    pub(super) fn connect(login: &ClientOptions, namespace: Option<&str>, within: Duration) -> Result<Self> {
        Self::connect_in(login, namespace, true, within)
    }

    fn connect_in(
        login: &ClientOptions,
        namespace: Option<&str>,
        all_namespaces: bool,
        within: Duration,
    ) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let connect = async {
            let connection = login.connect().await?;
            let silent = |_| {
                let (address, why) = (connection.address.clone(), format!("no response within {within:?}"));
                ClientError::Unreachable { address, why }
            };
            timeout(within, connection.check()).await.map_err(silent)??;
            let namespace = namespace.unwrap_or(&connection.namespace).to_owned();
            let settings = ReaderSettings {
                namespace: (!all_namespaces).then(|| namespace.clone()),
                response_timeout: within,
                page_size: PAGE_SIZE,
                ..ReaderSettings::default()
            };
            let snapshot =
                ClusterSnapshot::at(connection.client.clone(), settings).await.map_err(|error| {
                    anyhow!("cannot discover the kinds served at {}: {error}", connection.address)
                })?;
            anyhow::Ok((connection, snapshot, namespace))
        };
        let (connection, snapshot, namespace) = runtime.block_on(connect)?;
        let snapshot = Arc::new(snapshot);
        Ok(Self { runtime, connection, snapshot, namespace, user: OnceLock::new() })
    }

    /// The namespace of objects that are named without one.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn serves(&self, kind: &GroupKind) -> bool {
        self.snapshot.served(kind).is_some()
    }

    pub(super) fn discovered(&self) -> DiscoveredKinds {
        self.snapshot.discovered()
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
        refusal(self.user(), &format!("list {}{place}", self.resource(kind)))
    }

    /// `Grant user bob the verb list on services`
    pub(super) fn remedy(&self, kind: &GroupKind) -> String {
        grant(self.user(), "list", &self.resource(kind))
    }

    fn user(&self) -> Option<&str> {
        self.user.get()?.as_deref()
    }

    /// Sends a list again that was refused, because the message of the response has the name of the user.
    async fn refused_user(&self, kind: &GroupKind, namespace: Option<&str>) -> Option<String> {
        let path = self.snapshot.served(kind)?.path(&kind.group, namespace, None);
        let request = Request::new(path).list(&ListParams::default().limit(1)).ok()?;
        let response = timeout(RESPONSE_TIMEOUT, self.connection.client.request_text(request)).await.ok()?;
        match response {
            Err(kube::Error::Api(status)) => user_in(&status.message).map(str::to_owned),
            _ => None,
        }
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
        let is_forbidden =
            |event: &FeedEvent| matches!(event, FeedEvent::Unreadable(Unreadable::Forbidden { .. }));
        if let Some((kind, _)) = listed.iter().find(|(_, events)| events.iter().any(is_forbidden)) {
            self.user.get_or_init(|| self.runtime.block_on(self.refused_user(kind, namespace)));
        }
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
                let (user, resource) = (user_in(&why), self.resource(kind));
                return Err(anyhow!(
                    "{}. {}",
                    refusal(user, &format!("get {resource}{}", in_namespace(name))),
                    grant(user, "get", &resource)
                ));
            }
            Err(error) => {
                return Err(anyhow!("cannot get {}/{}{}: {error}", kind.kind, name.name, in_namespace(name)));
            }
        };
        let Some(json) = json else { return Ok(None) };
        let object = Object::from_json(&json, &Plan::whole()).with_context(|| {
            format!("invalid response from the API server for {}/{}", kind.kind, name.name)
        })?;
        // Of a Secret, only the metadata was requested: its kind is PartialObjectMetadata.
        let object = match self.snapshot.served(kind) {
            Some(served) if kind.is_secret() => object.of_kind(&*served.version, &*kind.kind),
            _ => object,
        };
        Ok(Some(make(&object)))
    }

    fn unavailable(&self, error: &ReadError) -> anyhow::Error {
        let error = error.to_string();
        // Without the ` (os error 111)` that Rust appends.
        let error = error.split_once(" (os error ").map_or(&*error, |(error, _)| error);
        anyhow!("no response from the API server at {}: {error}", self.connection.address)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
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

/// The user that a message of the API server about a missing right names.
pub(crate) fn user_in(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("User \"")?;
    rest.split_once('"').map(|(name, _)| name)
}

/// `user "bob"` if a message of the API server about a missing right names the user.
pub fn denied_user(message: &str) -> String {
    user_in(message).map_or_else(|| "this user".to_owned(), |name| format!("user {name:?}"))
}

/// `user "bob" cannot list services`, or `cannot list services: forbidden`.
pub(crate) fn refusal(user: Option<&str>, right: &str) -> String {
    match user {
        Some(user) => format!("user {user:?} cannot {right}"),
        None => format!("cannot {right}: forbidden"),
    }
}

/// `Grant user bob the verb list on services`
pub(crate) fn grant(user: Option<&str>, verb: &str, resource: &str) -> String {
    let user = user.map(|user| format!(" user {user}")).unwrap_or_default();
    format!("Grant{user} the verb {verb} on {resource}")
}

fn in_namespace(name: &NamespacedName) -> String {
    match &*name.namespace {
        "" => String::new(),
        namespace => format!(" in namespace {namespace}"),
    }
}

fn with_way_out(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(ClientError::Unreachable { .. }) => {
            anyhow!("{error}. Choose another cluster with --context, or read a dump with --from PATH")
        }
        Some(ClientError::NoKubeconfig { home }) => {
            let home = home.as_deref().unwrap_or(Path::new("~/.kube/config")).display();
            anyhow!(
                "no kubeconfig found. Set --kubeconfig or KUBECONFIG, create {home}, or read a dump with --from PATH"
            )
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
        Some("bob"),
        "user \"bob\" cannot get secrets. Grant user bob the verb get on secrets"
    )]
    #[case("denied by policy", None, "cannot get secrets: forbidden. Grant the verb get on secrets")]
    fn messages_of_the_api_server_name_the_user(
        #[case] message: &str,
        #[case] user: Option<&str>,
        #[case] expected: &str,
    ) {
        assert_eq!(user_in(message), user);
        assert_eq!(format!("{}. {}", refusal(user, "get secrets"), grant(user, "get", "secrets")), expected);
    }
}
