//! Creates a client from a kubeconfig or from the service account of the Pod.

use std::{
    env,
    error::Error,
    ffi::OsString,
    fmt,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};

use http::{HeaderValue, StatusCode, Uri, header::USER_AGENT};
use kube::{
    Client, Config,
    client::AuthError,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use thiserror::Error as ThisError;

use bellwether_wire::{
    Verb,
    error_text::{bounded_line, root_cause},
};

use crate::write::{CallError, REQUEST_TIMEOUT, call};

/// The timeout to connect and to send a request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// The file is named by a flag: `--kubeconfig` or `--cluster`.
const NO_SUCH_FILE: &str = "no such file. Check the path";

const NO_LISTED_FILE: &str = "no such file. Check KUBECONFIG";

/// The choice of a cluster by the user.
///
/// The order: `kubeconfig`; the files in KUBECONFIG; in a Pod without a `context`, its service account;
/// `~/.kube/config`.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

#[derive(Clone)]
pub struct Connection {
    /// Neither retries nor has a read timeout.
    pub client: Client,
    /// The default namespace.
    pub namespace: String,
    pub address: Uri,
    /// The command of the exec plugin that obtains the credentials.
    exec_plugin: Option<String>,
}

#[derive(Debug, ThisError)]
pub enum ClientError {
    #[error(
        "no kubeconfig found. Set --kubeconfig or KUBECONFIG, or create {}",
        home.as_deref().unwrap_or(Path::new("~/.kube/config")).display()
    )]
    NoKubeconfig { home: Option<PathBuf> },
    #[error("cannot read kubeconfig {}: {why}", file.display())]
    Unreadable { file: PathBuf, why: String },
    #[error("context {context:?} not found in kubeconfig {files}. {}", choice(known))]
    NoSuchContext { context: String, files: KubeconfigFiles, known: Vec<String> },
    #[error("no current-context in kubeconfig {files}. {}", choice(known))]
    NoContext { files: KubeconfigFiles, known: Vec<String> },
    #[error("invalid kubeconfig {files}: {why}")]
    InvalidKubeconfig { files: KubeconfigFiles, why: String },
    #[error("cannot use the service account of the Pod: {why}. Mount its token, or set --kubeconfig")]
    NoServiceAccount { why: String },
    /// No response.
    #[error(
        "cannot connect to the API server at {address}: {why}. Check the address and that the cluster is running"
    )]
    Unreachable { address: Uri, why: String },
    #[error(
        "TLS handshake with the API server at {address} failed: {why}. Check server and certificate-authority in the \
         kubeconfig"
    )]
    Tls { address: Uri, why: String },
    /// 401, or the client could not obtain credentials.
    #[error(
        "cannot authenticate to the API server at {address}: {why}. Log in again, or correct the user in the kubeconfig"
    )]
    Unauthorized { address: Uri, why: String },
    #[error(
        "cannot get credentials for {address}: exec plugin {command} not found. Install it, or correct the user in the \
         kubeconfig"
    )]
    NoExecPlugin { address: Uri, command: String },
}

impl ClientError {
    fn of_credentials(error: &AuthError, address: Uri, exec_plugin: Option<&str>) -> Self {
        let command = exec_plugin.unwrap_or("of the user").to_owned();
        match error {
            AuthError::AuthExecStart(error) if error.kind() == ErrorKind::NotFound => {
                Self::NoExecPlugin { address, command }
            }
            // Its output may contain a token.
            AuthError::AuthExecRun { out, .. } => {
                Self::Unauthorized { address, why: format!("exec plugin {command} failed: {}", out.status) }
            }
            error => Self::Unauthorized { address, why: cause(error) },
        }
    }
}

/// The innermost source of an error, without the ` (os error 111)` that Rust appends.
pub(crate) fn cause(error: &dyn Error) -> String {
    let text = root_cause(error);
    text.split_once(" (os error ").map_or(&*text, |(text, _)| text).to_owned()
}

/// Whether the TLS library has failed: it reports its errors as invalid data.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        let inner = error.get_ref().map(|inner| inner as &(dyn Error + 'static));
        if error.kind() == ErrorKind::InvalidData || inner.is_some_and(is_tls) {
            return true;
        }
    }
    error.source().is_some_and(is_tls)
}

