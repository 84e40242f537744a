//! Clusters of the command line: kubeconfig files, which are read again when they change.

use std::{fs, path::Path};

use bellwether_engine::ClusterMetadata;

use super::*;

fn flag(name: &str, path: &Path, context: Option<&str>) -> KubeconfigCluster {
    let context = context.map(str::to_owned);
    KubeconfigCluster {
        name: name.to_owned(),
        path: path.to_owned(),
        context,
        metadata: ClusterMetadata::default(),
    }
}

#[tokio::test]
async fn a_file_that_changes_is_read_again() -> Result<()> {
    let hub = shared::cluster().await?;
    let file = hub.admin().kubeconfig_file()?;
    let by_context = flag("west", &file, Some("elsewhere"));
    let clusters = vec![flag("east", &file, None), by_context];
    let fixture =
        InventoryFixture::with_settings("files", &["east"], |settings| settings.clusters = clusters).await?;
    create_map(hub, &fixture.namespace, "one").await?;
    fixture.is_read("east").await?;
    fixture.objects_are(1).await?;
    fixture.cluster_is("west", "known, without its context", |status| status.last_heard.is_none()).await?;

    let mut kubeconfig: Value = serde_json::from_str(&hub.admin().kubeconfig())?;
    let mut other = kubeconfig["contexts"][0].clone();
    other["name"] = "elsewhere".into();
    kubeconfig["contexts"].as_array_mut().context("a list")?.push(other);
    fs::write(&file, kubeconfig.to_string())?;
    fixture.is_read("west").await?;

    // What the flag says counts, and the Secret is ignored.
    fixture.register("east", json!({ "from": "secret" }), &hub.admin().kubeconfig()).await?;
    fixture.register("other", json!({}), &hub.admin().kubeconfig()).await?;
    fixture.is_read("other").await?;
    let east = fixture.cluster("east").context("still there")?;
    assert!(east.metadata.labels.is_empty());
    assert!(east.disconnected_since.is_none());
    Ok(())
}
