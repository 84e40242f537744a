//! TLS to clients and to the API server.
//!
//! The crypto provider is explicit: the process default belongs to the program under test.

use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::pki::{Authority, Credentials, Identity};

/// Accepts clients with a certificate of the authority, and clients without a certificate.
pub fn acceptor(authority: &Authority) -> Result<TlsAcceptor> {
    let (certificates, key) = parse(&authority.server()?)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(authority)?), provider())
        .allow_unauthenticated()
        .build()
        .context("cannot verify client certificates")?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Connects to the API server with the identity of the client.
pub(super) fn connector(authority: &Authority, identity: Option<&Identity>) -> Result<TlsConnector> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(authority)?);
    let mut config = match identity {
        Some(identity) => {
            let (certificates, key) = parse(&identity.credentials)?;
            config.with_client_auth_cert(certificates, key)?
        }
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(authority: &Authority) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
    Ok(roots)
}

fn parse(credentials: &Credentials) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let certificate = CertificateDer::from_pem_slice(credentials.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(credentials.key.as_bytes())?;
    Ok((vec![certificate], key))
}
