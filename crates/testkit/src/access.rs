//! Address and credentials of one user for one API server: the content of a kubeconfig.

use std::{fs, net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tempfile::TempPath;

use crate::{
    guardian::Guardian,
    pki::{Authority, Identity},
};

#[derive(Clone)]
pub struct Access {
    /// Also the name of the context in the kubeconfig.
    pub cluster: String,
    /// The address of the API server, or of a proxy in front of it.
    pub address: SocketAddr,
    /// The authority that signed the server's certificate.
    pub authority: Arc<Authority>,
    pub login: Login,
}

#[derive(Clone)]
pub enum Login {
    /// A client certificate.
    Certificate(Box<Identity>),
    /// A bearer token, as service accounts use it.
    Token {
        /// The user that the API server reads from the token.
        user: String,
        token: String,
    },
}

impl Access {
    /// The same user at another address, such as that of a fault proxy.
    #[must_use]
    pub fn via(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// The user name in RBAC subjects.
    pub fn user(&self) -> &str {
        match &self.login {
            Login::Certificate(identity) => &identity.user,
            Login::Token { user, .. } => user,
        }
    }

    /// The kubeconfig as JSON, which is valid YAML.
    pub fn kubeconfig(&self) -> String {
        self.document().to_string()
    }

    /// Writes the kubeconfig to a file, which is removed when the returned path is dropped.
    pub fn kubeconfig_file(&self) -> Result<TempPath> {
        let directory = Guardian::get()?.directory();
        let file = tempfile::Builder::new().suffix(".kubeconfig").tempfile_in(directory)?;
        fs::write(file.path(), self.kubeconfig())?;
        Ok(file.into_temp_path())
    }

    /// A client for this user on the current runtime.
    ///
    /// It does not retry, so a test sees every error of the API server or of a fault. Create one for each
    /// test: the connections of a client end with the runtime that opened them.
    pub async fn client(&self) -> Result<Client> {
        let mut config = self.config().await?;
        config.default_retry = false;
        Client::try_from(config).context("cannot create a Kubernetes client")
    }

    pub async fn config(&self) -> Result<Config> {
        let kubeconfig: Kubeconfig = serde_json::from_value(self.document())?;
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .context("the kubeconfig of the test cluster is invalid")
    }

    fn document(&self) -> Value {
        let user = match &self.login {
            Login::Certificate(identity) => json!({
                "client-certificate-data": BASE64.encode(&identity.credentials.certificate),
                "client-key-data": BASE64.encode(&identity.credentials.key),
            }),
            Login::Token { token, .. } => json!({ "token": token }),
        };
        // KUBECONFIG may list several of these files: user names must be unique across clusters.
        let user_name = format!("{}@{}", self.user(), self.cluster);
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": self.cluster,
                "cluster": {
                    "server": format!("https://{}", self.address),
                    "certificate-authority-data": BASE64.encode(self.authority.certificate()),
                },
            }],
            "users": [{ "name": user_name, "user": user }],
            "contexts": [{ "name": self.cluster, "context": { "cluster": self.cluster, "user": user_name } }],
            "current-context": self.cluster,
        })
    }
}
