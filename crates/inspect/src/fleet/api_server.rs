//! One cluster through its API server.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_health::Context;
use bellwether_kube_io::{
    client::{ClientError, Connection},
    read::{ClusterSnapshot, ReadError, ReaderSettings},
};
use bellwether_model::{Object, Value};
use kube::api::ListParams;
use serde::Deserialize;
use tokio::{task::block_in_place, time::timeout};

use super::{
    ClusterToRead, ObjectQuery, ReadCluster, ReadFrom, ReadSettings, directory,
    found::{FoundObject, inventory, key},
};
use crate::observe::{grant, refusal, user_in};

/// Bounds the memory for the responses of many clusters.
const PAGE_SIZE: u32 = 500;

/// A cluster before it is read.
pub(super) struct Server {
    cluster: ClusterToRead,
    source: Source,
}

enum Source {
    Connected(Connection),
    Failed(ClientError),
    Files(Vec<PathBuf>),
}

impl Server {
    /// Sends no request to the API server.
    pub(super) async fn connect(cluster: ClusterToRead) -> Self {
        let source = match &cluster.from {
            ReadFrom::Files(paths) => Source::Files(paths.clone()),
            ReadFrom::ApiServer(login) => match login.connect().await {
                Ok(connection) => Source::Connected(connection),
                Err(error) => Source::Failed(error),
            },
        };
        Self { cluster, source }
    }

    /// The namespace of the context.
    pub(super) fn namespace(&self) -> Option<String> {
        match &self.source {
            Source::Connected(connection) => Some(connection.namespace.clone()),
            Source::Failed(_) | Source::Files(_) => None,
        }
    }

    pub(super) async fn read(
        self,
        query: &ObjectQuery,
        namespace: Option<&str>,
        settings: &ReadSettings,
    ) -> ReadCluster {
        let Self { cluster, source } = self;
        match source {
            Source::Failed(error) => ReadCluster::unread(&cluster, error.to_string()),
            // Other clusters are read meanwhile.
            Source::Files(paths) => {
                block_in_place(|| directory::read(&cluster, &paths, query, namespace, settings))
            }
            Source::Connected(connection) => {
                let reading =
                    Reading { cluster: &cluster, connection: &connection, query, namespace, settings };
                reading.read().await.unwrap_or_else(|error| ReadCluster::unread(&cluster, error))
            }
        }
    }
}

struct Reading<'r> {
    cluster: &'r ClusterToRead,
    connection: &'r Connection,
    query: &'r ObjectQuery,
    namespace: Option<&'r str>,
    settings: &'r ReadSettings,
}

