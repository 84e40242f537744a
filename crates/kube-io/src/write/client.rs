//! Which API server is meant, and as whom.

use std::{
    env,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use http::{HeaderValue, StatusCode, Uri, header::USER_AGENT};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use thiserror::Error;

use bellwether_wire::{
    Verb,
    line::{line, root},
};

use super::call::{CallError, PATIENCE, call};

/// How long a connection may take to be there, and how long it may take to be rid of a request.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Where Kubernetes gives Pods their logins.
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// What a person, or nobody, said about the cluster to use.
///
/// The kubeconfig that is named, or else those in the variable KUBECONFIG; in a Pod, where none is named, the Pod's own
/// service account; otherwise `~/.kube/config`. A context that is named is always looked for in kubeconfigs.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// A kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// A context in it.
    pub context: Option<String>,
}

/// A client and what it was made for.
#[derive(Clone)]
pub struct Connection {
    /// The client. It tries everything once, and waits for ever for what it reads.
    pub client: Client,
    /// The namespace that is meant where none is named.
    pub namespace: String,
    /// The API server's address.
    pub address: Uri,
}

/// Why there is no client, and what to do about it.
#[derive(Debug, Error)]
pub enum LoginError {
    /// Nothing says where a cluster is.
    #[error(
        "no cluster is known: name a kubeconfig with --kubeconfig or in KUBECONFIG, or write one to {}",
        home.as_deref().unwrap_or(Path::new("~/.kube/config")).display()
    )]
    Nowhere {
        /// Where a kubeconfig would have been found.
        home: Option<PathBuf>,
    },
    /// A kubeconfig cannot be read.
    #[error("cannot read the kubeconfig {}: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// There is no such context.
    #[error("there is no context {context:?} in {files}: {}", choice(known))]
    NoSuchContext {
        /// The context.
        context: String,
        /// The kubeconfigs.
        files: KubeconfigFiles,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No context is named.
    #[error("{files} names no current context: {}", choice(known))]
    NoContext {
        /// The kubeconfigs.
        files: KubeconfigFiles,
        /// The contexts that there are.
        known: Vec<String>,
    },
    /// What a kubeconfig says cannot be used.
    #[error("cannot use {files}: {why}")]
    Unusable {
        /// The kubeconfigs.
        files: KubeconfigFiles,
        /// The reason.
        why: String,
    },
    /// The service account of this Pod cannot be used.
    #[error(
        "cannot use this Pod's service account: {why}; see that its token is mounted, or name a kubeconfig"
    )]
    NoServiceAccount {
        /// The reason.
        why: String,
    },
    /// The API server does not answer.
    #[error("no API server answers at {address}: {why}; see that the address is right and the cluster is up")]
    Unreachable {
        /// Its address.
        address: Uri,
        /// The reason.
        why: String,
    },
    /// The API server does not know us.
    #[error("the API server at {address} does not accept the login: {why}; log in to the cluster again")]
    NotAccepted {
        /// Its address.
        address: Uri,
        /// The reason.
        why: String,
    },
}

/// What to do where a context is needed.
fn choice(known: &[String]) -> String {
    if known.is_empty() { "it has none".to_owned() } else { format!("choose one of {}", known.join(", ")) }
}

/// The kubeconfigs that were read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigFiles(Vec<PathBuf>);

impl fmt::Display for KubeconfigFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self.0.iter().map(|file| file.display().to_string()).collect();
        f.write_str(&files.join(" and "))
    }
}

/// What there is besides what was said.
struct Environment {
    /// The variable KUBECONFIG.
    kubeconfig: Option<OsString>,
    /// A person's own directory.
    home: Option<PathBuf>,
    /// Whether this is a Pod with a login.
    pod: bool,
}

impl Environment {
    fn look() -> Self {
        Self {
            kubeconfig: env::var_os("KUBECONFIG"),
            home: env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            pod: env::var_os("KUBERNETES_SERVICE_HOST").is_some()
                && Path::new(SERVICE_ACCOUNT_TOKEN).exists(),
        }
    }
}

