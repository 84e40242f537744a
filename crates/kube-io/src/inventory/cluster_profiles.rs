//! Clusters in ClusterProfiles (`multicluster.x-k8s.io/v1alpha1`), while the hub serves them.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use bellwether_engine::{ClusterMetadata, DiscoveredKinds, GroupKind};
use bellwether_model::name::{NAME_RULE, is_name};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
};
use tracing::{Instrument as _, Span, info, warn};

use super::{
    InventoryBuilder,
    access_providers::{AccessProvider, AccessProviders},
    declarations::{Declaration, Origin, Source},
    exec_plugin::keep_declared,
    fingerprint,
    kubeconfig::AccessError,
    metadata_of,
    object_watch::{Change, Follower, Objects},
};
use crate::read::{KindsReceiver, ReaderSettings};

pub(super) struct ClusterProfiles {
    pub(super) client: Client,
    pub(super) kinds: KindsReceiver,
    pub(super) settings: ReaderSettings,
    pub(super) providers: AccessProviders,
    pub(super) allow_insecure: bool,
    pub(super) inventory: InventoryBuilder,
    pub(super) profiles: Mutex<HashMap<Origin, Profile>>,
}

/// Other fields do not concern us.
#[derive(Deserialize)]
struct ClusterProfile {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Value,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Offered {
    access_providers: Vec<Value>,
    /// The older name of the field.
    credential_providers: Vec<Value>,
}

impl Offered {
    /// Of two with one name, the one in `accessProviders` counts. What is malformed is not offered.
    fn providers(self) -> Vec<AccessProvider> {
        let all = self.access_providers.into_iter().chain(self.credential_providers);
        let mut providers = Vec::<AccessProvider>::new();
        for provider in all.filter_map(|provider| AccessProvider::deserialize(provider).ok()) {
            if providers.iter().all(|known| known.name != provider.name) {
                providers.push(provider);
            }
        }
        providers
    }
}

/// What a ClusterProfile says.
#[derive(Clone)]
struct Said {
    name: Arc<str>,
    created: Option<Timestamp>,
    metadata: Arc<ClusterMetadata>,
    offered: Arc<Value>,
}

/// Declares the cluster of one ClusterProfile until it is dropped.
pub(super) struct Profile {
    said: watch::Sender<Said>,
    task: JoinHandle<()>,
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follower<ClusterProfile> for ClusterProfiles {
    async fn changed(&self, change: Change<ClusterProfile>) {
        match change {
            Change::Listed(profiles) => {
                let mut kept = Vec::new();
                for profile in profiles {
                    kept.push(origin_of(&profile.metadata));
                    self.declare(profile).await;
                }
                self.keep_only(&kept).await;
                self.inventory.source_listed(Source::ClusterProfile).await;
            }
            Change::Applied(profile) => self.declare(profile).await,
            Change::Deleted(profile) => self.withdraw(&origin_of(&profile.metadata)).await,
        }
    }

    async fn forbidden(&self) {
        self.inventory.source_listed(Source::ClusterProfile).await;
    }
}

impl ClusterProfiles {
    /// Runs until the hub is no longer read.
    pub(super) async fn follow(self) {
        let kind = GroupKind::new("multicluster.x-k8s.io", "ClusterProfile");
        let mut kinds = self.kinds.clone();
        let is_served = kinds
            .wait_for(Option::is_some)
            .await
            .map(|kinds| kinds.as_ref().is_some_and(|kinds| kinds.served.contains_key(&kind)));
        if !is_served.unwrap_or_default() {
            self.inventory.source_listed(Source::ClusterProfile).await;
        }
        loop {
            let served =
                kinds.wait_for(|kinds| kinds.as_ref().is_some_and(|it| it.served.contains_key(&kind))).await;
            let Ok(served) = served.map(|kinds| kinds.as_ref().and_then(|it| it.served.get(&kind)).cloned())
            else {
                return;
            };
            let Some(served) = served else { continue };
            let path = served.path(&kind.group, None, None);
            info!(version = %served.version, "reading clusters from ClusterProfiles");
            let objects = Objects {
                client: &self.client,
                settings: &self.settings,
                path: &path,
                label_selector: None,
                if_forbidden: "cannot list ClusterProfiles: no clusters are read from them. Grant get, list and watch on \
                               clusterprofiles in the API group multicluster.x-k8s.io",
            };
            let is_other = |it: &Option<Arc<DiscoveredKinds>>| {
                it.as_ref().and_then(|it| it.served.get(&kind)) != Some(&served)
            };
            let mut kinds = kinds.clone();
            tokio::select! {
                never = objects.watch(&self) => match never {},
                _ = kinds.wait_for(is_other) => {}
            }
            self.keep_only(&[]).await;
        }
    }

