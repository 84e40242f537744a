//! How to reach an API server, and as whom: what a kubeconfig says.

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

/// The way of one user to one API server.
#[derive(Clone)]
pub struct Access {
    /// The cluster's name, by which people and contexts call it.
    pub cluster: String,
    /// Where the API server, or a proxy before it, listens.
    pub address: SocketAddr,
    /// Who vouches for that server.
    pub authority: Arc<Authority>,
    /// Who is calling.
    pub login: Login,
}

/// How a user proves who they are.
#[derive(Clone)]
pub enum Login {
    /// By a client certificate.
    Certificate(Box<Identity>),
    /// By a bearer token, as service accounts do.
    Token {
        /// The user's name, as the API server will understand the token.
        user: String,
        /// The token itself.
        token: String,
    },
}

impl Access {
    /// The same user on the way through another address: a fault proxy's.
    #[must_use]
    pub fn via(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// The user's name, as RBAC knows it.
    pub fn user(&self) -> &str {
        match &self.login {
            Login::Certificate(identity) => &identity.user,
            Login::Token { user, .. } => user,
        }
    }

    /// The kubeconfig as text: JSON, which every reader of YAML understands.
    pub fn kubeconfig(&self) -> String {
        self.document().to_string()
    }

    /// The kubeconfig as a file, for programs that are run. It goes when what this gives back is dropped.
    pub fn kubeconfig_file(&self) -> Result<TempPath> {
        let directory = Guardian::get()?.directory();
        let file = tempfile::Builder::new().suffix(".kubeconfig").tempfile_in(directory)?;
        fs::write(file.path(), self.kubeconfig())?;
        Ok(file.into_temp_path())
    }

    /// A client for this user on the current runtime.
    ///
    /// It does not repeat failed calls, so that a test sees what the API server, or a fault, answered. Make one for
    /// every test: a client's connections end with the runtime that made them.
    pub async fn client(&self) -> Result<Client> {
        let mut config = self.config().await?;
        config.default_retry = false;
        Client::try_from(config).context("cannot make a Kubernetes client")
    }

    /// The configuration for clients of other makes.
    pub async fn config(&self) -> Result<Config> {
        let kubeconfig: Kubeconfig = serde_json::from_value(self.document())?;
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .context("cannot use the kubeconfig of a test cluster")
    }

    fn document(&self) -> Value {
        let user = match &self.login {
            Login::Certificate(identity) => json!({
                "client-certificate-data": BASE64.encode(&identity.credentials.certificate),
                "client-key-data": BASE64.encode(&identity.credentials.key),
            }),
            Login::Token { token, .. } => json!({ "token": token }),
        };
        // Several kubeconfigs can be joined in one KUBECONFIG: nothing in them may have the same name.
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
