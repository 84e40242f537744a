//! Asks the API server of the hub whether a request over HTTP may read.

use std::{future::Future, pin::Pin};

use bellwether_kube_io::reviews::{ResourceAttributes, Reviewer};
use bellwether_server::{Access, Decision, Reviews};

pub(super) struct HubReviews(pub(super) Reviewer);

impl Reviews for HubReviews {
    fn decide<'a>(
        &'a self,
        token: &'a str,
        access: &'a Access,
    ) -> Pin<Box<dyn Future<Output = Result<Decision, String>> + Send + 'a>> {
        Box::pin(async move {
            let Some(user) = self.0.user(token).await.map_err(|error| error.to_string())? else {
                return Ok(Decision::InvalidToken);
            };
            let Access { verb, group, resource, namespace, name } = access;
            let attributes = ResourceAttributes {
                verb: (*verb).to_owned(),
                group: group.clone(),
                resource: resource.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
            };
            let allowed = self.0.may(&user, &attributes).await.map_err(|error| error.to_string())?;
            Ok(if allowed { Decision::Allowed } else { Decision::NotAllowed })
        })
    }
}
