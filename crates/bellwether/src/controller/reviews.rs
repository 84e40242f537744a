//! Asks the API server of the hub who sends a request over HTTP, and what the user may read.

use std::{future::Future, pin::Pin};

use bellwether_kube_io::reviews::Reviewer;
use bellwether_server::{Access, Reviewed, Reviews};
use k8s_openapi::api::{authentication::v1::UserInfo, authorization::v1::ResourceAttributes};

pub(super) struct HubReviews(pub(super) Reviewer);

impl Reviews for HubReviews {
    fn user<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Reviewed<Option<UserInfo>>> + Send + 'a>> {
        Box::pin(async move { self.0.user(token).await.map_err(|error| error.to_string()) })
    }

    fn may<'a>(
        &'a self,
        user: &'a UserInfo,
        access: &'a Access,
    ) -> Pin<Box<dyn Future<Output = Reviewed<bool>> + Send + 'a>> {
        let Access { verb, group, resource, namespace, name } = access.clone();
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group),
            resource: Some(resource),
            namespace: Some(namespace),
            name: Some(name),
            ..ResourceAttributes::default()
        };
        Box::pin(async move { self.0.may(user, attributes).await.map_err(|error| error.to_string()) })
    }
}
