//! Clusters in Secrets with the label `bellwether.dev/cluster`.

use std::{convert::Infallible, sync::Arc};

use bellwether_model::name::{NAME_RULE, is_name};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Client, ResourceExt as _};
use tracing::warn;

use super::{
    InventoryBuilder,
    declarations::{Declaration, Origin, Source},
    fingerprint,
    kubeconfig::{self, AccessError},
    metadata_of,
    object_watch::{Change, Follower, Objects},
};
use crate::read::ReaderSettings;

/// Its value is the name of the cluster.
const LABEL: &str = "bellwether.dev/cluster";

const KEY: &str = "kubeconfig";

pub(super) struct ClusterSecrets {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) settings: ReaderSettings,
    pub(super) allow_insecure: bool,
    pub(super) inventory: InventoryBuilder,
}

impl Follower<Secret> for ClusterSecrets {
    async fn changed(&self, change: Change<Secret>) {
        match change {
            Change::Listed(secrets) => {
                let mut kept = Vec::new();
                for secret in secrets {
                    kept.push(origin_of(&secret));
                    self.declare(secret).await;
                }
                self.inventory.keep_only(Source::Secret, &kept).await;
                self.inventory.source_listed(Source::Secret).await;
            }
            Change::Applied(secret) => self.declare(secret).await,
            Change::Deleted(secret) => self.inventory.withdraw(&origin_of(&secret)).await,
        }
    }

    async fn forbidden(&self) {
        self.inventory.source_listed(Source::Secret).await;
    }
}

impl ClusterSecrets {
    pub(super) async fn follow(&self) -> Infallible {
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        let if_forbidden = format!(
            "cannot list Secrets: no clusters are read from Secrets. Grant get, list and watch on secrets in namespace {}",
            self.namespace
        );
        let objects = Objects {
            client: &self.client,
            settings: &self.settings,
            path: &path,
            label_selector: Some(LABEL),
            if_forbidden: &if_forbidden,
        };
        objects.watch(self).await
    }

    async fn declare(&self, mut secret: Secret) {
        let (origin, created) = (origin_of(&secret), secret.creation_timestamp().map(|time| time.0));
        let name = secret.labels().get(LABEL).cloned().unwrap_or_default();
        if !is_name(&name) {
            warn!(%origin, label = LABEL, name, "invalid name of a cluster: {NAME_RULE}");
            return self.inventory.withdraw(&origin).await;
        }
        let key = secret.data.as_mut().and_then(|data| data.remove(KEY));
        let metadata = metadata_of(&mut secret.metadata);
        // The content of the Secret ends here.
        drop(secret);
        let fingerprint = key.as_ref().map(|ByteString(text)| fingerprint([text.as_slice()]));
        let unchanged =
            self.inventory.access(&origin).await.filter(|access| Some(access.fingerprint) == fingerprint);
        let access = match (unchanged, key, fingerprint) {
            (Some(access), ..) => Ok(access),
            (None, Some(ByteString(text)), Some(fingerprint)) => {
                match kubeconfig::from_secret(&text, self.allow_insecure) {
                    Ok(selected) => kubeconfig::access(selected, fingerprint).await,
                    Err(error) => Err(error),
                }
            }
            (None, ..) => Err(AccessError::NoKey),
        };
        if let Err(error) = &access {
            warn!(%origin, cluster = name, %error, "cannot use the kubeconfig");
        }
        let (name, metadata) = (name.into(), Arc::new(metadata));
        self.inventory.declare(origin, Declaration { name, created, metadata, access: access.ok() }).await;
    }
}

fn origin_of(secret: &Secret) -> Origin {
    let namespace = secret.namespace().unwrap_or_default();
    Origin { source: Source::Secret, object: format!("{namespace}/{}", secret.name_any()).into() }
}
