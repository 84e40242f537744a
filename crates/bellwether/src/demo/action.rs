//! What happens in the story.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bellwether_engine::{Cluster, GroupKind};
use bellwether_memory_cluster::merge;
use serde_json::{Value, json};

use super::{simulated_cluster::SimulatedCluster, store::Store, workloads};

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Applies manifests. Users act in the hub only.
    Apply(&'static str),
    /// Adds components, as JSON, to the spec of the Application of this name.
    AddComponents(&'static str, &'static str),
    /// Sets the image of all containers of the Deployment of this name.
    SetImage(&'static str, &'static str),
    /// Deletes the StatefulSet of this name.
    Delete(&'static str),
    /// Group, kind and name of an object, and a merge patch.
    Patch(&'static str, &'static str, &'static str, &'static str),
    /// The cluster of this name stops answering.
    Disconnect(&'static str),
    /// It answers again.
    Reconnect(&'static str),
}

impl Action {
    pub(super) fn perform(
        self,
        hub: &mut Store,
        clusters: &mut BTreeMap<Cluster, SimulatedCluster>,
    ) -> Result<()> {
        match self {
            Self::Apply(manifests) => {
                let manifests: Vec<Value> =
                    serde_saphyr::from_multiple(manifests).context("invalid manifest in the demo")?;
                for manifest in &manifests {
                    hub.apply(manifest);
                }
            }
            Self::AddComponents(application, components) => {
                let components: Value =
                    serde_json::from_str(components).context("invalid component in the demo")?;
                let patch = json!({ "spec": { "components": components } });
                hub.patch(&GroupKind::bellwether("Application"), application, &patch);
            }
            Self::SetImage(name, image) => set_image(hub, name, image),
            Self::Patch(group, kind, name, patch) => {
                let patch: Value = serde_json::from_str(patch).context("invalid patch in the demo")?;
                hub.patch(&GroupKind::new(group, kind), name, &patch);
            }
            Self::Delete(name) => hub.delete(&workloads::stateful_set(), name),
            Self::Disconnect(name) => set_answers(clusters, name, false),
            Self::Reconnect(name) => set_answers(clusters, name, true),
        }
        Ok(())
    }
}

fn set_image(hub: &mut Store, name: &str, image: &str) {
    let Some(deployment) = hub.get(&workloads::deployment(), name) else { return };
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let mut containers = containers.cloned().unwrap_or_default();
    for container in &mut containers {
        merge(container, &json!({ "image": image }));
    }
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    hub.patch(&workloads::deployment(), name, &patch);
}

fn set_answers(clusters: &mut BTreeMap<Cluster, SimulatedCluster>, name: &str, answers: bool) {
    if let Some(cluster) = clusters.get_mut(&Cluster::named(name)) {
        cluster.answers = answers;
    }
}
