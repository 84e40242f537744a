//! The command lines of the control plane's processes, and the files that they refer to.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rcgen::KeyPair;

use crate::{access::Access, pki::Authority};

pub(crate) const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";

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
    pub(crate) fn write(directory: &Path, authority: &Authority, admin: &Access) -> Result<Self> {
        let server = authority.server()?;
        let service_account_key =
            KeyPair::generate().context("cannot generate the key of the service accounts")?;
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
        // Tests must not wait for disks, and their data need not survive a power failure.
        option("unsafe-no-fsync", true),
        // `Port` holds the port with a socket of its own.
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
        // `Fault::Past` reads old resourceVersions, which must not be compacted.
        option("etcd-compaction-interval", 0),
        option("bind-address", own.ip()),
        option("secure-port", own.port()),
        option("permit-port-sharing", true),
        option("advertise-address", own.ip()),
        // Test clients do not use the Service `kubernetes`.
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
        // The plugin rejects Pods until the controller manager has created the default service account.
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
        // The default rate limits would slow down tests that wait for these controllers.
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
