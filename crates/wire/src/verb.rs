//! What is asked of an API server, and the HTTP request for it.

use http::{
    Method, Request,
    header::{ACCEPT, CONTENT_TYPE},
};

use crate::FIELD_MANAGER;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// The one type that every API server takes for it. JSON is YAML, too.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Of the object only the metadata are wanted. API servers that cannot leave the rest out may send it.
const ONLY_METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.9";

/// What is asked of an API server. The answer to a write has the metadata of the object at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// An object, whole.
    Get,
    /// The metadata of an object.
    GetMetadata,
    /// Create an object: the body is the object.
    Create,
    /// Replace an object: the body is the object.
    Update,
    /// Change an object: the body is a JSON merge patch.
    MergePatch,
    /// Server-side apply: the body has the fields that are ours. A field of another manager is a conflict.
    Apply,
    /// Delete an object: the body has `DeleteOptions`.
    Delete,
}

impl Verb {
    /// As rules of RBAC have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get | Self::GetMetadata => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::MergePatch | Self::Apply => "patch",
            Self::Delete => "delete",
        }
    }

    /// The request. It fails only for a path that makes no address.
    pub fn request(self, path: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, http::Error> {
        self.build(path, false, body)
    }

    /// The request to only try it.
    pub fn dry_run(self, path: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, http::Error> {
        self.build(path, true, body)
    }

    /// The request to apply fields as this manager, by force or not.
    pub fn apply(
        path: &str,
        manager: &str,
        force: bool,
        body: Vec<u8>,
    ) -> Result<Request<Vec<u8>>, http::Error> {
        Request::patch(format!("{path}?fieldManager={manager}&force={force}"))
            .header(CONTENT_TYPE, APPLY_PATCH)
            .header(ACCEPT, ONLY_METADATA)
            .body(body)
    }

    fn build(self, path: &str, dry_run: bool, body: Vec<u8>) -> Result<Request<Vec<u8>>, http::Error> {
        let (method, content, accept) = match self {
            Self::Get => (Method::GET, None, JSON),
            Self::GetMetadata => (Method::GET, None, ONLY_METADATA),
            Self::Create => (Method::POST, Some(JSON), ONLY_METADATA),
            Self::Update => (Method::PUT, Some(JSON), ONLY_METADATA),
            Self::MergePatch => (Method::PATCH, Some(MERGE_PATCH), ONLY_METADATA),
            Self::Apply => (Method::PATCH, Some(APPLY_PATCH), ONLY_METADATA),
            // What is told of a deletion is no object.
            Self::Delete => (Method::DELETE, Some(JSON), JSON),
        };
        let has_manager = !matches!(self, Self::Get | Self::GetMetadata | Self::Delete);
        let query = match (has_manager, dry_run) {
            (true, false) => format!("?fieldManager={FIELD_MANAGER}"),
            (true, true) => format!("?fieldManager={FIELD_MANAGER}&dryRun=All"),
            (false, true) => "?dryRun=All".to_owned(),
            (false, false) => String::new(),
        };
        let mut request =
            Request::builder().method(method).uri(format!("{path}{query}")).header(ACCEPT, accept);
        if let Some(content) = content {
            request = request.header(CONTENT_TYPE, content);
        }
        request.body(body)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::get(Verb::Get, "GET /x", "", JSON)]
    #[case::get_metadata(Verb::GetMetadata, "GET /x", "", ONLY_METADATA)]
    #[case::create(Verb::Create, "POST /x?fieldManager=bellwether", JSON, ONLY_METADATA)]
    #[case::update(Verb::Update, "PUT /x?fieldManager=bellwether", JSON, ONLY_METADATA)]
    #[case::merge_patch(Verb::MergePatch, "PATCH /x?fieldManager=bellwether", MERGE_PATCH, ONLY_METADATA)]
    #[case::apply(Verb::Apply, "PATCH /x?fieldManager=bellwether", APPLY_PATCH, ONLY_METADATA)]
    #[case::delete(Verb::Delete, "DELETE /x", JSON, JSON)]
    fn each_verb_has_its_request(
        #[case] verb: Verb,
        #[case] line: &str,
        #[case] content: &str,
        #[case] accept: &str,
    ) {
        let request = verb.request("/x", b"{}".to_vec()).unwrap();
        assert_eq!(format!("{} {}", request.method(), request.uri()), line);
        let header = |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
        assert_eq!((header(CONTENT_TYPE), header(ACCEPT)), (content, accept));
    }

    #[rstest]
    #[case::create(Verb::Create, "POST /x?fieldManager=bellwether&dryRun=All")]
    #[case::delete(Verb::Delete, "DELETE /x?dryRun=All")]
    fn a_dry_run_is_asked_for(#[case] verb: Verb, #[case] line: &str) {
        let request = verb.dry_run("/x", Vec::new()).unwrap();
        assert_eq!(format!("{} {}", request.method(), request.uri()), line);
    }

    #[test]
    fn what_is_no_path_makes_no_request() {
        assert!(Verb::Get.request("/a b", Vec::new()).is_err());
    }
}
