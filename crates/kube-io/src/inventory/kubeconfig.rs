//! Kubeconfigs of clusters, and what is refused in those that come from the API server.
//!
//! A user who may write Secrets in the namespace of the controller, or ClusterProfiles, must not be able to run programs
//! in its Pod, to read its files, or to make it send credentials without protection.

use std::sync::Arc;

use bellwether_model::{name::MAX_NAME, text::one_line};
use bellwether_wire::error_text::{bounded_line, root_cause};
use http::Uri;
use kube::{
    Config,
    config::{
        AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo,
        NamedCluster, NamedContext,
    },
};
use thiserror::Error;

use crate::{client_switch::Access, cluster_client::cluster_client};

/// Why a kubeconfig or a ClusterProfile cannot be used. No text quotes credentials.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AccessError {
    #[error("key kubeconfig missing. Put the kubeconfig under this key")]
    NoKey,
    #[error("invalid YAML{0}. Put a kubeconfig under the key kubeconfig")]
    InvalidYaml(String),
    #[error("no current-context. Set it to one of {0}")]
    NoCurrentContext(String),
    #[error("context {0:?} not found. Use one of {1}")]
    NoSuchContext(String, String),
    #[error("{0} {1:?} is not defined. Define it, or correct the context")]
    Undefined(&'static str, String),
    #[error("server missing. Set it to the address of the API server, such as https://10.0.0.1:6443")]
    NoServer,
    #[error("invalid server {0:?}. Use an address such as https://10.0.0.1:6443")]
    InvalidServer(String),
    #[error(
        "exec plugins are refused: they would run in the Pod of the controller. Use a token or a client certificate, \
         or register the cluster with --cluster"
    )]
    ExecPlugin,
    #[error("auth-provider is refused. Use a token, a client certificate or, with --cluster, an exec plugin")]
    AuthProvider,
    #[error("{0} is refused: it would read a file of the controller. Put the content of the file into {1}")]
    File(&'static str, &'static str),
    #[error(
        "insecure-skip-tls-verify is refused: credentials could be stolen. Set certificate-authority-data, or start the \
         controller with --insecure-clusters"
    )]
    SkipsTlsVerify,
    #[error(
        "server {0} is refused: http sends credentials without encryption. Use https, or start the controller with \
         --insecure-clusters"
    )]
    NoTls(String),
    #[error("proxy-url is not supported. Remove it, and use an address that the controller can reach")]
    Proxy,
    #[error("invalid certificates or credentials: {0}. Correct the kubeconfig")]
    InvalidCredentials(String),
    #[error("exec plugin without a command. Set command")]
    NoExecCommand,
    #[error("exec plugin {0:?} not found. Install it where the controller runs, or correct its command")]
    NoExecPlugin(String),
    #[error("exec plugin {0:?} failed: {1}. Run it by hand to see why")]
    ExecFailed(String, String),
    #[error(
        "no access provider of the ClusterProfile is in --cluster-profile-providers: it offers {0}, and the file has {1}. \
         Add one to the file"
    )]
    NoProvider(String, String),
    #[error("extension {0} is not {1}. Correct the ClusterProfile")]
    InvalidExtension(&'static str, &'static str),
    #[error("cannot read {0}: {1}. Check --cluster")]
    UnreadableFile(String, String),
}

/// The server and the user of one context.
#[derive(Clone, Debug)]
pub(super) struct Selected {
    pub(super) cluster: Cluster,
    pub(super) user: AuthInfo,
}

/// The kubeconfig in a Secret.
pub(super) fn from_secret(kubeconfig: &[u8], allow_insecure: bool) -> Result<Selected, AccessError> {
    let selected = select(parse(kubeconfig)?, None)?;
    check_user(&selected.user)?;
    check_cluster(&selected.cluster, allow_insecure)?;
    Ok(selected)
}

pub(super) fn parse(kubeconfig: &[u8]) -> Result<Kubeconfig, AccessError> {
    let text =
        std::str::from_utf8(kubeconfig).map_err(|_| AccessError::InvalidYaml(": not UTF-8".to_owned()))?;
    Kubeconfig::from_yaml(text).map_err(|error| {
        // Its message quotes the kubeconfig.
        let place = match &error {
            KubeconfigError::Parse(error) => error.location(),
            _ => None,
        };
        let place = place.map(|place| format!(" in line {}, column {}", place.line(), place.column()));
        AccessError::InvalidYaml(place.unwrap_or_default())
    })
}

