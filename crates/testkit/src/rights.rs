//! RBAC rights of test users, and namespaces that isolate tests.

use std::{
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    access::{Access, Login},
    cluster::{Cluster, Part},
    wait::{TIMEOUT, eventually},
};

/// A PolicyRule for some resources of one API group. The core group is `""`.
pub fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    PolicyRule {
        verbs: owned(verbs),
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        ..PolicyRule::default()
    }
}

impl Cluster {
    /// Creates a namespace with a unique name that begins with `purpose`.
    pub async fn namespace(&self, purpose: &str) -> Result<String> {
        let name = unique(purpose);
        let client = self.admin().client().await?;
        create(
            &Api::<Namespace>::all(client.clone()),
            Namespace { metadata: named(&name), ..Default::default() },
        )
        .await?;
        if self.parts().any(|part| part == Part::ControllerManager) {
            // The API server rejects Pods until the namespace has its default service account.
            let accounts: Api<ServiceAccount> = Api::namespaced(client, &name);
            eventually(TIMEOUT, "the namespace has its default service account", async || {
                Ok(accounts.get_opt("default").await?.is_some())
            })
            .await?;
        }
        Ok(name)
    }

    /// Creates a service account and a token for it.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin().client().await?, namespace);
        create(&accounts, ServiceAccount { metadata: named(name), ..Default::default() }).await?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..Default::default() }),
            ..Default::default()
        };
        let granted = accounts.create_token_request(name, &PostParams::default(), &request).await?;
        let token =
            granted.status.and_then(|status| status.token).context("the API server returned no token")?;
        let user = format!("system:serviceaccount:{namespace}:{name}");
        Ok(Access { login: Login::Token { user, token }, ..self.admin().clone() })
    }

    /// Grants a user rights in one namespace or, without a namespace, in the whole cluster. Waits until the
    /// API server enforces them.
    ///
    /// Dropping the returned value does not revoke them. See [`Grant::revoke`].
    pub async fn grant(
        &self,
        who: &Access,
        namespace: Option<&str>,
        rules: Vec<PolicyRule>,
    ) -> Result<Grant> {
        let client = self.admin().client().await?;
        let name = unique("testkit");
        let subject = Subject {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "User".to_owned(),
            name: who.user().to_owned(),
            namespace: None,
        };
        let role_ref = |kind: &str| RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: kind.to_owned(),
            name: name.clone(),
        };
        let reviews = access_reviews(who, namespace, &rules);
        if let Some(namespace) = namespace {
            let role = Role { metadata: named(&name), rules: Some(rules) };
            let binding = RoleBinding {
                metadata: named(&name),
                role_ref: role_ref("Role"),
                subjects: Some(vec![subject]),
            };
            create(&Api::namespaced(client.clone(), namespace), role).await?;
            create(&Api::namespaced(client.clone(), namespace), binding).await?;
        } else {
            let role = ClusterRole { metadata: named(&name), rules: Some(rules), ..Default::default() };
            let binding = ClusterRoleBinding {
                metadata: named(&name),
                role_ref: role_ref("ClusterRole"),
                subjects: Some(vec![subject]),
            };
            create(&Api::all(client.clone()), role).await?;
            create(&Api::all(client.clone()), binding).await?;
        }
        eventually(TIMEOUT, "the rights are granted", async || {
            for review in &reviews {
                if !is_allowed(&client, review).await? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
        Ok(Grant { admin: self.admin().clone(), namespace: namespace.map(str::to_owned), name, reviews })
    }
}

/// The Role and RoleBinding (or ClusterRole and ClusterRoleBinding) behind [`Cluster::grant`].
pub struct Grant {
    admin: Access,
    namespace: Option<String>,
    name: String,
    reviews: Vec<SubjectAccessReview>,
}

impl Grant {
    /// Deletes the role and its binding, and waits until the API server denies at least one of the rights.
    /// The user may hold the others through another grant.
    pub async fn revoke(self) -> Result<()> {
        let client = self.admin.client().await?;
        let now = DeleteParams::default();
        if let Some(namespace) = &self.namespace {
            Api::<RoleBinding>::namespaced(client.clone(), namespace).delete(&self.name, &now).await?;
            Api::<Role>::namespaced(client.clone(), namespace).delete(&self.name, &now).await?;
        } else {
            Api::<ClusterRoleBinding>::all(client.clone()).delete(&self.name, &now).await?;
            Api::<ClusterRole>::all(client.clone()).delete(&self.name, &now).await?;
        }
        eventually(TIMEOUT, "a right is revoked", async || {
            for review in &self.reviews {
                if !is_allowed(&client, review).await? {
                    return Ok(true);
                }
            }
            Ok(self.reviews.is_empty())
        })
        .await
    }
}

/// One review for each verb and resource of the rules.
fn access_reviews(who: &Access, namespace: Option<&str>, rules: &[PolicyRule]) -> Vec<SubjectAccessReview> {
    let each = |words: &Option<Vec<String>>| words.clone().unwrap_or_default();
    let mut reviews = Vec::new();
    for rule in rules {
        for (group, resource) in each(&rule.api_groups)
            .iter()
            .flat_map(|group| each(&rule.resources).into_iter().map(move |it| (group, it)))
        {
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
                None => (resource, None),
            };
            reviews.extend(rule.verbs.iter().map(|verb| SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(who.user().to_owned()),
                    resource_attributes: Some(ResourceAttributes {
                        namespace: namespace.map(str::to_owned),
                        verb: Some(verb.clone()),
                        group: Some(group.clone()),
                        resource: Some(resource.clone()),
                        subresource: subresource.clone(),
                        name: rule.resource_names.as_ref().and_then(|names| names.first()).cloned(),
                        ..ResourceAttributes::default()
                    }),
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            }));
        }
    }
    reviews
}

async fn is_allowed(client: &Client, review: &SubjectAccessReview) -> Result<bool> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let reviewed = reviews.create(&PostParams::default(), review).await?;
    Ok(reviewed.status.is_some_and(|status| status.allowed))
}

async fn create<K>(api: &Api<K>, object: K) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let created = api.create(&PostParams::default(), &object).await;
    created.map(drop).with_context(|| format!("cannot create a {}", K::kind(&())))
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn unique(prefix: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{prefix}-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
