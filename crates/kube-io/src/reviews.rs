//! Asks the API server who has a token, and what a user may do: TokenReview and SubjectAccessReview.

use std::{collections::BTreeMap, time::Duration};

use http::{
    Request,
    header::{ACCEPT, CONTENT_TYPE},
};
use kube::Client;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::write::{CallError, call};

const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);

/// As in `status.user` of a TokenReview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UserInfo {
    pub username: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// As in `spec.resourceAttributes` of a SubjectAccessReview. Empty for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResourceAttributes {
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Clone)]
pub struct Reviewer(Client);

impl Reviewer {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// `None` if the API server does not accept the token.
    pub async fn user(&self, token: &str) -> Result<Option<UserInfo>, CallError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Status {
            authenticated: bool,
            user: UserInfo,
        }
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token },
        });
        let status: Status = self.review("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        Ok(status.authenticated.then_some(status.user))
    }

    pub async fn may(&self, user: &UserInfo, attributes: &ResourceAttributes) -> Result<bool, CallError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Status {
            allowed: bool,
        }
        let UserInfo { username, uid, groups, extra } = user;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": username, "uid": uid, "groups": groups, "extra": extra, "resourceAttributes": attributes,
            },
        });
        let status: Status =
            self.review("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
        Ok(status.allowed)
    }

    /// Creates a review, and returns its status.
    async fn review<S: DeserializeOwned + Default>(
        &self,
        path: &str,
        review: &Value,
    ) -> Result<S, CallError> {
        #[derive(Deserialize)]
        struct Review<S> {
            status: Option<S>,
        }
        // The verb `Create` of our writes asks for metadata only.
        let request = Request::post(path)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(review.to_string().into_bytes());
        let response = call(&self.0, request, REVIEW_TIMEOUT).await?;
        let review: Review<S> = serde_json::from_slice(&response)
            .map_err(|error| CallError::IncompleteResponse(format!("invalid review: {error}")))?;
        Ok(review.status.unwrap_or_default())
    }
}
