//! Who may read what: the API server decides, by the bearer token of the request.
//!
//! What a user may not read looks like what does not exist. A handler calls [`Guard::check`] before it looks
//! anything up, and answers [`Denied::NotAllowed`] exactly as it answers for an object that is not there.

use std::{
    collections::HashMap,
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json,
    http::{
        HeaderMap, StatusCode,
        header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE},
        uri::Authority,
    },
    response::{IntoResponse, Response},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How long the API server's decision holds. A right that is revoked takes effect after this time.
const ALLOWED_FOR: Duration = Duration::from_secs(30);

/// A right that is granted takes effect after this time.
const DENIED_FOR: Duration = Duration::from_secs(5);

const MAX_DECISIONS: usize = 4096;

/// What a request wants to read, as in a SubjectAccessReview. Empty for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// `get` for a named object, otherwise `list`.
    pub verb: &'static str,
    pub group: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
}

impl Access {
    /// To one object if it is named, otherwise to all in the namespace, or in all namespaces.
    pub fn to(group: &str, resource: &str, namespace: &str, name: Option<&str>) -> Self {
        Self {
            verb: if name.is_some() { "get" } else { "list" },
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.unwrap_or_default().to_owned(),
        }
    }
}

/// The API server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It does not accept the token.
    InvalidToken,
    NotAllowed,
    Allowed,
}

pub trait Reviews: Send + Sync + 'static {
    /// The error says why the API server could not be asked.
    fn decide<'a>(
        &'a self,
        token: &'a str,
        access: &'a Access,
    ) -> Pin<Box<dyn Future<Output = Result<Decision, String>> + Send + 'a>>;
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    NoToken,
    InvalidToken,
    /// To be answered like what does not exist.
    NotAllowed,
    /// Everyone may read, but a web page may have sent a browser here under a name of its own (DNS rebinding).
    OtherHost,
    /// The API server could not be asked.
    Unavailable(String),
}

pub struct Guard {
    /// `None`: everyone may read everything.
    reviews: Option<Arc<dyn Reviews>>,
    decisions: Mutex<HashMap<Key, (Decision, Instant)>>,
}

/// The hash of the token, so that tokens are not kept in memory.
type Key = ([u8; 32], Access);

impl Guard {
    pub fn new(reviews: Arc<dyn Reviews>) -> Self {
        Self { reviews: Some(reviews), decisions: Mutex::default() }
    }

    /// Everyone may read everything.
    pub fn open() -> Self {
        Self { reviews: None, decisions: Mutex::default() }
    }

    pub async fn check(&self, headers: &HeaderMap, access: &Access) -> Result<(), Denied> {
        let Some(reviews) = &self.reviews else {
            return if is_address(headers) { Ok(()) } else { Err(Denied::OtherHost) };
        };
        let token = bearer_token(headers).ok_or(Denied::NoToken)?;
        let key = (Sha256::digest(token).into(), access.clone());
        let decision = if let Some(decision) = self.known(&key) {
            decision
        } else {
            let decision = reviews.decide(token, access).await.map_err(Denied::Unavailable)?;
            self.remember(key, decision);
            decision
        };
        match decision {
            Decision::Allowed => Ok(()),
            Decision::NotAllowed => Err(Denied::NotAllowed),
            Decision::InvalidToken => Err(Denied::InvalidToken),
        }
    }

    fn known(&self, key: &Key) -> Option<Decision> {
        let decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let (decision, until) = decisions.get(key)?;
        (*until > Instant::now()).then_some(*decision)
    }

    fn remember(&self, key: Key, decision: Decision) {
        let now = Instant::now();
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.len() >= MAX_DECISIONS {
            decisions.retain(|_, (_, until)| *until > now);
        }
        if decisions.len() >= MAX_DECISIONS {
            decisions.clear();
        }
        let holds = if decision == Decision::Allowed { ALLOWED_FOR } else { DENIED_FOR };
        decisions.insert(key, (decision, now + holds));
    }
}

/// Whether the request is for localhost or an IP address. A browser always names the host.
fn is_address(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
    })
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Denied {
    /// `absent` is the response for what does not exist.
    pub fn response(self, absent: impl FnOnce() -> Response) -> Response {
        let unauthorized = |message: &str| {
            let challenge = [(WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, challenge, Json(json!({ "message": message }))).into_response()
        };
        match self {
            Self::NoToken => unauthorized(
                "no bearer token. Send the header Authorization: Bearer TOKEN, with a token from kubectl create token",
            ),
            Self::InvalidToken => unauthorized(
                "the API server does not accept the token: it is invalid, or has expired. Get a new one with kubectl \
                 create token",
            ),
            Self::NotAllowed => absent(),
            Self::OtherHost => {
                let message = "without tokens, the host must be localhost or an IP address. Use one of these, or a \
                               controller without --anonymous-read";
                (StatusCode::FORBIDDEN, Json(json!({ "message": message }))).into_response()
            }
            Self::Unavailable(why) => {
                let message = format!("cannot check the token: {why}. Try again later");
                (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "message": message }))).into_response()
            }
        }
    }
}
