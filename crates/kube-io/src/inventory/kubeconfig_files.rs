//! Clusters of the command line: kubeconfig files, which are read again when they change.

use std::{
    convert::Infallible,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bellwether_engine::ClusterMetadata;
use bellwether_wire::error_text::bounded_line;
use kube::config::Kubeconfig;
use tokio::{task::spawn_blocking, time::sleep};
use tracing::warn;

use super::{
    InventoryBuilder,
    declarations::{Declaration, Origin, Source},
    fingerprint,
    kubeconfig::{self, AccessError, Selected},
};

/// The interval in which the files are read. Editors and mounted volumes replace files, so that a watch of the
/// file system would miss changes.
const INTERVAL: Duration = Duration::from_secs(5);

/// A cluster of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigCluster {
    pub name: String,
    pub path: PathBuf,
    /// `None` for the current-context.
    pub context: Option<String>,
    pub metadata: ClusterMetadata,
}

/// Reads the files at once, and again whenever they change.
pub(super) async fn follow(clusters: Vec<KubeconfigCluster>, inventory: &InventoryBuilder) -> Infallible {
    let clusters: Arc<[_]> = clusters.into();
    let mut errors = vec![None; clusters.len()];
    loop {
        let reading = Arc::clone(&clusters);
        // A network file system may hang.
        let read = spawn_blocking(move || reading.iter().map(read).collect::<Vec<_>>()).await;
        for ((cluster, read), last_error) in clusters.iter().zip(read.unwrap_or_default()).zip(&mut errors) {
            let error = declare(cluster, read, inventory).await.err();
            if let Some(error) = error.as_ref().filter(|error| last_error.as_ref() != Some(*error)) {
                warn!(cluster = cluster.name, file = %cluster.path.display(), %error, "cannot use the kubeconfig");
            }
            *last_error = error;
        }
        sleep(INTERVAL).await;
    }
}

async fn declare(
    cluster: &KubeconfigCluster,
    read: Result<(Selected, u64), AccessError>,
    inventory: &InventoryBuilder,
) -> Result<(), AccessError> {
    let origin = Origin { source: Source::CommandLine, object: cluster.name.as_str().into() };
    let before = inventory.access(&origin).await;
    let access = match read {
        Ok((_, fingerprint)) if before.as_ref().is_some_and(|it| it.fingerprint == fingerprint) => {
            return Ok(());
        }
        Ok((selected, fingerprint)) => kubeconfig::access(selected, fingerprint).await,
        Err(error) => Err(error),
    };
    let error = access.as_ref().err().cloned();
    let (name, metadata) = (cluster.name.as_str().into(), Arc::new(cluster.metadata.clone()));
    inventory.declare(origin, Declaration { name, created: None, metadata, access: access.ok() }).await;
    error.map_or(Ok(()), Err)
}

/// The selected context, and a fingerprint of all files that it consists of.
fn read(cluster: &KubeconfigCluster) -> Result<(Selected, u64), AccessError> {
    let text = read_file(&cluster.path)?;
    let mut selected = kubeconfig::select(parse(&text, &cluster.path)?, cluster.context.as_deref())?;
    if selected.user.auth_provider.is_some() {
        return Err(AccessError::AuthProvider);
    }
    let directory = cluster.path.parent().unwrap_or(Path::new(""));
    let (server, user) = (&mut selected.cluster, &mut selected.user);
    // As kubectl does: relative to the kubeconfig. A token file is read again by the client.
    let mut files = Vec::new();
    for file in [&mut server.certificate_authority, &mut user.client_certificate, &mut user.client_key] {
        if let Some(file) = file.as_mut().filter(|file| !file.is_empty()) {
            let path = directory.join(&*file);
            files.push(read_file(&path)?);
            *file = path.display().to_string();
        }
    }
    if let Some(file) = user.token_file.as_mut().filter(|file| !file.is_empty()) {
        *file = directory.join(&*file).display().to_string();
    }
    let parts = [text.as_slice()].into_iter().chain(files.iter().map(Vec::as_slice));
    Ok((selected, fingerprint(parts)))
}

fn parse(text: &[u8], path: &Path) -> Result<Kubeconfig, AccessError> {
    kubeconfig::parse(text).map_err(|error| match error {
        AccessError::InvalidYaml(place) => {
            AccessError::UnreadableFile(path.display().to_string(), format!("invalid YAML{place}"))
        }
        error => error,
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, AccessError> {
    fs::read(path).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::NotFound => "no such file".to_owned(),
            _ => bounded_line(&error.to_string()),
        };
        AccessError::UnreadableFile(path.display().to_string(), why)
    })
}
