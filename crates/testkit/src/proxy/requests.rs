//! Which requests are meant.

use super::call::{Call, Verb};

/// All of a request that decides whether it is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) call: Call,
    pub(super) user: String,
    pub(super) user_agent: Option<String>,
}

/// Says which requests a fault shall strike, or which recorded ones to count.
///
/// It begins with [`all`](Self::all) of them; each further word leaves fewer.
///
/// ```
/// # use bellwether_testkit::{Requests, Verb};
/// let reads = Requests::all().verb(Verb::List).verb(Verb::Watch).resource("deployments.apps").user("alice");
/// let one_patch = Requests::of(Verb::Patch, "deployments.apps/status").namespace("shop").times(1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    verbs: Vec<Verb>,
    resource: Option<String>,
    path: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    user_agent: Option<String>,
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

    /// The requests that change something: create, update, patch, delete and the deletion of collections.
    pub fn writes() -> Self {
        let verbs = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];
        Self { verbs: verbs.into(), ..Self::all() }
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

    /// Only those about no resource whose path is this one or below it: `/apis` means `/apis/apps/v1` as well, but
    /// neither `/api` nor any Deployment. Discovery is `/api` and `/apis`.
    #[must_use]
    pub fn path(self, path: &str) -> Self {
        Self { path: Some(path.trim_end_matches('/').to_owned()), ..self }
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

    /// Only those of programs whose own words about themselves contain this.
    #[must_use]
    pub fn user_agent(self, part: &str) -> Self {
        Self { user_agent: Some(part.to_owned()), ..self }
    }

    /// Only so many of them, the first that come. It limits a fault's strikes; counting takes no notice of it.
    #[must_use]
    pub fn times(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }

    pub(super) fn matches(&self, asked: &Asked) -> bool {
        let call = &asked.call;
        let equal = |wanted: &str, found: &String| wanted == found;
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && agree(self.resource.as_deref(), call.resource.as_ref(), |wanted, it| it.is_written(wanted))
            && agree(self.path.as_deref(), call.path.as_ref(), |wanted, it| is_at_or_below(wanted, it))
            && agree(self.namespace.as_deref(), call.namespace.as_ref(), equal)
            && agree(self.name.as_deref(), call.name.as_ref(), equal)
            && agree(self.user.as_deref(), Some(&asked.user), equal)
            && agree(self.user_agent.as_deref(), asked.user_agent.as_ref(), |wanted, it| it.contains(wanted))
    }
}

/// Whether nothing is wanted, or something that is found.
fn agree<T>(wanted: Option<&str>, found: Option<&T>, fits: impl Fn(&str, &T) -> bool) -> bool {
    wanted.is_none_or(|wanted| found.is_some_and(|found| fits(wanted, found)))
}

fn is_at_or_below(ancestor: &str, path: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn asked(method: &Method, uri: &str) -> Asked {
        Asked {
            call: Call::of(method, &uri.parse().unwrap()),
            user: "alice".to_owned(),
            user_agent: Some("kubectl/v1.36 (linux)".to_owned()),
        }
    }

    #[test]
    fn every_word_leaves_fewer_requests() {
        let asked = asked(&Method::GET, "/apis/apps/v1/namespaces/shop/deployments/web");
        for (requests, expected) in [
            (Requests::all(), true),
            (Requests::of(Verb::Get, "deployments.apps"), true),
            (Requests::all().verb(Verb::List).verb(Verb::Get), true),
            (Requests::all().namespace("shop").name("web").user("alice"), true),
            (Requests::all().user_agent("kubectl/"), true),
            (Requests::all().verb(Verb::List), false),
            (Requests::all().resource("deployments"), false),
            (Requests::all().resource("deployments.apps/status"), false),
            (Requests::all().path("/apis"), false),
            (Requests::all().namespace("bar"), false),
            (Requests::all().name("db"), false),
            (Requests::all().user("bob"), false),
            (Requests::all().user_agent("bellwether"), false),
        ] {
            assert_eq!(requests.matches(&asked), expected, "{requests:?}");
        }
    }

    #[test]
    fn a_path_is_meant_with_all_below_it() {
        for (path, uri, expected) in [
            ("/apis", "/apis", true),
            ("/apis", "/apis/?timeout=32s", true),
            ("/apis/", "/apis/apps/v1", true),
            ("/apis/apps/v1", "/apis/apps", false),
            ("/api", "/apis", false),
            ("/version", "/readyz", false),
            ("/", "/readyz/etcd", true),
            ("/", "/", true),
            ("/", "/api/v1/pods", false),
        ] {
            let asked = asked(&Method::GET, uri);
            assert_eq!(Requests::all().path(path).matches(&asked), expected, "{path} {uri}");
        }
    }

    #[test]
    fn writes_are_what_changes_something() {
        let (one, many) = ("/api/v1/namespaces/shop/pods/web", "/api/v1/namespaces/shop/pods");
        for (method, uri, expected) in [
            (Method::POST, many, true),
            (Method::PUT, one, true),
            (Method::PATCH, one, true),
            (Method::DELETE, one, true),
            (Method::DELETE, many, true),
            (Method::GET, one, false),
            (Method::GET, many, false),
            (Method::GET, "/api/v1/pods?watch=1", false),
        ] {
            assert_eq!(Requests::writes().matches(&asked(&method, uri)), expected, "{method} {uri}");
        }
    }
}
