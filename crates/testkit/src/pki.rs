//! Certificates of a test cluster: a certificate authority, server certificates and client certificates.

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
/// It keeps every client certificate that it issued, with the key: a proxy that terminates TLS connects to
/// the API server as the same client.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    clients: Mutex<HashMap<Vec<u8>, Identity>>,
}

/// A certificate and its private key, both as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub certificate: String,
    pub key: String,
}

/// A user with a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The common name of the certificate.
    pub user: String,
    /// The organisation of the certificate. At most one: rcgen keeps only one.
    pub group: Option<String>,
    pub credentials: Credentials,
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name("bellwether-testkit", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("cannot generate the key of the certificate authority")?;
        let certificate = params.self_signed(&key).context("cannot sign a certificate authority")?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate, clients: Mutex::default() })
    }

    /// The root certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Credentials for a server on loopback with the DNS names of an API server.
    pub fn server(&self) -> Result<Credentials> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(String::from))?;
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        params.distinguished_name = distinguished_name("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok(self.sign(params)?.1)
    }

    /// A new user with a client certificate. RBAC decides what the user may do.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (der, credentials) = self.sign(params)?;
        let identity = Identity { user: user.to_owned(), group: group.map(str::to_owned), credentials };
        crate::lock(&self.clients).insert(der, identity.clone());
        Ok(identity)
    }

    /// Looks up the user by the DER bytes of the client certificate.
    pub fn client_with_certificate(&self, der: &[u8]) -> Option<Identity> {
        crate::lock(&self.clients).get(der).cloned()
    }

    fn sign(&self, mut params: CertificateParams) -> Result<(Vec<u8>, Credentials)> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let key = KeyPair::generate().context("cannot generate a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("cannot sign a certificate")?;
        Ok((
            certificate.der().to_vec(),
            Credentials { certificate: certificate.pem(), key: key.serialize_pem() },
        ))
    }
}

/// Kubernetes reads the user from the common name and a group from the organisation.
fn distinguished_name(common_name: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name
}
