//! Selects requests.

use super::call::{Call, Resource, Verb};

/// The attributes of a request that [`Requests`] can match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestAttributes {
    pub(super) call: Call,
    pub(super) user: String,
    pub(super) user_agent: Option<String>,
}

/// Selects the requests that a fault strikes, or the recorded requests to count.
///
/// It starts with [`all`](Self::all) requests; each further method narrows the selection.
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
    without_reviews: bool,
}

impl Requests {
    /// Every request, including discovery and health checks.
    pub fn all() -> Self {
        Self::default()
    }

    /// Requests with one verb on one resource.
    pub fn of(verb: Verb, resource: &str) -> Self {
        Self::all().verb(verb).resource(resource)
    }

    /// Create, update, patch, delete and deletecollection. The creation of a review, such as a
    /// SelfSubjectRulesReview, is a question.
    pub fn writes() -> Self {
        let verbs = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];
        Self { verbs: verbs.into(), without_reviews: true, ..Self::all() }
    }

    /// Only requests with this verb. If called several times, any of the verbs matches.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Only requests on this resource: `pods`, `deployments.apps`, `deployments.apps/status`. As in RBAC, a
    /// subresource is a resource of its own.
    #[must_use]
    pub fn resource(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Only non-resource requests at or below this path: `/apis` matches `/apis/apps/v1`, but neither `/api`
    /// nor any Deployment. Discovery is `/api` and `/apis`.
    #[must_use]
    pub fn path(self, path: &str) -> Self {
        Self { path: Some(path.trim_end_matches('/').to_owned()), ..self }
    }

    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Only requests for the object with this name. Never matches a `create`, which has the name in its body.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    #[must_use]
    pub fn user(self, user: &str) -> Self {
        Self { user: Some(user.to_owned()), ..self }
    }

    /// Only requests whose User-Agent header contains `part`.
    #[must_use]
    pub fn user_agent(self, part: &str) -> Self {
        Self { user_agent: Some(part.to_owned()), ..self }
    }

    /// Limits the strikes of a fault to the first `limit` requests. Counting ignores it.
    #[must_use]
    pub fn times(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }

    pub(super) fn matches(&self, request: &RequestAttributes) -> bool {
        let call = &request.call;
        let equal = |wanted: &str, found: &String| wanted == found;
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && !(self.without_reviews && call.resource.as_ref().is_some_and(Resource::is_review))
            && agree(self.resource.as_deref(), call.resource.as_ref(), |wanted, it| it.is_named(wanted))
            && agree(self.path.as_deref(), call.path.as_ref(), |wanted, it| is_at_or_below(wanted, it))
            && agree(self.namespace.as_deref(), call.namespace.as_ref(), equal)
            && agree(self.name.as_deref(), call.name.as_ref(), equal)
            && agree(self.user.as_deref(), Some(&request.user), equal)
            && agree(self.user_agent.as_deref(), request.user_agent.as_ref(), |wanted, it| {
                it.contains(wanted)
            })
    }
}

/// True if `wanted` is not set, or if `found` is set and fits it.
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

    fn request(method: &Method, uri: &str) -> RequestAttributes {
        RequestAttributes {
            call: Call::of(method, &uri.parse().unwrap()),
            user: "alice".to_owned(),
            user_agent: Some("kubectl/v1.36 (linux)".to_owned()),
        }
    }

    #[test]
    fn each_method_narrows_the_selection() {
        let request = request(&Method::GET, "/apis/apps/v1/namespaces/shop/deployments/web");
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
            assert_eq!(requests.matches(&request), expected, "{requests:?}");
        }
    }

    #[test]
    fn a_path_includes_all_paths_below_it() {
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
            let request = request(&Method::GET, uri);
            assert_eq!(Requests::all().path(path).matches(&request), expected, "{path} {uri}");
        }
    }

    #[test]
    fn writes_exclude_reads_and_watches() {
        let (one, many) = ("/api/v1/namespaces/shop/pods/web", "/api/v1/namespaces/shop/pods");
        for (method, uri, expected) in [
            (Method::POST, many, true),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", false),
            (Method::PUT, one, true),
            (Method::PATCH, one, true),
            (Method::DELETE, one, true),
            (Method::DELETE, many, true),
            (Method::GET, one, false),
            (Method::GET, many, false),
            (Method::GET, "/api/v1/pods?watch=1", false),
        ] {
            assert_eq!(Requests::writes().matches(&request(&method, uri)), expected, "{method} {uri}");
        }
    }
}
