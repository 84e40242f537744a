//! The rights of this process, in one request.

use bellwether_engine::{GroupKind, ServedResource};
use bellwether_wire::read_error::ReadError;
use k8s_openapi::api::authorization::v1::{
    ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus,
};
use kube::{
    Client,
    api::PostParams,
    core::{Request, request::Error as BuildError},
};

use crate::{read::send_and_read, write::REQUEST_TIMEOUT};

const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

/// What the API server knows of the rights in a namespace.
pub(crate) struct Rights(SubjectRulesReviewStatus);

impl Rights {
    pub(crate) async fn request(client: &Client, namespace: &str) -> Result<Self, ReadError> {
        let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) };
        let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
        let review = serde_json::to_vec(&review).map_err(BuildError::SerializeBody);
        let request = review.and_then(|review| Request::new(PATH).create(&PostParams::default(), review));
        let response = send_and_read(client, request, REQUEST_TIMEOUT).await?;
        let review: SelfSubjectRulesReview = serde_json::from_slice(&response)
            .map_err(|error| ReadError::rejected(format!("cannot decode the rights: {error}")))?;
        Ok(Self(review.status.unwrap_or_default()))
    }

    /// Whether all objects of a kind may be patched. True if the API server does not know, because it asks others.
    pub(crate) fn may_patch(&self, kind: &GroupKind, served: &ServedResource) -> bool {
        self.0.incomplete || self.0.resource_rules.iter().any(|rule| grants_patch(rule, kind, served))
    }
}

fn grants_patch(rule: &ResourceRule, kind: &GroupKind, served: &ServedResource) -> bool {
    let has = |all: &[String], one: &str| all.iter().any(|own| own == one || own == "*");
    has(&rule.verbs, "patch")
        && has(rule.api_groups.as_deref().unwrap_or_default(), &kind.group)
        && has(rule.resources.as_deref().unwrap_or_default(), &served.plural)
        && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::named(json!({"verbs": ["get", "patch"], "apiGroups": ["apps"], "resources": ["deployments"]}), true)]
    #[case::everything(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), true)]
    #[case::other_verb(json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]}), false)]
    #[case::other_group(json!({"verbs": ["patch"], "apiGroups": [""], "resources": ["deployments"]}), false)]
    #[case::subresource(json!({"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["deployments/status"]}), false)]
    #[case::one_object(
        json!({"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]}),
        false
    )]
    fn only_rules_for_all_objects_of_the_kind_count(#[case] rule: Value, #[case] expected: bool) {
        let rights = |incomplete: bool| {
            let status = json!({"resourceRules": [rule], "nonResourceRules": [], "incomplete": incomplete});
            Rights(serde_json::from_value(status).unwrap())
        };
        let served = ServedResource {
            version: "v1".into(),
            versions: Box::default(),
            plural: "deployments".into(),
            namespaced: true,
            has_status: true,
        };
        let kind = GroupKind::new("apps", "Deployment");
        assert_eq!(rights(false).may_patch(&kind, &served), expected);
        assert!(rights(true).may_patch(&kind, &served), "another authorizer may grant it");
    }
}
