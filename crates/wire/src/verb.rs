//! HTTP requests to an API server, by verb.

use http::{
    Method, Request,
    header::{ACCEPT, CONTENT_TYPE},
};

use crate::FIELD_MANAGER;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
/// The only content type of server-side apply that every API server accepts. JSON is valid YAML.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Asks for the metadata of the object only. Servers that do not support this send the whole object.
const ONLY_METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.9";

/// The response to a write contains the metadata of the object at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    GetMetadata,
    /// The body is the object.
    Create,
    /// The body is the object.
    Update,
    /// The body is a JSON merge patch.
    MergePatch,
    /// The body is a JSON patch.
    JsonPatch,
    /// Server-side apply. The body holds the fields to own; a field of another manager is a conflict.
    Apply,
    /// The body is `DeleteOptions`.
    Delete,
}

impl Verb {
    /// The verb in RBAC rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get | Self::GetMetadata => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::MergePatch | Self::JsonPatch | Self::Apply => "patch",
            Self::Delete => "delete",
        }
    }

    /// Fails only if `path` is not a valid URI path.
    pub fn request(self, path: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, http::Error> {
        self.build(path, false, body)
    }

    pub fn dry_run(self, path: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, http::Error> {
        self.build(path, true, body)
    }

    /// Server-side apply as this field manager.
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
            Self::JsonPatch => (Method::PATCH, Some(JSON_PATCH), ONLY_METADATA),
            Self::Apply => (Method::PATCH, Some(APPLY_PATCH), ONLY_METADATA),
            // The response to a deletion can be a `Status`.
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
    #[case::json_patch(Verb::JsonPatch, "PATCH /x?fieldManager=bellwether", JSON_PATCH, ONLY_METADATA)]
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
    fn a_dry_run_has_a_query_parameter(#[case] verb: Verb, #[case] line: &str) {
        let request = verb.dry_run("/x", Vec::new()).unwrap();
        assert_eq!(format!("{} {}", request.method(), request.uri()), line);
    }

    #[test]
    fn an_invalid_path_is_an_error() {
        assert!(Verb::Get.request("/a b", Vec::new()).is_err());
    }
}