fn choice(known: &[String]) -> String {
    if known.is_empty() {
        "Add a context: the kubeconfig has none".to_owned()
    } else {
        format!("Set --context to one of {}", known.join(", "))
    }
}

/// The settings of all our clients.
pub(crate) fn with_settings(mut config: Config) -> Config {
    // Callers retry. A watch is silent while nothing happens, so reads have no timeout.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = None;
    let user_agent = HeaderValue::from_static(concat!("bellwether/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, user_agent));
    config
}

/// Kubeconfigs that are merged, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigFiles(Vec<PathBuf>);

impl fmt::Display for KubeconfigFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self.0.iter().map(|file| file.display().to_string()).collect();
        f.write_str(&files.join(" and "))
    }
}

struct Environment {
    /// The variable KUBECONFIG.
    kubeconfig: Option<OsString>,
    home: Option<PathBuf>,
    /// Whether this process runs in a Pod with a service account token.
    pod: bool,
}

impl Environment {
    fn of_process() -> Self {
        Self {
            kubeconfig: env::var_os("KUBECONFIG"),
            home: env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            pod: env::var_os("KUBERNETES_SERVICE_HOST").is_some()
                && Path::new(SERVICE_ACCOUNT_TOKEN).exists(),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum CredentialSource {
    /// The file must exist.
    Named(PathBuf),
    /// At least one of the files must exist.
    Listed(Vec<PathBuf>),
    /// The service account of the Pod.
    Pod,
}

impl ClientOptions {
    /// Sends no request to the API server.
    pub async fn connect(&self) -> Result<Connection, ClientError> {
        let config = match self.source(&Environment::of_process())? {
            CredentialSource::Pod => Config::incluster()
                .map_err(|error| ClientError::NoServiceAccount { why: bounded_line(&error.to_string()) })?,
            CredentialSource::Named(file) => self.read(vec![file]).await?,
            CredentialSource::Listed(files) => {
                let existing: Vec<PathBuf> = files.iter().filter(|file| file.exists()).cloned().collect();
                match files.into_iter().next() {
                    Some(first) if existing.is_empty() => {
                        return Err(ClientError::Unreadable { file: first, why: NO_LISTED_FILE.to_owned() });
                    }
                    _ => self.read(existing).await?,
                }
            }
        };
        let config = with_settings(config);
        let (namespace, address) = (config.default_namespace.clone(), config.cluster_url.clone());
        let exec_plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
        let client = Client::try_from(config).map_err(|error| match error {
            kube::Error::Auth(error) => {
                ClientError::of_credentials(&error, address.clone(), exec_plugin.as_deref())
            }
            error => ClientError::Unauthorized { address: address.clone(), why: cause(&error) },
        })?;
        Ok(Connection { client, namespace, address, exec_plugin })
    }

    /// Whether there is a kubeconfig, valid or not, or a service account.
    pub fn is_configured(&self) -> bool {
        self.source(&Environment::of_process()).is_ok()
    }

    fn source(&self, environment: &Environment) -> Result<CredentialSource, ClientError> {
        if let Some(file) = &self.kubeconfig {
            return Ok(CredentialSource::Named(file.clone()));
        }
        let listed: Vec<PathBuf> = environment
            .kubeconfig
            .iter()
            .flat_map(|list| env::split_paths(list).collect::<Vec<_>>())
            .filter(|file| !file.as_os_str().is_empty())
            .collect();
        let home = environment.home.as_ref().map(|home| home.join(".kube/config"));
        if !listed.is_empty() {
            Ok(CredentialSource::Listed(listed))
        } else if environment.pod && self.context.is_none() {
            Ok(CredentialSource::Pod)
        } else {
            match home {
                Some(file) if file.exists() => Ok(CredentialSource::Named(file)),
                home => Err(ClientError::NoKubeconfig { home }),
            }
        }
    }

    /// Merges kubeconfigs as kubectl does: the first file that sets a value wins.
    async fn read(&self, files: Vec<PathBuf>) -> Result<Config, ClientError> {
        let mut merged = Kubeconfig::default();
        for file in &files {
            let unreadable = |why| ClientError::Unreadable { file: file.clone(), why };
            let read = Kubeconfig::read_from(file).map_err(|error| unreadable(reason(&error)))?;
            merged = merged.merge(read).map_err(|error| unreadable(reason(&error)))?;
        }
        self.choose(merged, KubeconfigFiles(files)).await
    }

    async fn choose(&self, kubeconfig: Kubeconfig, files: KubeconfigFiles) -> Result<Config, ClientError> {
        let known = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        match config {
            // The client would panic.
            Ok(config) if config.cluster_url.scheme().is_none() => {
                let server = config.cluster_url;
                let why = format!("server \"{server}\" has no scheme. Write https://{server}");
                Err(ClientError::InvalidKubeconfig { files, why })
            }
            Ok(config) => Ok(config),
            Err(KubeconfigError::CurrentContextNotSet) => Err(ClientError::NoContext { files, known }),
            Err(KubeconfigError::LoadContext(context)) => {
                Err(ClientError::NoSuchContext { context, files, known })
            }
            Err(error) => {
                let why = match error {
                    KubeconfigError::LoadClusterOfContext(cluster) => {
                        format!("cluster {cluster:?} is not defined")
                    }
                    KubeconfigError::MissingClusterUrl => "the cluster has no server".to_owned(),
                    error => bounded_line(&error.to_string()),
                };
                Err(ClientError::InvalidKubeconfig { files, why })
            }
        }
    }
}

/// Without the name of the file, which [`ClientError::Unreadable`] has.
fn reason(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) if error.kind() == ErrorKind::NotFound => {
            NO_SUCH_FILE.to_owned()
        }
        KubeconfigError::ReadConfig(error, _) => cause(error),
        KubeconfigError::Parse(error) => {
            let error = error.to_string();
            // The further lines quote the file.
            let error = error.lines().next().unwrap_or_default();
            format!("invalid YAML: {}", bounded_line(error.trim_start_matches("error: ")))
        }
        error => bounded_line(&error.to_string()),
    }
}

impl Connection {
    /// Checks that the API server responds and accepts the credentials.
    pub async fn check(&self) -> Result<(), ClientError> {
        let address = self.address.clone();
        match call(&self.client, Verb::Get.request("/version", Vec::new()), REQUEST_TIMEOUT).await {
            Ok(_) => Ok(()),
            // Authenticated, but without permission to read the version.
            Err(CallError::Api(error)) if error.code == StatusCode::FORBIDDEN => Ok(()),
            Err(CallError::Api(error)) if error.code == StatusCode::UNAUTHORIZED => {
                Err(ClientError::Unauthorized { address, why: error.to_string() })
            }
            Err(CallError::NoResponse(kube::Error::Auth(error))) => {
                Err(ClientError::of_credentials(&error, address, self.exec_plugin.as_deref()))
            }
            Err(CallError::NoResponse(error)) if is_tls(&error) => {
                Err(ClientError::Tls { address, why: cause(&error) })
            }
            Err(CallError::NoResponse(error)) => {
                Err(ClientError::Unreachable { address, why: cause(&error) })
            }
            Err(CallError::Timeout(within)) => {
                Err(ClientError::Unreachable { address, why: format!("no response within {within:?}") })
            }
            Err(error) => Err(ClientError::Unreachable { address, why: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A file that exists and is not a kubeconfig.
    const EXISTING_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

    fn environment(kubeconfig: Option<&str>, pod: bool) -> Environment {
        Environment { kubeconfig: kubeconfig.map(Into::into), home: Some("/home/bob".into()), pod }
    }

    fn listed(files: &[&str]) -> CredentialSource {
        CredentialSource::Listed(files.iter().map(PathBuf::from).collect())
    }

    #[rstest]
    #[case::named(Some("a"), None, Some("b:c"), true, Some(CredentialSource::Named("a".into())))]
    #[case::listed(None, None, Some("b:c"), false, Some(listed(&["b", "c"])))]
    #[case::listed_with_gaps(None, None, Some(":b::"), false, Some(listed(&["b"])))]
    #[case::listed_in_a_pod(None, None, Some("b"), true, Some(listed(&["b"])))]
    #[case::pod(None, None, None, true, Some(CredentialSource::Pod))]
    #[case::empty_list_in_a_pod(None, None, Some(""), true, Some(CredentialSource::Pod))]
    #[case::context_in_a_pod(None, Some("x"), None, true, None)]
    #[case::nothing(None, None, None, false, None)]
    fn flags_take_precedence_over_the_environment(
        #[case] kubeconfig: Option<&str>,
        #[case] context: Option<&str>,
        #[case] variable: Option<&str>,
        #[case] pod: bool,
        #[case] expected: Option<CredentialSource>,
    ) {
        let login =
            ClientOptions { kubeconfig: kubeconfig.map(Into::into), context: context.map(str::to_owned) };
        assert_eq!(login.source(&environment(variable, pod)).ok(), expected);
    }

    #[test]
    fn without_a_kubeconfig_the_error_names_the_way_out() {
        let error = ClientOptions::default().source(&environment(None, false)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no kubeconfig found. Set --kubeconfig or KUBECONFIG, or create /home/bob/.kube/config"
        );
    }

    #[tokio::test]
    async fn an_unreadable_kubeconfig_is_named() {
        let missing = ClientOptions { kubeconfig: Some("/no/such/file".into()), context: None };
        let error = missing.connect().await.err().unwrap();
        assert_eq!(error.to_string(), "cannot read kubeconfig /no/such/file: no such file. Check the path");
        let broken = ClientOptions { kubeconfig: Some(EXISTING_FILE.into()), context: None };
        let error = broken.connect().await.err().unwrap().to_string();
        assert_eq!(
            error,
            format!(
                "cannot read kubeconfig {EXISTING_FILE}: invalid YAML: line 1 column 1: expected mapping start"
            )
        );
    }

    #[tokio::test]
    async fn a_missing_exec_plugin_is_named() {
        let file = env::temp_dir().join(format!("bellwether-exec-{}", std::process::id()));
        let text = "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: \
                    {server: 'https://127.0.0.1:9'}}]\nusers: [{name: a, user: {exec: {apiVersion: \
                    client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}}}]\n";
        std::fs::write(&file, text).unwrap();
        let connected = ClientOptions { kubeconfig: Some(file.clone()), context: None }.connect().await;
        std::fs::remove_file(&file).unwrap();
        assert_eq!(
            connected.err().unwrap().to_string(),
            "cannot get credentials for https://127.0.0.1:9/: exec plugin no-such-plugin not found. Install it, or correct \
             the user in the kubeconfig"
        );
    }

    #[rstest]
    #[case::no_such_context(
        Some("c"),
        "contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]",
        r#"context "c" not found in kubeconfig K. Set --context to one of a, b"#
    )]
    #[case::no_contexts(
        Some("c"),
        "contexts: []",
        r#"context "c" not found in kubeconfig K. Add a context: the kubeconfig has none"#
    )]
    #[case::no_current_context(
        None,
        "contexts: [{name: a, context: {cluster: a}}]",
        "no current-context in kubeconfig K. Set --context to one of a"
    )]
    #[case::no_cluster(
        None,
        "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]",
        r#"invalid kubeconfig K: cluster "b" is not defined"#
    )]
    #[case::no_server(
        None,
        "current-context: a\nclusters: [{name: b, cluster: {}}]\ncontexts: [{name: a, context: {cluster: b}}]",
        "invalid kubeconfig K: the cluster has no server"
    )]
    #[case::no_scheme(
        None,
        "current-context: a\nclusters: [{name: b, cluster: {server: '127.0.0.1:9'}}]\ncontexts: [{name: a, context: {cluster: b}}]",
        r#"invalid kubeconfig K: server "127.0.0.1:9" has no scheme. Write https://127.0.0.1:9"#
    )]
    #[tokio::test]
    async fn errors_in_a_kubeconfig_name_the_way_out(
        #[case] context: Option<&str>,
        #[case] text: &str,
        #[case] expected: &str,
    ) {
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        let login = ClientOptions { kubeconfig: None, context: context.map(str::to_owned) };
        let error = login.choose(kubeconfig, KubeconfigFiles(vec!["K".into()])).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