/// The context of this name; `None` for the current-context.
pub(super) fn select(kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Selected, AccessError> {
    let known = || {
        let names: Vec<_> = kubeconfig.contexts.iter().map(|context| shown(&context.name)).collect();
        if names.is_empty() { "its contexts, of which there are none".to_owned() } else { names.join(", ") }
    };
    let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let name = context.or(current).ok_or_else(|| AccessError::NoCurrentContext(known()))?;
    let found = kubeconfig.contexts.iter().find(|context| context.name == name);
    let Some(context) = found.and_then(|context| context.context.clone()) else {
        return Err(AccessError::NoSuchContext(shown(name), known()));
    };
    let Context { cluster, user, .. } = context;
    let found = kubeconfig.clusters.into_iter().find(|it| it.name == cluster).and_then(|it| it.cluster);
    let cluster = found.ok_or_else(|| AccessError::Undefined("cluster", shown(&cluster)))?;
    let user = match user.filter(|user| !user.is_empty()) {
        Some(name) => {
            let found = kubeconfig.auth_infos.into_iter().find(|it| it.name == name);
            found.and_then(|it| it.auth_info).ok_or_else(|| AccessError::Undefined("user", shown(&name)))?
        }
        None => AuthInfo::default(),
    };
    Ok(Selected { cluster, user })
}

/// A name in a message.
fn shown(name: &str) -> String {
    one_line(name, MAX_NAME).into_owned()
}

fn check_user(user: &AuthInfo) -> Result<(), AccessError> {
    if user.exec.is_some() {
        return Err(AccessError::ExecPlugin);
    }
    if user.auth_provider.is_some() {
        return Err(AccessError::AuthProvider);
    }
    let files = [
        (&user.token_file, "tokenFile", "token"),
        (&user.client_certificate, "client-certificate", "client-certificate-data"),
        (&user.client_key, "client-key", "client-key-data"),
    ];
    files.into_iter().try_for_each(|(file, field, instead)| check_file(file.as_deref(), field, instead))
}

/// The part of a kubeconfig that a ClusterProfile has, too.
pub(super) fn check_cluster(cluster: &Cluster, allow_insecure: bool) -> Result<(), AccessError> {
    let authority = cluster.certificate_authority.as_deref();
    check_file(authority, "certificate-authority", "certificate-authority-data")?;
    if cluster.insecure_skip_tls_verify == Some(true) && !allow_insecure {
        return Err(AccessError::SkipsTlsVerify);
    }
    let server = server(cluster)?;
    if server.scheme_str() != Some("https") && !allow_insecure {
        return Err(AccessError::NoTls(shown(&server.to_string())));
    }
    Ok(())
}

fn check_file(file: Option<&str>, field: &'static str, instead: &'static str) -> Result<(), AccessError> {
    if file.is_some_and(|file| !file.is_empty()) { Err(AccessError::File(field, instead)) } else { Ok(()) }
}

fn server(cluster: &Cluster) -> Result<Uri, AccessError> {
    let text = cluster.server.as_deref().filter(|server| !server.is_empty()).ok_or(AccessError::NoServer)?;
    let server = text.parse::<Uri>().ok();
    let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("https" | "http")) && uri.host().is_some();
    server.filter(is_http).ok_or_else(|| AccessError::InvalidServer(shown(text)))
}

