//! The command lines of a control plane's processes, and the files that they name.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rcgen::KeyPair;

use crate::{access::Access, pki::Authority};

/// The file with the administrator's kubeconfig in a cluster's directory.
pub(crate) const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";

/// The files of one cluster.
pub(crate) struct Layout {
    data: PathBuf,
    authority: PathBuf,
    server_certificate: PathBuf,
    server_key: PathBuf,
    service_account_key: PathBuf,
    service_account_public_key: PathBuf,
    admin_kubeconfig: PathBuf,
}

impl Layout {
    /// Writes the files into the cluster's directory.
    pub(crate) fn write(directory: &Path, authority: &Authority, admin: &Access) -> Result<Self> {
        let server = authority.server()?;
        let service_account_key =
            KeyPair::generate().context("cannot make the key of the service accounts")?;
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        };
        Ok(Self {
            data: directory.join("etcd"),
            authority: write("authority.crt", authority.certificate())?,
            server_certificate: write("server.crt", &server.certificate)?,
            server_key: write("server.key", &server.key)?,
            service_account_key: write("service-accounts.key", &service_account_key.serialize_pem())?,
            service_account_public_key: write("service-accounts.pub", &service_account_key.public_key_pem())?,
            admin_kubeconfig: write(ADMIN_KUBECONFIG, &admin.kubeconfig())?,
        })
    }
}

pub(crate) fn etcd(layout: &Layout, clients: SocketAddr, peers: SocketAddr) -> Vec<String> {
    vec![
        option("data-dir", layout.data.display()),
        option("listen-client-urls", format!("http://{clients}")),
        option("advertise-client-urls", format!("http://{clients}")),
        option("listen-peer-urls", format!("http://{peers}")),
        option("initial-advertise-peer-urls", format!("http://{peers}")),
        option("initial-cluster", format!("default=http://{peers}")),
        // Test data need not survive a power cut, and tests must not wait for disks.
        option("unsafe-no-fsync", true),
        // The port is held for it by another socket.
        option("socket-reuse-port", true),
        option("log-level", "warn"),
    ]
}

pub(crate) fn api_server(
    layout: &Layout,
    etcd: SocketAddr,
    own: SocketAddr,
    controllers: bool,
) -> Vec<String> {
    let mut arguments = vec![
        option("etcd-servers", format!("http://{etcd}")),
        // A test may look at the past of its cluster, however long it takes.
        option("etcd-compaction-interval", 0),
        option("bind-address", own.ip()),
        option("secure-port", own.port()),
        option("permit-port-sharing", true),
        option("advertise-address", own.ip()),
        // Nothing in a test cluster reaches the API server through its Service.
        option("endpoint-reconciler-type", "none"),
        option("client-ca-file", layout.authority.display()),
        option("tls-cert-file", layout.server_certificate.display()),
        option("tls-private-key-file", layout.server_key.display()),
        option("authorization-mode", "RBAC"),
        option("service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
        option("service-account-signing-key-file", layout.service_account_key.display()),
        option("service-account-key-file", layout.service_account_public_key.display()),
        option("service-cluster-ip-range", "10.0.0.0/16"),
        option("profiling", false),
    ];
    if !controllers {
        // It waits for default service accounts, which nobody creates here.
        arguments.push(option("disable-admission-plugins", "ServiceAccount"));
    }
    arguments
}

pub(crate) fn controller_manager(layout: &Layout) -> Vec<String> {
    vec![
        option("kubeconfig", layout.admin_kubeconfig.display()),
        option("leader-elect", false),
        option("secure-port", 0),
        option("service-account-private-key-file", layout.service_account_key.display()),
        option("root-ca-file", layout.authority.display()),
        // Tests wait for these controllers; the default limits are made for clusters with other tenants.
        option("kube-api-qps", 200),
        option("kube-api-burst", 400),
    ]
}

pub(crate) fn scheduler(layout: &Layout) -> Vec<String> {
    vec![
        option("kubeconfig", layout.admin_kubeconfig.display()),
        option("leader-elect", false),
        option("secure-port", 0),
        option("kube-api-qps", 200),
        option("kube-api-burst", 400),
    ]
}

pub(crate) fn kwok(layout: &Layout, stages: &Path) -> Vec<String> {
    vec![
        option("kubeconfig", layout.admin_kubeconfig.display()),
        option("config", stages.display()),
        option("manage-all-nodes", true),
        option("node-lease-duration-seconds", 40),
        option("cidr", "10.1.0.0/16"),
    ]
}

fn option(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
