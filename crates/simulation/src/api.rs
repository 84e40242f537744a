//! What an API server answers to requests that change something, or that look at one object.

use std::rc::Rc;

use bellwether_engine::{Kind, Name};
use http::{Method, Request, Response, StatusCode, response::Parts};
use serde_json::{Value, json};

use crate::{
    object::{Object, merge},
    store::Store,
};

/// An answer, whole.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) parts: Parts,
    pub(crate) body: Vec<u8>,
}

/// What a request has done.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// An object is another than before; none was before if it was created.
    Changed { before: Option<Rc<Object>>, after: Rc<Object> },
    /// An object is deleted, or is about to be.
    Deleted(Rc<Object>),
}

impl Answer {
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

    /// Of the object as it is: its metadata.
    fn of(object: &Object) -> Self {
        let metadata = json!({
            "uid": object.uid(), "resourceVersion": object.metadata()["resourceVersion"],
            "deletionTimestamp": object.metadata()["deletionTimestamp"],
        });
        Self::with(StatusCode::OK, &json!({ "kind": "PartialObjectMetadata", "metadata": metadata }))
    }

    fn conflict(message: &str) -> Self {
        Self::status(StatusCode::CONFLICT, "Conflict", message)
    }

    fn absent() -> Self {
        Self::status(StatusCode::NOT_FOUND, "NotFound", "not found")
    }
}

/// Where a request goes.
struct Address {
    kind: Kind,
    namespace: String,
    name: Option<String>,
    status: bool,
    dry_run: bool,
}

impl Address {
    fn read(store: &Store, request: &Request<Vec<u8>>) -> Option<Self> {
        let uri = request.uri();
        let mut words = uri.path().split('/').skip(1);
        let group = if words.next()? == "api" { "" } else { words.next()? };
        words.next()?;
        let (namespace, plural) = match words.next()? {
            "namespaces" => (words.next()?.to_owned(), words.next()?),
            plural => (String::new(), plural),
        };
        let is_it = |kind: &Kind, plurals: &str| *kind.group == *group && plurals == plural;
        let kind = store.kinds.iter().find(|(kind, served)| is_it(kind, &served.plural))?.0.clone();
        let name = words.next().map(str::to_owned);
        let status = words.next() == Some("status");
        let dry_run = uri.query().is_some_and(|query| query.contains("dryRun=All"));
        Some(Self { kind, namespace, name, status, dry_run })
    }
}

/// Does what a request asks, and answers it.
pub(crate) fn handle(store: &mut Store, request: &Request<Vec<u8>>, now: &str) -> (Answer, Option<Deed>) {
    let Some(address) = Address::read(store, request) else { return (Answer::absent(), None) };
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let Some(name) = &address.name else { return create(store, &address, body) };
    let name = Name::new(&address.namespace, name);
    let Some(object) = store.get(&address.kind, &name).cloned() else { return (Answer::absent(), None) };
    match *request.method() {
        Method::GET => (Answer::of(&object), None),
        Method::PATCH => patch(store, &object, &address, &body),
        Method::DELETE => delete(store, &object, &body, now),
        _ => (Answer::status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", ""), None),
    }
}

fn create(store: &mut Store, address: &Address, body: Value) -> (Answer, Option<Deed>) {
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let image = body["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    if image.is_empty() {
        let why = "spec.containers[0].image: Required value";
        return (Answer::status(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", why), None);
    }
    if store.get(&address.kind, &Name::new(&address.namespace, &name)).is_some() {
        return (Answer::status(StatusCode::CONFLICT, "AlreadyExists", "already exists"), None);
    }
    if address.dry_run {
        return (Answer::with(StatusCode::CREATED, &body), None);
    }
    let after = store.put(body);
    (Answer::of(&after), Some(Deed::Changed { before: None, after }))
}

fn patch(store: &mut Store, before: &Rc<Object>, address: &Address, body: &Value) -> (Answer, Option<Deed>) {
    let expected = &body["metadata"];
    if !expected["uid"].is_null() && expected["uid"] != *before.uid() {
        return (Answer::conflict("Precondition failed: UID in precondition"), None);
    }
    let version = &expected["resourceVersion"];
    if !version.is_null() && *version != before.metadata()["resourceVersion"] {
        return (Answer::conflict("the object has been modified"), None);
    }
    let mut value = before.value.clone();
    if address.status {
        merge(&mut value["status"], &body["status"]);
    } else {
        let mut body = body.clone();
        body.as_object_mut().map(|fields| fields.remove("status"));
        merge(&mut value, &body);
    }
    // What changes nothing has no new version.
    if value == before.value {
        let after = Rc::clone(before);
        return (Answer::of(&after), Some(Deed::Changed { before: Some(Rc::clone(before)), after }));
    }
    let after = store.put(value);
    (Answer::of(&after), Some(Deed::Changed { before: Some(Rc::clone(before)), after }))
}

fn delete(store: &mut Store, object: &Rc<Object>, body: &Value, now: &str) -> (Answer, Option<Deed>) {
    let expected = &body["preconditions"]["uid"];
    if !expected.is_null() && *expected != *object.uid() {
        return (Answer::conflict("Precondition failed: UID in precondition, UID in object meta"), None);
    }
    // A Pod ends its containers first; whoever runs it removes it then.
    if object.kind == Kind::pod() {
        if !object.is_deleting() {
            let mut value = object.value.clone();
            value["metadata"]["deletionTimestamp"] = json!(now);
            store.put(value);
        }
    } else {
        store.remove(&object.kind, &object.name);
    }
    (
        Answer::with(StatusCode::OK, &json!({ "kind": "Status", "status": "Success" })),
        Some(Deed::Deleted(Rc::clone(object))),
    )
}
