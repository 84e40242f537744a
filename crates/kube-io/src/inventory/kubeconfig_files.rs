//! Clusters of the command line: kubeconfig files, which are read again when they change.

use std::{
    fs,
    future::pending,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bellwether_engine::ClusterMetadata;
use bellwether_wire::error_text::bounded_line;
use kube::config::Kubeconfig;
use tokio::{
    task::{JoinError, spawn_blocking},
    time::sleep,
};
use tracing::warn;

use super::{
    InventoryBuilder,
    declarations::{Declaration, Origin, Source},
    exec_plugin::{Obtained, keep_declared},
    fingerprint,
    kubeconfig::{self, AccessError, Selected},
};

/// The interval in which the files are read. Editors and mounted volumes replace files, so that a watch of the
/// file system would miss changes.
const INTERVAL: Duration = Duration::from_secs(5);

/// The selected context, and a fingerprint of all files that it consists of.
type Content = Result<(Selected, u64), AccessError>;

/// A cluster of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigCluster {
    pub name: String,
    pub path: PathBuf,
    /// `None` for the current-context.
    pub context: Option<String>,
    pub metadata: ClusterMetadata,
}

/// Reads the file at once, and again whenever it changes. Never ends.
pub(super) async fn follow(cluster: KubeconfigCluster, inventory: InventoryBuilder) {
    let cluster = Arc::new(cluster);
    let (mut content, mut obtained) = (read_blocking(&cluster).await, None);
    loop {
        tokio::select! {
            () = declare(&cluster, &content, &mut obtained, &inventory) => return,
            other = other_content(&cluster, &content) => content = other,
        }
    }
}

/// A network file system may hang.
async fn read_blocking(cluster: &Arc<KubeconfigCluster>) -> Content {
    let reading = Arc::clone(cluster);
    let failed = |error: JoinError| {
        Err(AccessError::UnreadableFile(cluster.path.display().to_string(), bounded_line(&error.to_string())))
    };
    spawn_blocking(move || read(&reading)).await.unwrap_or_else(failed)
}

/// Waits until the content differs.
async fn other_content(cluster: &Arc<KubeconfigCluster>, content: &Content) -> Content {
    let essence =
        |content: &Content| content.as_ref().map(|(_, fingerprint)| *fingerprint).map_err(Clone::clone);
    loop {
        sleep(INTERVAL).await;
        let other = read_blocking(cluster).await;
        if essence(&other) != essence(content) {
            return other;
        }
    }
}

/// Declares the cluster, and renews its credentials. Never ends.
async fn declare(
    cluster: &KubeconfigCluster,
    content: &Content,
    obtained: &mut Option<Obtained>,
    inventory: &InventoryBuilder,
) {
    let origin = Origin { source: Source::CommandLine, object: cluster.name.as_str().into() };
    let (name, metadata) = (cluster.name.as_str().into(), Arc::new(cluster.metadata.clone()));
    let declaration = Declaration { name, created: None, metadata, access: None };
    let access = match content {
        Ok((selected, fingerprint)) if selected.user.exec.is_some() => {
            return keep_declared(&origin, &declaration, selected, *fingerprint, obtained, inventory).await;
        }
        Ok((selected, fingerprint)) => kubeconfig::access(selected.clone(), *fingerprint).await,
        Err(error) => Err(error.clone()),
    };
    if let Err(error) = &access {
        warn!(cluster = cluster.name, file = %cluster.path.display(), %error, "cannot use the kubeconfig");
    }
    inventory.declare(origin, Declaration { access: access.ok(), ..declaration }).await;
    pending::<()>().await;
}

fn read(cluster: &KubeconfigCluster) -> Content {
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
    // A command without a slash is searched in PATH.
    let command = user.exec.as_mut().and_then(|exec| exec.command.as_mut());
    if let Some(command) = command.filter(|command| command.contains('/')) {
        *command = directory.join(&*command).display().to_string();
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
