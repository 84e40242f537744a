//! An API server for requests about one object. Lists and watches are in `world/reading.rs`.

use std::rc::Rc;

use bellwether_engine::{FieldPath, GroupKind, NamespacedName};
use bellwether_memory_cluster::{Rejection, Subresource};
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE, response::Parts};
use serde_json::{Value, json};

use crate::{object::Object, store::Store};

#[derive(Clone, Debug)]
pub(crate) struct ApiResponse {
    pub(crate) parts: Parts,
    pub(crate) body: Vec<u8>,
}

/// What a request changed.
#[derive(Clone, Debug)]
pub(crate) enum RequestEffect {
    /// `before` is None if the object was created.
    Changed { before: Option<Rc<Object>>, after: Rc<Object> },
    /// The object was deleted, or has a deletion timestamp now.
    Deleted(Rc<Object>),
}

impl ApiResponse {
    pub(crate) fn status(code: StatusCode, reason: &str, message: &str) -> Self {
        Self::with(
            code,
            &json!({
                "kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": message,
            }),
        )
    }

    fn with(code: StatusCode, body: &Value) -> Self {
        let mut parts = Response::new(()).into_parts().0;
        parts.status = code;
        Self { parts, body: body.to_string().into_bytes() }
    }

    /// The object's metadata.
    fn of(object: &Object) -> Self {
        let metadata = json!({
            "uid": object.uid(), "resourceVersion": object.metadata()["resourceVersion"],
            "deletionTimestamp": object.metadata()["deletionTimestamp"],
        });
        Self::with(StatusCode::OK, &json!({ "kind": "PartialObjectMetadata", "metadata": metadata }))
    }

    fn rejected(rejection: Rejection) -> Self {
        let (code, reason) = match rejection {
            Rejection::NotFound => (StatusCode::NOT_FOUND, "NotFound"),
            Rejection::AlreadyExists => (StatusCode::CONFLICT, "AlreadyExists"),
            Rejection::OtherUid | Rejection::Modified => (StatusCode::CONFLICT, "Conflict"),
            Rejection::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        };
        Self::status(code, reason, &rejection.to_string())
    }
}

/// The target of a request, parsed from its URI.
struct Address {
    kind: GroupKind,
    namespace: String,
    name: Option<String>,
    subresource: Subresource,
    dry_run: bool,
}

impl Address {
    fn read(store: &Store, request: &Request<Vec<u8>>) -> Option<Self> {
        let uri = request.uri();
        let mut segments = uri.path().split('/').skip(1);
        let group = if segments.next()? == "api" { "" } else { segments.next()? };
        segments.next()?;
        let (namespace, plural) = match segments.next()? {
            "namespaces" => (segments.next()?.to_owned(), segments.next()?),
            plural => (String::new(), plural),
        };
        let is_it = |kind: &GroupKind, plurals: &str| *kind.group == *group && plurals == plural;
        let kind = store.kinds.iter().find(|(kind, served)| is_it(kind, &served.plural))?.0.clone();
        let name = segments.next().map(str::to_owned);
        let subresource =
            if segments.next() == Some("status") { Subresource::Status } else { Subresource::None };
        let dry_run = uri.query().is_some_and(|query| query.contains("dryRun=All"));
        Some(Self { kind, namespace, name, subresource, dry_run })
    }
}

/// Handles a request. The effect is None if it changed nothing.
pub(crate) fn handle(
    store: &mut Store,
    request: &Request<Vec<u8>>,
    now: &str,
) -> (ApiResponse, Option<RequestEffect>) {
    let address = Address::read(store, request).ok_or(Rejection::NotFound);
    match address.and_then(|address| answer(store, &address, request, now)) {
        Ok(answered) => answered,
        Err(rejection) => (ApiResponse::rejected(rejection), None),
    }
}

fn is_apply(request: &Request<Vec<u8>>) -> bool {
    let media_type = request.headers().get(CONTENT_TYPE);
    media_type.is_some_and(|it| it.as_bytes().starts_with(b"application/apply-patch"))
}

/// The preconditions and the fields of a JSON patch.
fn read_json_patch(operations: &Value) -> (Value, Vec<(FieldPath, Value)>) {
    let (mut expected, mut fields) = (json!({}), Vec::new());
    for operation in operations.as_array().into_iter().flatten() {
        let (path, value) = (operation["path"].as_str().unwrap_or_default(), operation["value"].clone());
        match path {
            "/metadata/uid" => expected["uid"] = value,
            "/metadata/resourceVersion" => expected["resourceVersion"] = value,
            _ => {
                let unescaped = |field: &str| field.replace("~1", "/").replace("~0", "~").into();
                fields.push((path.split('/').skip(1).map(unescaped).collect(), value));
            }
        }
    }
    (expected, fields)
}

fn answer(
    store: &mut Store,
    address: &Address,
    request: &Request<Vec<u8>>,
    now: &str,
) -> Result<(ApiResponse, Option<RequestEffect>), Rejection> {
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let kind = &address.kind;
    let Some(name) = &address.name else {
        return Ok(match store.create(body, address.dry_run)? {
            Some(after) => (ApiResponse::of(&after), Some(RequestEffect::Changed { before: None, after })),
            None => (ApiResponse::with(StatusCode::CREATED, &Value::Null), None),
        });
    };
    let name = NamespacedName::new(&address.namespace, name);
    let before = Rc::clone(store.get(kind, &name).ok_or(Rejection::NotFound)?);
    Ok(match *request.method() {
        Method::GET => (ApiResponse::of(&before), None),
        // The store has no field managers.
        Method::PATCH if is_apply(request) => {
            (ApiResponse::status(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", ""), None)
        }
        Method::PATCH if body.is_array() => {
            let (expected, fields) = read_json_patch(&body);
            let after = store.set_fields(kind, &name, address.subresource, &expected, fields)?;
            (ApiResponse::of(&after), Some(RequestEffect::Changed { before: Some(before), after }))
        }
        Method::PATCH => {
            let after = store.patch(kind, &name, address.subresource, &body)?;
            (ApiResponse::of(&after), Some(RequestEffect::Changed { before: Some(before), after }))
        }
        Method::DELETE => {
            store.delete(kind, &name, body["preconditions"]["uid"].as_str(), now)?;
            let done = json!({ "kind": "Status", "status": "Success" });
            (ApiResponse::with(StatusCode::OK, &done), Some(RequestEffect::Deleted(before)))
        }
        _ => (ApiResponse::status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", ""), None),
    })
}