    async fn declare(&self, profile: ClusterProfile) {
        let ClusterProfile { mut metadata, status } = profile;
        let (origin, name) = (origin_of(&metadata), metadata.name.clone().unwrap_or_default());
        if !is_name(&name) {
            warn!(%origin, "invalid name of a cluster: {NAME_RULE}");
            return self.withdraw(&origin).await;
        }
        let created = metadata.creation_timestamp.take().map(|time| time.0);
        // Of the status, only this matters: its conditions change all the time.
        let offered = Offered::deserialize(status).unwrap_or_default();
        let offered = Arc::new(serde_json::to_value(offered).unwrap_or_default());
        let said =
            Said { name: name.into(), created, metadata: Arc::new(metadata_of(&mut metadata)), offered };
        match self.profiles.lock().await.entry(origin) {
            Entry::Occupied(known) => {
                known.get().said.send_if_modified(|before| {
                    let is_same = before.metadata == said.metadata && before.offered == said.offered;
                    if !is_same {
                        *before = said;
                    }
                    !is_same
                });
            }
            Entry::Vacant(vacant) => {
                // Its name counts at once, before a plugin has provided credentials.
                let Said { name, created, metadata, .. } = said.clone();
                let declaration = Declaration { name, created, metadata, access: None };
                self.inventory.declare(vacant.key().clone(), declaration).await;
                let (sender, receiver) = watch::channel(said);
                let task = keep_profile(
                    vacant.key().clone(),
                    receiver,
                    self.providers.clone(),
                    self.allow_insecure,
                    self.inventory.clone(),
                );
                let task = tokio::spawn(task.instrument(Span::current()));
                vacant.insert(Profile { said: sender, task });
            }
        }
    }

    async fn withdraw(&self, origin: &Origin) {
        self.profiles.lock().await.remove(origin);
        self.inventory.withdraw(origin).await;
    }

    async fn keep_only(&self, kept: &[Origin]) {
        self.profiles.lock().await.retain(|origin, _| kept.contains(origin));
        self.inventory.keep_only(Source::ClusterProfile, kept).await;
    }
}

/// Runs until the sender is dropped.
async fn keep_profile(
    origin: Origin,
    mut said: watch::Receiver<Said>,
    providers: AccessProviders,
    allow_insecure: bool,
    inventory: InventoryBuilder,
) {
    let (mut obtained, mut last_error) = (None, None::<AccessError>);
    loop {
        let Said { name, created, metadata, offered } = said.borrow_and_update().clone();
        let declaration = Declaration { name, created, metadata, access: None };
        let offered_now = Offered::deserialize(&*offered).unwrap_or_default().providers();
        let changed = match providers.select(offered_now, allow_insecure) {
            Ok(selected) => {
                last_error = None;
                let of = fingerprint([offered.to_string().as_bytes()]);
                tokio::select! {
                    changed = said.changed() => changed,
                    () = keep_declared(&origin, &declaration, &selected, of, &mut obtained, &inventory) => return,
                }
            }
            Err(error) => {
                if last_error.as_ref() != Some(&error) {
                    warn!(%origin, %error, "cannot use the ClusterProfile");
                }
                last_error = Some(error);
                inventory.declare(origin.clone(), declaration).await;
                said.changed().await
            }
        };
        if changed.is_err() {
            return;
        }
    }
}

fn origin_of(metadata: &ObjectMeta) -> Origin {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    Origin { source: Source::ClusterProfile, object: format!("{namespace}/{name}").into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_older_field_counts_less() {
        let provider = |name: &str, server: &str| json!({ "name": name, "cluster": { "server": server } });
        let status = json!({
            "credentialProviders": [provider("a", "https://old"), provider("b", "https://old")],
            "accessProviders": [provider("a", "https://new"), { "name": 7 }],
        });
        let providers = Offered::deserialize(status).unwrap().providers();
        let said: Vec<_> = providers.iter().map(|it| (&*it.name, it.cluster.server.as_deref())).collect();
        assert_eq!(said, [("a", Some("https://new")), ("b", Some("https://old"))]);
    }
}
