//! Which user may read what: the API server decides, by the bearer token of the request.
//!
//! What a user may not read looks like what does not exist: a handler asks [`Guard::may_read`] before it looks
//! anything up, and responds to `false` exactly as for an object that does not exist.

use std::{
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
use k8s_openapi::api::authentication::v1::UserInfo;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    limits::{ApiRequests, Busy},
    recent::Recent,
};

/// How long the controller knows the user of a token, and what the user may read. A right that comes from a group of
/// the user and is revoked takes effect after both.
const KNOWN_FOR: Duration = Duration::from_secs(15);

/// A right that is granted takes effect after this time.
const DENIED_FOR: Duration = Duration::from_secs(5);

const MAX_USERS: usize = 1024;
const MAX_INVALID_TOKENS: usize = 4096;
const MAX_DECISIONS: usize = 4096;

/// Requests to the API server at the same time, of each of the two kinds. Requests with invalid tokens do not delay
/// those of known users.
const REVIEWS_AT_ONCE: usize = 8;

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

/// The error says why the API server did not decide.
pub type Reviewed<T> = Result<T, String>;

/// What the API server decides.
pub trait Reviews: Send + Sync + 'static {
    /// `None` if the token is invalid.
    fn user<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Reviewed<Option<UserInfo>>> + Send + 'a>>;

    fn may<'a>(
        &'a self,
        user: &'a UserInfo,
        access: &'a Access,
    ) -> Pin<Box<dyn Future<Output = Reviewed<bool>> + Send + 'a>>;
}

/// Why the user of a request is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    NoToken,
    InvalidToken,
    /// Every client may read, but a web page may have sent a browser here under a name of its own (DNS rebinding).
    OtherHost,
    /// The API server did not decide.
    Unavailable(String),
    Busy,
}

pub struct Guard {
    /// `None`: every client may read everything.
    reviews: Option<Arc<dyn Reviews>>,
    known: Mutex<Known>,
    token_reviews: ApiRequests<Hash, Reviewed<Option<Arc<UserInfo>>>>,
    access_reviews: ApiRequests<Hash, Reviewed<bool>>,
}

/// Instead of a token, or of a token and an [`Access`]: neither is kept in memory.
type Hash = [u8; 32];

struct Known {
    users: Recent<Hash, Arc<UserInfo>>,
    /// Apart: they are free, and must not take the places of users.
    invalid_tokens: Recent<Hash, ()>,
    decisions: Recent<Hash, bool>,
}

impl Guard {
    pub fn new(reviews: Arc<dyn Reviews>) -> Self {
        Self::with(Some(reviews))
    }

    /// Every client may read everything.
    pub fn open() -> Self {
        Self::with(None)
    }

    fn with(reviews: Option<Arc<dyn Reviews>>) -> Self {
        let known = Known {
            users: Recent::new(MAX_USERS),
            invalid_tokens: Recent::new(MAX_INVALID_TOKENS),
            decisions: Recent::new(MAX_DECISIONS),
        };
        Self {
            reviews,
            known: Mutex::new(known),
            token_reviews: ApiRequests::new(REVIEWS_AT_ONCE),
            access_reviews: ApiRequests::new(REVIEWS_AT_ONCE),
        }
    }

    /// Whether the request comes from a user of the hub.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<(), Denied> {
        match &self.reviews {
            Some(reviews) => self.user(&**reviews, bearer_token(headers)?).await.map(drop),
            None if is_address(headers) => Ok(()),
            None => Err(Denied::OtherHost),
        }
    }

    pub async fn may_read(&self, headers: &HeaderMap, access: &Access) -> Result<bool, Denied> {
        let Some(reviews) = &self.reviews else { return self.authenticate(headers).await.map(|()| true) };
        let token = bearer_token(headers)?;
        let user = self.user(&**reviews, token).await?;
        let key = hash_of(token, access);
        if let Some(decision) = self.known().decisions.get(&key) {
            return Ok(decision);
        }
        let review = async {
            let decision = reviews.may(&user, access).await?;
            self.known().decisions.put(key, decision, if decision { KNOWN_FOR } else { DENIED_FOR });
            Ok(decision)
        };
        self.access_reviews.send(key, review).await?.map_err(Denied::Unavailable)
    }

    async fn user(&self, reviews: &dyn Reviews, token: &str) -> Result<Arc<UserInfo>, Denied> {
        let key = Sha256::digest(token).into();
        if let Some(user) = self.known().users.get(&key) {
            return Ok(user);
        }
        if self.known().invalid_tokens.get(&key).is_some() {
            return Err(Denied::InvalidToken);
        }
        let review = async {
            let user = reviews.user(token).await?.map(Arc::new);
            match &user {
                Some(user) => self.known().users.put(key, Arc::clone(user), KNOWN_FOR),
                None => self.known().invalid_tokens.put(key, (), DENIED_FOR),
            }
            Ok(user)
        };
        let user = self.token_reviews.send(key, review).await?.map_err(Denied::Unavailable)?;
        user.ok_or(Denied::InvalidToken)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash_of(token: &str, access: &Access) -> Hash {
    let Access { verb, group, resource, namespace, name } = access;
    let mut hash = Sha256::new();
    for part in [token, verb, group, resource, namespace, name] {
        // With the length, so that no two lists of parts are the same text.
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
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

fn bearer_token(headers: &HeaderMap) -> Result<&str, Denied> {
    let credentials = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.split_once(' '));
    let (scheme, token) = credentials.ok_or(Denied::NoToken)?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    Some(token.trim()).filter(|token| is_bearer && !token.is_empty()).ok_or(Denied::NoToken)
}

impl From<Busy> for Denied {
    fn from(_: Busy) -> Self {
        Self::Busy
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let unauthorized = |message: &str| {
            let challenge = [(WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, challenge, Json(json!({ "message": message }))).into_response()
        };
        match self {
            Self::NoToken => unauthorized(
                "missing bearer token. Send the header Authorization: Bearer TOKEN, with a token from kubectl create \
                 token",
            ),
            Self::InvalidToken => unauthorized(
                "the API server does not accept the token: it is invalid, or has expired. Get a new one with kubectl \
                 create token",
            ),
            Self::OtherHost => {
                let message = "without tokens, the host must be localhost or an IP address. Use one of these, or a \
                               controller without --anonymous-read";
                (StatusCode::FORBIDDEN, Json(json!({ "message": message }))).into_response()
            }
            Self::Unavailable(why) => {
                let message = format!("cannot check the token: {why}. Try again later");
                (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "message": message }))).into_response()
            }
            Self::Busy => Busy.into_response(),
        }
    }
}
