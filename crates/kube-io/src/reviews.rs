//! Asks the API server which user has a token, and what a user may do: TokenReview and SubjectAccessReview.

use std::time::Duration;

use http::{
    Request,
    header::{ACCEPT, CONTENT_TYPE},
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::Client;
use serde::{Serialize, de::DeserializeOwned};

use crate::write::{CallError, call};

const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Reviewer(Client);

impl Reviewer {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// `None` if the API server does not accept the token.
    pub async fn user(&self, token: &str) -> Result<Option<UserInfo>, CallError> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review = self.review("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        let status = review.status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user))
    }

    pub async fn may(&self, user: &UserInfo, attributes: ResourceAttributes) -> Result<bool, CallError> {
        let UserInfo { username, uid, groups, extra } = user.clone();
        let resource_attributes = Some(attributes);
        let spec = SubjectAccessReviewSpec {
            user: username,
            uid,
            groups,
            extra,
            resource_attributes,
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let review = self.review("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }

    /// Creates a review, and returns it with its status.
    async fn review<R: DeserializeOwned + Serialize>(&self, path: &str, review: &R) -> Result<R, CallError> {
        let invalid = |error| CallError::IncompleteResponse(format!("invalid review: {error}"));
        let body = serde_json::to_vec(review).map_err(invalid)?;
        // The verb `Create` of our writes asks for metadata only.
        let request = Request::post(path)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(body);
        let response = call(&self.0, request, REVIEW_TIMEOUT).await?;
        serde_json::from_slice(&response).map_err(invalid)
    }
}
