//! Requests to a running controller over HTTP.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{
    Request, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Limited};
use kube::{Client, Config, client::Body};
use thiserror::Error;
use tokio::time::timeout;

use crate::client::{cause, with_settings};

/// In bytes.
const MAX_RESPONSE: usize = 64 << 20;

#[derive(Debug, Error)]
pub enum ControllerError {
    #[error("invalid --controller {0:?}: use http://ADDRESS:PORT or https://ADDRESS:PORT")]
    InvalidAddress(String),
    #[error(
        "a token is not sent over http to {0}: it could be read on the way. Use https, or kubectl port-forward and \
         --controller http://127.0.0.1:PORT"
    )]
    InsecureToken(String),
    #[error(
        "invalid token: it has a line break or another control character. Write only the token to the file"
    )]
    InvalidToken,
    #[error("cannot reach a controller at {address}: {why}. Check the address, or run kubectl port-forward")]
    Unreachable { address: String, why: String },
}

/// The controller at an address, and the token to send to it.
pub struct ControllerClient {
    client: Client,
    /// Without a slash at the end.
    address: String,
    token: Option<String>,
}

impl ControllerClient {
    /// Sends no request. Must be called within a tokio runtime.
    pub fn new(address: &str, token: Option<&str>) -> Result<Self, ControllerError> {
        let invalid = || ControllerError::InvalidAddress(address.to_owned());
        let address = address.trim_end_matches('/');
        let uri: Uri = address.parse().map_err(|_| invalid())?;
        let is_http = match uri.scheme_str() {
            Some("http") => true,
            Some("https") => false,
            _ => return Err(invalid()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(invalid)?.to_owned();
        let token = token.map(str::trim).filter(|token| !token.is_empty());
        if is_http && token.is_some() && !is_loopback(&host) {
            return Err(ControllerError::InsecureToken(address.to_owned()));
        }
        if token.is_some_and(|token| token.chars().any(char::is_control)) {
            return Err(ControllerError::InvalidToken);
        }
        let client = Client::try_from(with_settings(Config::new(uri))).map_err(|_| invalid())?;
        Ok(Self { client, address: address.to_owned(), token: token.map(str::to_owned) })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub async fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<(StatusCode, Bytes), ControllerError> {
        let unreachable = |why: String| ControllerError::Unreachable { address: self.address.clone(), why };
        let mut request = Request::post(path).header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Body::from(body)).map_err(|error| unreachable(error.to_string()))?;
        let exchange = async {
            let response = self.client.send(request).await.map_err(|error| unreachable(cause(&error)))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE).collect().await;
            let body = body.map_err(|error| unreachable(cause(&*error)))?;
            Ok((parts.status, body.to_bytes()))
        };
        let silent = |_| unreachable(format!("no response within {within:?}"));
        timeout(within, exchange).await.map_err(silent)?
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::loopback("http://127.0.0.1:8080", true)]
    #[case::ipv6("http://[::1]:8080", true)]
    #[case::localhost("http://localhost:8080/", true)]
    #[case::https("https://bellwether.example.com", true)]
    #[case::elsewhere("http://10.0.0.1:8080", false)]
    #[case::a_name("http://localhost.example.com:8080", false)]
    #[tokio::test]
    async fn a_token_is_not_sent_in_clear_text_over_a_network(#[case] address: &str, #[case] is_sent: bool) {
        let with_token = ControllerClient::new(address, Some("secret"));
        assert_eq!(!matches!(with_token, Err(ControllerError::InsecureToken(_))), is_sent);
        assert!(!matches!(ControllerClient::new(address, None), Err(ControllerError::InsecureToken(_))));
    }

    #[rstest]
    #[case::no_scheme("127.0.0.1:8080")]
    #[case::other_scheme("ftp://127.0.0.1")]
    #[case::nothing("")]
    #[case::no_host("http://")]
    #[tokio::test]
    async fn invalid_addresses(#[case] address: &str) {
        assert!(matches!(ControllerClient::new(address, None), Err(ControllerError::InvalidAddress(_))));
    }
}