impl Reading<'_> {
    async fn read(&self) -> Result<ReadCluster, String> {
        let within = self.settings.request_timeout;
        let silent = |_| no_response(self.connection, within);
        timeout(within, self.connection.check()).await.map_err(silent)?.map_err(|error| error.to_string())?;
        let settings = ReaderSettings { response_timeout: within, ..ReaderSettings::default() };
        let snapshot = ClusterSnapshot::at(self.connection.client.clone(), settings);
        let snapshot = snapshot.await.map_err(|error| format!("cannot discover the kinds: {error}"))?;
        let uid = if self.settings.fields.uid { uid(&snapshot).await } else { None };
        let mut read = ReadCluster {
            name: Arc::clone(&self.cluster.name),
            inventory: inventory(self.cluster, uid.as_deref()),
            objects: Some(BTreeMap::new()),
            kind: None,
            errors: Vec::new(),
            notes: Vec::new(),
        };
        let kind = match snapshot.kind(&self.query.kind) {
            Ok(kind) => kind,
            // It cannot have objects of a kind that it does not serve.
            Err(unknown) if unknown.candidates.is_empty() => {
                read.notes.push(format!("no kind {:?} in this cluster", self.query.kind));
                return Ok(read);
            }
            Err(ambiguous) => return Err(ambiguous.to_string()),
        };
        self.list(&snapshot, &kind, &mut read).await?;
        read.kind = Some(kind);
        Ok(read)
    }

    async fn list(
        &self,
        snapshot: &ClusterSnapshot,
        kind: &GroupKind,
        read: &mut ReadCluster,
    ) -> Result<(), String> {
        let Some(served) = snapshot.served(kind) else { return Ok(()) };
        let namespace = self.namespace.filter(|_| served.namespaced);
        let api_version = if kind.group.is_empty() {
            served.version.to_string()
        } else {
            format!("{}/{}", kind.group, served.version)
        };
        let context = Context { has_status: Some(served.has_status), ..self.settings.context() };
        let mut decode = self.settings.fields.to_decode();
        self.settings.rules.add_fields_for(&kind.group, &kind.kind, &mut decode);
        let keep = self.settings.fields.to_keep();
        let visit = |object: &Object<'_>| {
            // Of a Secret, only the metadata was requested: its kind is PartialObjectMetadata.
            let object = object.clone().of_kind(api_version.as_str(), &*kind.kind);
            let is_named =
                self.query.names.is_empty() || self.query.names.iter().any(|name| name == object.name());
            is_named.then(|| {
                let key = key(kind, object.namespace(), object.name());
                (key, FoundObject::of(&object, &context, &keep))
            })
        };
        let mut parameters = ListParams::default().limit(PAGE_SIZE);
        parameters.label_selector = self.query.selector.as_parameter().map(str::to_owned);
        if let [name] = &*self.query.names {
            parameters.field_selector = Some(format!("metadata.name={name}"));
        }
        loop {
            let page = snapshot.list_page(kind, namespace, &parameters).await;
            let page = page.map_err(|error| self.unreadable(&error, &resource(kind, &served.plural)))?;
            let Some(page) = page else { return Ok(()) };
            let text = String::from_utf8_lossy(&page);
            for object in bellwether_input::read_response(&text, &decode, &visit) {
                match object {
                    Ok(found) => read.objects.get_or_insert_default().extend(found),
                    Err(error) => read.errors.push(format!("invalid object in the response: {error}")),
                }
            }
            parameters.continue_token = continue_token(&page);
            if parameters.continue_token.is_none() {
                return Ok(());
            }
        }
    }

    fn unreadable(&self, error: &ReadError, resource: &str) -> String {
        match error {
            ReadError::Forbidden { why } => {
                let place = match self.namespace {
                    Some(namespace) => format!(" in namespace {namespace}"),
                    None => String::new(),
                };
                let user = user_in(why);
                format!(
                    "{}. {}",
                    refusal(user, &format!("list {resource}{place}")),
                    grant(user, "list", resource)
                )
            }
            error => format!("cannot list {resource}: {error}"),
        }
    }
}

/// As RBAC rules and users name it: `deployments.apps`.
fn resource(kind: &GroupKind, plural: &str) -> String {
    if kind.group.is_empty() { plural.to_owned() } else { format!("{plural}.{}", kind.group) }
}

fn no_response(connection: &Connection, within: Duration) -> String {
    let (address, why) = (connection.address.clone(), format!("no response within {within:?}"));
    ClientError::Unreachable { address, why }.to_string()
}

/// The UID of the namespace kube-system, if the user may read it.
async fn uid(snapshot: &ClusterSnapshot) -> Option<String> {
    let json = snapshot
        .get(&GroupKind::new("", "Namespace"), &NamespacedName::new("", "kube-system"))
        .await
        .ok()??;
    let object = Object::from_json(&json, &bellwether_model::Plan::identity()).ok()?;
    object.at("metadata.uid").and_then(Value::as_text).map(str::to_owned)
}

fn continue_token(page: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Page {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(rename = "continue")]
        token: Option<String>,
    }
    let page: Page = serde_json::from_slice(page).ok()?;
    page.metadata.token.filter(|token| !token.is_empty())
}
