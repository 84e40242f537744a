//! Certificates of a test cluster: one authority, the servers that it vouches for, and the users whom it knows.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::Mutex,
};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

/// The certificate authority of one cluster.
///
/// It remembers every client certificate that it issued, so that a proxy which ends a client's TLS connection can go
/// on to the API server as that client.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    clients: Mutex<HashMap<Vec<u8>, Identity>>,
}

/// A certificate and its private key, both as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// A user of a cluster, as its client certificate names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name: the certificate's common name.
    pub user: String,
    /// The user's group: the certificate's organisation. One at most, as the library that writes certificates keeps
    /// only one.
    pub group: Option<String>,
    /// What proves it.
    pub credentials: Credentials,
}

impl Authority {
    /// Makes a new authority with a key of its own.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name("bellwether-testkit", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("cannot make the key of a certificate authority")?;
        let certificate = params.self_signed(&key).context("cannot sign a certificate authority")?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate, clients: Mutex::default() })
    }

    /// The authority's own certificate as PEM: what clients must trust.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Credentials for a server on loopback, reachable under the names of an API server.
    pub fn server(&self) -> Result<Credentials> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(String::from))?;
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        params.distinguished_name = distinguished_name("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok(self.sign(params)?.1)
    }

    /// A user with a client certificate, known to the cluster at once; what they may do is for RBAC to say.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (der, credentials) = self.sign(params)?;
        let identity = Identity { user: user.to_owned(), group: group.map(str::to_owned), credentials };
        crate::lock(&self.clients).insert(der, identity.clone());
        Ok(identity)
    }

    /// The user to whom this authority issued the client certificate with these DER bytes.
    pub fn client_with_certificate(&self, der: &[u8]) -> Option<Identity> {
        crate::lock(&self.clients).get(der).cloned()
    }

    fn sign(&self, mut params: CertificateParams) -> Result<(Vec<u8>, Credentials)> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let key = KeyPair::generate().context("cannot make a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("cannot sign a certificate")?;
        Ok((
            certificate.der().to_vec(),
            Credentials { certificate: certificate.pem(), key: key.serialize_pem() },
        ))
    }
}

/// The subject that Kubernetes reads: the common name is the user, the organisation a group.
fn distinguished_name(common_name: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name
}
