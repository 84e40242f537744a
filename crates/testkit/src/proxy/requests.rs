//! Which requests are meant.

use super::call::{Call, Verb};

/// Says which requests a fault shall strike, or which recorded ones to count.
///
/// It begins with [`all`](Self::all) of them; each further word leaves fewer.
///
/// ```
/// # use bellwether_testkit::{Requests, Verb};
/// let reads = Requests::all().verb(Verb::List).verb(Verb::Watch).resource("deployments.apps").user("alice");
/// let one_write = Requests::of(Verb::Patch, "deployments.apps/status").namespace("shop").times(1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    verbs: Vec<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    limit: Option<usize>,
}

impl Requests {
    /// Every request, those for discovery and the API server's health included.
    pub fn all() -> Self {
        Self::default()
    }

    /// The requests with one verb on one resource.
    pub fn of(verb: Verb, resource: &str) -> Self {
        Self::all().verb(verb).resource(resource)
    }

    /// Only those with this verb, or with another one given in the same way.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Only those on this resource: `pods`, `deployments.apps`, `deployments.apps/status`. A subresource is a resource
    /// of its own, as in RBAC.
    #[must_use]
    pub fn resource(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Only those in this namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Only those for the object of this name. What has its name in the body alone, as a `create` does, is left out.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Only those of this user.
    #[must_use]
    pub fn user(self, user: &str) -> Self {
        Self { user: Some(user.to_owned()), ..self }
    }

    /// Only so many of them, the first that come. It limits a fault's strikes; counting takes no notice of it.
    #[must_use]
    pub fn times(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }

    pub(super) fn matches(&self, call: &Call, user: &str) -> bool {
        let resource = call.resource.as_ref().map(ToString::to_string);
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && agree(self.resource.as_deref(), resource.as_deref())
            && agree(self.namespace.as_deref(), call.namespace.as_deref())
            && agree(self.name.as_deref(), call.name.as_deref())
            && agree(self.user.as_deref(), Some(user))
    }
}

fn agree(wanted: Option<&str>, found: Option<&str>) -> bool {
    wanted.is_none() || wanted == found
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn every_word_leaves_fewer_requests() {
        let uri = "/apis/apps/v1/namespaces/shop/deployments/web".parse().unwrap();
        let call = Call::of(&Method::GET, &uri);
        for (requests, expected) in [
            (Requests::all(), true),
            (Requests::of(Verb::Get, "deployments.apps"), true),
            (Requests::all().verb(Verb::List).verb(Verb::Get), true),
            (Requests::all().namespace("shop").name("web").user("alice"), true),
            (Requests::all().verb(Verb::List), false),
            (Requests::all().resource("deployments"), false),
            (Requests::all().resource("deployments.apps/status"), false),
            (Requests::all().namespace("bar"), false),
            (Requests::all().name("db"), false),
            (Requests::all().user("bob"), false),
        ] {
            assert_eq!(requests.matches(&call, "alice"), expected, "{requests:?}");
        }
    }
}