/// Where the login is.
#[derive(Debug, PartialEq, Eq)]
enum CredentialSource {
    /// In this file, which must be there.
    Named(PathBuf),
    /// In those of these files that are there.
    Listed(Vec<PathBuf>),
    /// In this Pod.
    Pod,
}

impl Login {
    /// Makes a client. The API server is not asked yet.
    pub async fn connect(&self) -> Result<Connection, LoginError> {
        let mut config = match self.source(&Environment::look())? {
            CredentialSource::Pod => Config::incluster()
                .map_err(|error| LoginError::NoServiceAccount { why: line(&error.to_string()) })?,
            CredentialSource::Named(file) => self.read(vec![file]).await?,
            CredentialSource::Listed(files) => {
                let there: Vec<PathBuf> = files.iter().filter(|file| file.exists()).cloned().collect();
                match files.into_iter().next() {
                    Some(first) if there.is_empty() => {
                        return Err(LoginError::Unreadable {
                            file: first,
                            why: "there is no such file".to_owned(),
                        });
                    }
                    _ => self.read(there).await?,
                }
            }
        };
        // Who asks decides whether and when to ask again. A watch is silent for as long as nothing happens.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_WITHIN);
        config.write_timeout = Some(CONNECT_WITHIN);
        config.read_timeout = None;
        let user_agent = HeaderValue::from_static(concat!("bellwether/", env!("CARGO_PKG_VERSION")));
        config.headers.push((USER_AGENT, user_agent));

        let (namespace, address) = (config.default_namespace.clone(), config.cluster_url.clone());
        let client = Client::try_from(config)
            .map_err(|error| LoginError::NotAccepted { address: address.clone(), why: root(&error) })?;
        Ok(Connection { client, namespace, address })
    }

    fn source(&self, surroundings: &Environment) -> Result<CredentialSource, LoginError> {
        if let Some(file) = &self.kubeconfig {
            return Ok(CredentialSource::Named(file.clone()));
        }
        let listed: Vec<PathBuf> = surroundings
            .kubeconfig
            .iter()
            .flat_map(|list| env::split_paths(list).collect::<Vec<_>>())
            .filter(|file| !file.as_os_str().is_empty())
            .collect();
        let home = surroundings.home.as_ref().map(|home| home.join(".kube/config"));
        if !listed.is_empty() {
            Ok(CredentialSource::Listed(listed))
        } else if surroundings.pod && self.context.is_none() {
            Ok(CredentialSource::Pod)
        } else {
            match home {
                Some(file) if file.exists() => Ok(CredentialSource::Named(file)),
                home => Err(LoginError::Nowhere { home }),
            }
        }
    }

    /// Reads kubeconfigs as kubectl does: what the first of them says counts.
    async fn read(&self, files: Vec<PathBuf>) -> Result<Config, LoginError> {
        let mut joined = Kubeconfig::default();
        for file in &files {
            let unreadable = |why| LoginError::Unreadable { file: file.clone(), why };
            let read = Kubeconfig::read_from(file).map_err(|error| unreadable(said(&error)))?;
            joined = joined.merge(read).map_err(|error| unreadable(said(&error)))?;
        }
        self.choose(joined, KubeconfigFiles(files)).await
    }

    async fn choose(&self, kubeconfig: Kubeconfig, files: KubeconfigFiles) -> Result<Config, LoginError> {
        let known = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| match error {
            KubeconfigError::CurrentContextNotSet => LoginError::NoContext { files, known },
            KubeconfigError::LoadContext(context) => LoginError::NoSuchContext { context, files, known },
            KubeconfigError::LoadClusterOfContext(cluster) => {
                LoginError::Unusable { files, why: format!("there is no cluster {cluster:?} in it") }
            }
            KubeconfigError::MissingClusterUrl => {
                LoginError::Unusable { files, why: "its cluster has no server".to_owned() }
            }
            error => LoginError::Unusable { files, why: line(&error.to_string()) },
        })
    }
}

