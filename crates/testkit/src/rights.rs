//! Users with just the rights that a test gives them, and namespaces to keep tests apart.

use std::{
    process,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::{
    Api, Resource,
    api::{ObjectMeta, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    access::{Access, Login},
    cluster::{Cluster, Part},
    wait::eventually,
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
            eventually(
                Duration::from_secs(30),
                "the namespace has its default service account",
                async || Ok(accounts.get_opt("default").await?.is_some()),
            )
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

    /// Gives a user rights: in one namespace, or everywhere.
    pub async fn grant(&self, who: &Access, namespace: Option<&str>, rules: Vec<PolicyRule>) -> Result<()> {
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
        if let Some(namespace) = namespace {
            let role = Role { metadata: named(&name), rules: Some(rules) };
            let binding = RoleBinding {
                metadata: named(&name),
                role_ref: role_ref("Role"),
                subjects: Some(vec![subject]),
            };
            create(&Api::namespaced(client.clone(), namespace), role).await?;
            create(&Api::namespaced(client, namespace), binding).await
        } else {
            let role = ClusterRole { metadata: named(&name), rules: Some(rules), ..Default::default() };
            let binding = ClusterRoleBinding {
                metadata: named(&name),
                role_ref: role_ref("ClusterRole"),
                subjects: Some(vec![subject]),
            };
            create(&Api::all(client.clone()), role).await?;
            create(&Api::all(client), binding).await
        }
    }
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
