//! Users with just the rights that a test gives them, and namespaces to keep tests apart.

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
    wait::{PATIENCE, eventually},
};

/// Rights to use some verbs on some resources of one group. The core group is `""`.
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
    /// A new namespace. Its name begins with `purpose` and is used only once.
    pub async fn namespace(&self, purpose: &str) -> Result<String> {
        let name = unique(purpose);
        let client = self.admin().client().await?;
        create(
            &Api::<Namespace>::all(client.clone()),
            Namespace { metadata: named(&name), ..Default::default() },
        )
        .await?;
        if self.parts().any(|part| part == Part::ControllerManager) {
            // Pods are refused until the controllers have given the namespace its default service account.
            let accounts: Api<ServiceAccount> = Api::namespaced(client, &name);
            eventually(PATIENCE, "the namespace has its default service account", async || {
                Ok(accounts.get_opt("default").await?.is_some())
            })
            .await?;
        }
        Ok(name)
    }

    /// A new service account and a token for it.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin().client().await?, namespace);
        create(&accounts, ServiceAccount { metadata: named(name), ..Default::default() }).await?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..Default::default() }),
            ..Default::default()
        };
        let granted = accounts.create_token_request(name, &PostParams::default(), &request).await?;
        let token =
            granted.status.and_then(|status| status.token).context("the API server granted no token")?;
        let user = format!("system:serviceaccount:{namespace}:{name}");
        Ok(Access { login: Login::Token { user, token }, ..self.admin().clone() })
    }

    /// Gives a user rights, in one namespace or everywhere, and waits until they are in force.
    ///
    /// They stay when what this gives back is dropped: see [`Grant::revoke`].
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
        let questions = questions(who, namespace, &rules);
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
        eventually(PATIENCE, "the rights are in force", async || {
            for question in &questions {
                if !is_allowed(&client, question).await? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
        Ok(Grant { admin: self.admin().clone(), namespace: namespace.map(str::to_owned), name, questions })
    }
}

/// Rights that a user has been given.
pub struct Grant {
    admin: Access,
    namespace: Option<String>,
    name: String,
    questions: Vec<SubjectAccessReview>,
}

impl Grant {
    /// Takes the rights back, and waits until they are gone: all those that the user has from nowhere else.
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
        eventually(PATIENCE, "a right is gone", async || {
            for question in &self.questions {
                if !is_allowed(&client, question).await? {
                    return Ok(true);
                }
            }
            Ok(self.questions.is_empty())
        })
        .await
    }
}

/// What to ask the API server to learn whether the rights are in force.
fn questions(who: &Access, namespace: Option<&str>, rules: &[PolicyRule]) -> Vec<SubjectAccessReview> {
    let each = |words: &Option<Vec<String>>| words.clone().unwrap_or_default();
    let mut questions = Vec::new();
    for rule in rules {
        for (group, resource) in each(&rule.api_groups)
            .iter()
            .flat_map(|group| each(&rule.resources).into_iter().map(move |it| (group, it)))
        {
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
                None => (resource, None),
            };
            questions.extend(rule.verbs.iter().map(|verb| SubjectAccessReview {
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
    questions
}

async fn is_allowed(client: &Client, question: &SubjectAccessReview) -> Result<bool> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), question).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
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