/// The reason alone: the file is named by us.
fn said(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) if error.kind() == std::io::ErrorKind::NotFound => {
            "there is no such file".to_owned()
        }
        KubeconfigError::ReadConfig(error, _) => line(&error.to_string()),
        KubeconfigError::Parse(error) => line(&error.to_string()),
        error => line(&error.to_string()),
    }
}

impl Connection {
    /// Makes sure that the API server is there and knows us.
    pub async fn check(&self) -> Result<(), LoginError> {
        let address = self.address.clone();
        match call(&self.client, Verb::Get.request("/version", Vec::new()), PATIENCE).await {
            Ok(_) => Ok(()),
            // Who may not ask for the version is known all the same.
            Err(CallError::Api(error)) if error.code == StatusCode::FORBIDDEN => Ok(()),
            Err(CallError::Api(error)) if error.code == StatusCode::UNAUTHORIZED => {
                Err(LoginError::NotAccepted { address, why: error.to_string() })
            }
            Err(CallError::NoAnswer(kube::Error::Auth(error))) => {
                Err(LoginError::NotAccepted { address, why: root(&error) })
            }
            // That there is no answer is said already.
            Err(CallError::NoAnswer(error)) => Err(LoginError::Unreachable { address, why: root(&error) }),
            Err(CallError::Timeout(within)) => {
                Err(LoginError::Unreachable { address, why: format!("no answer within {within:?}") })
            }
            Err(error) => Err(LoginError::Unreachable { address, why: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The manifest of this crate stands for a file that is there.
    const THERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

    fn surroundings(kubeconfig: Option<&str>, pod: bool) -> Environment {
        Environment { kubeconfig: kubeconfig.map(Into::into), home: Some("/nowhere".into()), pod }
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
    fn what_was_said_comes_first(
        #[case] kubeconfig: Option<&str>,
        #[case] context: Option<&str>,
        #[case] variable: Option<&str>,
        #[case] pod: bool,
        #[case] expected: Option<CredentialSource>,
    ) {
        let login = Login { kubeconfig: kubeconfig.map(Into::into), context: context.map(str::to_owned) };
        assert_eq!(login.source(&surroundings(variable, pod)).ok(), expected);
    }

    #[test]
    fn where_nothing_is_known_the_way_out_is_said() {
        let error = Login::default().source(&surroundings(None, false)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no cluster is known: name a kubeconfig with --kubeconfig or in KUBECONFIG, or write one to \
             /nowhere/.kube/config"
        );
    }

    #[tokio::test]
    async fn a_file_that_is_none_is_named() {
        let missing = Login { kubeconfig: Some("/no/such/file".into()), context: None };
        let error = missing.connect().await.err().unwrap();
        assert_eq!(error.to_string(), "cannot read the kubeconfig /no/such/file: there is no such file");
        let broken = Login { kubeconfig: Some(THERE.into()), context: None };
        let error = broken.connect().await.err().unwrap().to_string();
        assert!(error.starts_with(&format!("cannot read the kubeconfig {THERE}: ")), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[rstest]
    #[case::no_such_context(
        Some("c"),
        "contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]",
        r#"there is no context "c" in K: choose one of a, b"#
    )]
    #[case::none_at_all(Some("c"), "contexts: []", r#"there is no context "c" in K: it has none"#)]
    #[case::no_current_one(
        None,
        "contexts: [{name: a, context: {cluster: a}}]",
        "K names no current context: choose one of a"
    )]
    #[case::no_cluster(
        None,
        "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]",
        r#"cannot use K: there is no cluster "b" in it"#
    )]
    #[case::no_server(
        None,
        "current-context: a\nclusters: [{name: b, cluster: {}}]\ncontexts: [{name: a, context: {cluster: b}}]",
        "cannot use K: its cluster has no server"
    )]
    #[tokio::test]
    async fn what_is_wrong_with_a_kubeconfig_is_said(
        #[case] context: Option<&str>,
        #[case] text: &str,
        #[case] expected: &str,
    ) {
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        let login = Login { kubeconfig: None, context: context.map(str::to_owned) };
        let error = login.choose(kubeconfig, KubeconfigFiles(vec!["K".into()])).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