/// Must be called within a tokio runtime.
pub(super) async fn access(selected: Selected, fingerprint: u64) -> Result<Access, AccessError> {
    let server = server(&selected.cluster)?;
    let Selected { cluster, user } = selected;
    if cluster.proxy_url.as_deref().is_some_and(|url| !url.is_empty()) {
        return Err(AccessError::Proxy);
    }
    let name = || "selected".to_owned();
    let context = Context { cluster: name(), user: Some(name()), ..Context::default() };
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster { name: name(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: name(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: name(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(name()),
        ..Kubeconfig::default()
    };
    let invalid =
        |error: &dyn std::error::Error| AccessError::InvalidCredentials(bounded_line(&root_cause(error)));
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| invalid(&error))?;
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        return Err(AccessError::InvalidCredentials("no certificate in certificate-authority".to_owned()));
    }
    let client = cluster_client(config).map_err(|error| invalid(&*error))?;
    Ok(Access { client, server: server.to_string().into(), fingerprint, rejected: Arc::default() })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> String {
        format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}, {{name: b, context: \
             {{cluster: b, user: b}}}}], clusters: [{{name: a, cluster: {{{cluster}}}}}, {{name: b, cluster: {{server: \
             'https://b'}}}}], users: [{{name: a, user: {{{user}}}}}, {{name: b, user: {{exec: {{command: x}}}}}}]}}"
        )
    }

    const SERVER: &str = "server: 'https://10.0.0.1:6443'";

    /// Only the current context counts: the user of the other one has an exec plugin.
    #[rstest]
    #[case::token(SERVER, "token: t")]
    #[case::anonymous(SERVER, "")]
    #[case::empty_paths(
        "server: 'https://10.0.0.1:6443', certificate-authority: ''",
        "tokenFile: '', token: t"
    )]
    #[case::verifies("server: 'https://10.0.0.1:6443', insecure-skip-tls-verify: false", "token: t")]
    fn accepted(#[case] cluster: &str, #[case] user: &str) {
        let selected = from_secret(kubeconfig(cluster, user).as_bytes(), false).unwrap();
        assert_eq!(selected.cluster.server.as_deref(), Some("https://10.0.0.1:6443"));
    }

    #[rstest]
    #[case::exec(SERVER, "exec: {command: aws}", AccessError::ExecPlugin)]
    #[case::auth_provider(SERVER, "auth-provider: {name: gcp, config: {}}", AccessError::AuthProvider)]
    #[case::token_file(SERVER, "tokenFile: /etc/passwd", AccessError::File("tokenFile", "token"))]
    #[case::certificate(
        SERVER,
        "client-certificate: /etc/passwd",
        AccessError::File("client-certificate", "client-certificate-data")
    )]
    #[case::key(SERVER, "client-key: /etc/passwd", AccessError::File("client-key", "client-key-data"))]
    #[case::authority(
        "server: 'https://a', certificate-authority: /etc/passwd",
        "token: t",
        AccessError::File("certificate-authority", "certificate-authority-data")
    )]
    #[case::insecure("server: 'https://a', insecure-skip-tls-verify: true", "", AccessError::SkipsTlsVerify)]
    #[case::http("server: 'http://a'", "token: t", AccessError::NoTls("http://a/".to_owned()))]
    #[case::no_server("", "token: t", AccessError::NoServer)]
    #[case::no_scheme("server: '10.0.0.1:6443'", "", AccessError::InvalidServer("10.0.0.1:6443".to_owned()))]
    #[case::file("server: 'file:///etc/passwd'", "", AccessError::InvalidServer("file:///etc/passwd".to_owned()))]
    fn refused(#[case] cluster: &str, #[case] user: &str, #[case] expected: AccessError) {
        assert_eq!(from_secret(kubeconfig(cluster, user).as_bytes(), false).err(), Some(expected));
    }

    #[rstest]
    #[case("server: 'https://a', insecure-skip-tls-verify: true")]
    #[case("server: 'http://a'")]
    fn insecure_clusters_need_a_flag(#[case] cluster: &str) {
        assert!(from_secret(kubeconfig(cluster, "token: t").as_bytes(), true).is_ok());
        let with_exec = kubeconfig(cluster, "exec: {command: aws}");
        assert_eq!(from_secret(with_exec.as_bytes(), true).err(), Some(AccessError::ExecPlugin));
    }

    #[rstest]
    #[case::empty("", "no current-context. Set it to one of its contexts, of which there are none")]
    #[case::number("7", "invalid YAML in line 1, column 1. Put a kubeconfig under the key kubeconfig")]
    #[case::secret_text(
        "users: hunter2",
        "invalid YAML in line 1, column 8. Put a kubeconfig under the key kubeconfig"
    )]
    #[case::binary(
        "\u{0}\u{1}",
        "invalid YAML in line 1, column 1. Put a kubeconfig under the key kubeconfig"
    )]
    #[case::no_current(
        "contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]",
        "no current-context. Set it to one of a, b"
    )]
    #[case::no_context(
        "{current-context: x, contexts: [{name: a, context: {cluster: a}}]}",
        r#"context "x" not found. Use one of a"#
    )]
    #[case::no_cluster(
        "{current-context: a, contexts: [{name: a, context: {cluster: x}}]}",
        r#"cluster "x" is not defined. Define it, or correct the context"#
    )]
    #[case::no_user(
        "{current-context: a, contexts: [{name: a, context: {cluster: a, user: x}}], clusters: [{name: a, cluster: \
         {server: 'https://a'}}]}",
        r#"user "x" is not defined. Define it, or correct the context"#
    )]
    fn rubbish(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(from_secret(text.as_bytes(), false).unwrap_err().to_string(), expected);
    }

    #[rstest]
    #[case::base64(SERVER, "client-certificate-data: '%', client-key-data: '%'")]
    #[case::no_key(SERVER, "client-certificate-data: aHVudGVyMg==, client-key-data: aHVudGVyMg==")]
    #[case::authority("server: 'https://a', certificate-authority-data: aHVudGVyMg==", "token: t")]
    #[tokio::test]
    async fn invalid_credentials(#[case] cluster: &str, #[case] user: &str) {
        let selected = from_secret(kubeconfig(cluster, user).as_bytes(), false).unwrap();
        let error = access(selected, 0).await.err().unwrap().to_string();
        assert!(error.starts_with("invalid certificates or credentials: "), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
