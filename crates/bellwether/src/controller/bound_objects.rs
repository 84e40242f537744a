//! The rows of bound objects over HTTP: from the facts of the engine. What they lack, the controller reads from the
//! hub and the clusters for the request, and does not keep.

use std::{collections::BTreeMap, future::Future, io, pin::Pin, sync::Arc};

use bellwether_engine::{
    BoundRow, BoundRowKey, BoundRows, BoundRowsQuery, GroupKind, NamespacedName, RowFilter,
};
use bellwether_inspect::fleet::{Completion, Fields, Selector, Shape, is_complete, tables_of_bound};
use bellwether_kube_io::bound_objects::{self as fleet, HubKind, KindError, ReadObject};
use bellwether_model::LAST_APPLIED;
use bellwether_server::{
    FullRow, NamedSpec, ObjectsRequest, Permit, QueryRequest, Refusal, RowReader, RowsPage, RowsRequest,
    ServedKind,
};
use bellwether_tables::Collector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};
use tokio::task::spawn_blocking;

use crate::query::Answer;

/// Of the engine, for a page: then it ends, however few rows it has.
const MAX_STEPS: usize = 50;

/// Rows of a query in one step of the engine.
const STEP: usize = 500;

/// Rows of one query: a bound of its memory.
const MAX_ROWS: usize = 20_000;

/// Objects that one query reads from clusters.
const MAX_READ: usize = 2_000;

/// Of a response to a query, in bytes.
const MAX_RESPONSE: usize = 64 << 20;

/// Of a label selector, in bytes: the engine compares it with the labels of every object.
const MAX_SELECTOR: usize = 4096;

const NOT_KNOWN: &str =
    "the controller does not know yet which objects are bound. Try again when /readyz returns 200";

const REMEDY: &str = "the controller does not read it in clusters. Bind it, or read the clusters themselves: \
                      bellwether query --cluster NAME=KUBECONFIG";

pub(super) struct FleetObjects(pub(super) fleet::BoundObjects);

type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

impl RowReader for FleetObjects {
    fn kind(&self, word: &str) -> Result<Option<ServedKind>, Refusal> {
        served(self.0.kind(word))
    }

    fn discover<'a>(&'a self, word: &'a str) -> Pending<'a, Option<ServedKind>> {
        Box::pin(async move { served(self.0.discover(word).await) })
    }

    fn rows(&self, request: RowsRequest, permit: Permit) -> Pending<'_, RowsPage> {
        Box::pin(self.page(request, permit))
    }

    fn query(&self, request: QueryRequest, kind: GroupKind, permit: Permit) -> Pending<'_, Vec<u8>> {
        Box::pin(self.evaluate(request, kind, permit))
    }
}

fn served(found: Result<HubKind, KindError>) -> Result<Option<ServedKind>, Refusal> {
    match found {
        Ok(HubKind { kind, served }) => Ok(Some((kind, served))),
        Err(KindError::NoSuchKind(unknown)) if unknown.candidates.is_empty() => Ok(None),
        // Discovery is open to every user.
        Err(KindError::NoSuchKind(ambiguous)) => Err(Refusal::Invalid(ambiguous.to_string())),
        Err(KindError::Unknown(why)) => Err(Refusal::Unavailable(why)),
    }
}

impl FleetObjects {
    async fn page(&self, request: RowsRequest, permit: Permit) -> Result<RowsPage, Refusal> {
        let RowsRequest { mut query, cluster_selector, full } = request;
        query.filter.cluster_selector = selector(cluster_selector.as_deref())?;
        let (kind, limit, is_first) = (query.kind.clone(), query.limit, query.after.is_none());
        let only = query.names.first().cloned();
        let (mut rows, mut next, mut is_any_bound) = (Vec::new(), None, false);
        for _ in 0..MAX_STEPS {
            query.limit = limit - rows.len();
            let page = self.step(query.clone()).await?;
            rows.extend(page.rows);
            is_any_bound |= page.is_any_bound;
            (query.after, next) = (page.next.clone(), page.next);
            if next.is_none() || rows.len() == limit {
                break;
            }
        }
        if let Some(name) = only.filter(|_| is_first && !is_any_bound) {
            let namespace = query.namespace.as_deref().unwrap_or_default();
            let name = NamespacedName::new(namespace, &name);
            return Err(self.not_bound(&kind, &name).await.map_or(Refusal::Absent, Refusal::NotBound));
        }
        let rows =
            if full { self.full(kind, rows, permit).await? } else { rows.into_iter().map(alone).collect() };
        Ok(RowsPage { rows, next })
    }

    async fn step(&self, query: BoundRowsQuery) -> Result<BoundRows, Refusal> {
        self.0.rows(query).await.ok_or_else(|| Refusal::Unavailable(NOT_KNOWN.to_owned()))
    }

    /// A sentence about an object without rows; `None` if the object does not exist in the hub.
    async fn not_bound(&self, kind: &GroupKind, name: &NamespacedName) -> Option<String> {
        let served = self.0.served(kind)?;
        let exists = self.0.exists_in_hub(&HubKind { kind: kind.clone(), served }, name).await;
        // Without the permission to read it, the controller only knows that no policy binds it.
        exists.unwrap_or(true).then(|| format!("no BindingPolicy binds {} {name}: {REMEDY}", kind.kind))
    }

    /// The rows with the objects as their clusters have them now.
    async fn full(
        &self,
        kind: GroupKind,
        rows: Vec<BoundRow>,
        permit: Permit,
    ) -> Result<Vec<FullRow>, Refusal> {
        let keys = rows.iter().filter(|row| row.found != Some(false)).map(|row| row.key.clone());
        let mut objects = self.0.objects(&kind, keys.collect()).await.into_iter();
        let with_objects = move || {
            let with_object = |row: BoundRow| {
                let object = if row.found == Some(false) { None } else { objects.next() };
                let object = match object {
                    None | Some(Ok(None)) => None,
                    Some(Ok(Some(json))) => Some(without_large_fields(&kind, &json)),
                    Some(Err(why)) => Some(Err(why)),
                };
                FullRow { row, object }
            };
            rows.into_iter().map(with_object).collect()
        };
        counted(permit, with_objects).await
    }

    async fn evaluate(
        &self,
        request: QueryRequest,
        kind: GroupKind,
        permit: Permit,
    ) -> Result<Vec<u8>, Refusal> {
        let collectors = compile(&request.collectors)?;
        let shape = if request.one_table { Shape::OneTable } else { Shape::TableForEachObject };
        let (mut rows, mut errors) = self.bound_rows(&request.objects, &kind, &collectors).await?;
        let lacking = self.read_lacking(&rows, &kind).await?;
        let evaluate = move || {
            let fields = Fields::of(collectors.iter().map(|collector| &**collector));
            errors.extend(complete(&mut rows, lacking, &Completion { kind: &kind, fields: &fields }));
            let evaluated = tables_of_bound(&rows, &kind, &collectors, shape);
            let answers = evaluated.iter().flat_map(|evaluated| {
                request.collectors.iter().zip(&evaluated.tables).map(move |(named, table)| {
                    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                    let limit =
                        named.limit.or_else(|| u64::try_from(named.spec.limit).ok()).unwrap_or(u64::MAX);
                    let page = table.page(&named.name, size(named.offset), size(limit));
                    Answer::new(evaluated, page, named.columns.as_deref(), named.offset)
                })
            });
            response(answers, &errors)
        };
        counted(permit, evaluate).await?
    }

    /// All rows, and a sentence for each named object without any.
    async fn bound_rows(
        &self,
        objects: &ObjectsRequest,
        kind: &GroupKind,
        collectors: &[Arc<Collector>],
    ) -> Result<(Vec<BoundRow>, Vec<String>), Refusal> {
        // Without it, the namespace that the user may read would be no filter.
        let Some(served) = self.0.served(kind) else {
            return Err(Refusal::Unavailable(format!("the hub does not serve {kind} at the moment")));
        };
        let namespace = if served.namespaced { objects.namespace.as_deref() } else { Some("") };
        let mut query = BoundRowsQuery {
            namespace: namespace.map(Into::into),
            names: objects.names.iter().map(|name| name.as_str().into()).collect(),
            objects: selector(objects.label_selector.as_deref())?,
            filter: RowFilter::default(),
            collectors: Some(collectors.to_vec()),
            ..BoundRowsQuery::new(kind.clone(), STEP)
        };
        let mut rows: Vec<BoundRow> = Vec::new();
        loop {
            let page = self.step(query.clone()).await?;
            rows.extend(page.rows);
            if rows.len() > MAX_ROWS {
                let why = format!("more than {MAX_ROWS} rows. Name objects, a namespace or a label selector");
                return Err(Refusal::Invalid(why));
            }
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        let mut errors = Vec::new();
        for name in &objects.names {
            if rows.iter().any(|row| *row.key.object.name == **name) {
                continue;
            }
            let named = NamespacedName::new(namespace.unwrap_or_default(), name);
            let why = self.not_bound(kind, &named).await;
            // The user may read the object, and learns that it does not exist.
            errors.push(why.unwrap_or_else(|| format!("{} {named} not found in the hub", kind.kind)));
        }
        if rows.is_empty() && errors.is_empty() {
            errors.push(format!("no BindingPolicy binds a {}: {REMEDY}", kind.kind));
        }
        Ok((rows, errors))
    }

    /// Reads the objects whose facts lack a field.
    async fn read_lacking(&self, rows: &[BoundRow], kind: &GroupKind) -> Result<Lacking, Refusal> {
        let keys: Vec<_> = rows.iter().filter(|row| lacks_returned(row)).map(|row| row.key.clone()).collect();
        let of_hub = rows.iter().filter(|row| lacks_obj(row));
        let mut hub_keys: Vec<_> = of_hub
            .map(|row| BoundRowKey { object: row.key.object.clone(), cluster: Arc::default() })
            .collect();
        hub_keys.dedup();
        let count = hub_keys.len() + keys.len();
        if count > MAX_READ {
            return Err(Refusal::Invalid(format!(
                "the collector reads fields that the controller does not keep, of {count} objects; at most {MAX_READ} \
                 are read. Name fewer objects, or name a StatusCollector with these fields in a BindingPolicy"
            )));
        }
        let (in_hub, in_clusters) =
            tokio::join!(self.0.objects(kind, hub_keys.clone()), self.0.objects(kind, keys));
        Ok(Lacking { hub_keys, in_hub, in_clusters })
    }
}

/// The objects of which the facts lack a field that a collector reads.
struct Lacking {
    hub_keys: Vec<BoundRowKey>,
    in_hub: Vec<ReadObject>,
    /// In the order of the rows that [lack](lacks_returned) them.
    in_clusters: Vec<ReadObject>,
}

fn lacks_obj(row: &BoundRow) -> bool {
    row.variables.as_deref().is_some_and(|variables| variables.obj.is_none())
}

fn lacks_returned(row: &BoundRow) -> bool {
    row.variables.as_deref().is_some_and(|variables| variables.returned.is_none())
}

/// Returns a sentence for each cluster that did not answer.
fn complete(rows: &mut [BoundRow], lacking: Lacking, completion: &Completion<'_>) -> Vec<String> {
    let mut errors = set_obj(rows, &lacking.hub_keys, lacking.in_hub, completion);
    let incomplete = rows.iter_mut().filter(|row| lacks_returned(row));
    for (row, object) in incomplete.zip(lacking.in_clusters) {
        match object {
            Ok(json) => completion.complete(row, json.as_deref()),
            Err(why) => {
                Completion::unread(row);
                errors.push(format!("cluster {}: {why}", row.key.cluster));
            }
        }
    }
    debug_assert!(rows.iter().all(is_complete));
    errors.sort();
    errors.dedup();
    errors
}

/// Runs on another thread, with its permit until it ends, also if the request does not wait for it any more.
async fn counted<T: Send + 'static>(
    permit: Permit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let work = spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    work.await.map_err(|error| Refusal::Unavailable(error.to_string()))
}

/// The JSON of a `QueryResponse`. Answers are made one by one.
fn response(answers: impl Iterator<Item = Answer> + Clone, errors: &[String]) -> Result<Vec<u8>, Refusal> {
    #[derive(Serialize)]
    struct Response<'a, R> {
        results: R,
        errors: &'a [String],
    }
    struct Results<I>(I);
    impl<I: Iterator<Item = Answer> + Clone> Serialize for Results<I> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(self.0.clone())
        }
    }
    struct Bounded(Vec<u8>);
    impl io::Write for Bounded {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            if self.0.len() + part.len() > MAX_RESPONSE {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.0.extend_from_slice(part);
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut json = Bounded(Vec::new());
    match serde_json::to_writer(&mut json, &Response { results: Results(answers), errors }) {
        Ok(()) => Ok(json.0),
        Err(error) if error.is_io() => Err(Refusal::Invalid(
            "the response is larger than 64 MiB. Select fewer columns, or name fewer objects".to_owned(),
        )),
        Err(error) => Err(Refusal::Unavailable(error.to_string())),
    }
}

/// Sets the variable `obj` of the rows that lack it.
fn set_obj(
    rows: &mut [BoundRow],
    keys: &[BoundRowKey],
    objects: Vec<ReadObject>,
    completion: &Completion<'_>,
) -> Vec<String> {
    let mut errors = Vec::new();
    let mut of_hub = BTreeMap::new();
    for (key, object) in keys.iter().zip(objects) {
        let obj = match object {
            Ok(Some(json)) => completion.obj(&json),
            Ok(None) => Ok(bellwether_model::Value::Null),
            Err(why) => Err(why),
        };
        let obj = obj.unwrap_or_else(|why| {
            errors.push(format!("hub: {why}"));
            bellwether_model::Value::Null
        });
        of_hub.insert(&key.object, Arc::new(obj));
    }
    for row in rows {
        if let Some(variables) = row.variables.as_deref_mut().filter(|variables| variables.obj.is_none()) {
            variables.obj = of_hub.get(&row.key.object).cloned();
        }
    }
    errors
}

fn alone(row: BoundRow) -> FullRow {
    FullRow { row, object: None }
}

fn selector(text: Option<&str>) -> Result<LabelSelector, Refusal> {
    if text.is_some_and(|text| text.len() > MAX_SELECTOR) {
        return Err(Refusal::Invalid(format!("a label selector is longer than {MAX_SELECTOR} bytes")));
    }
    let parsed = text.map(Selector::parse).transpose().map_err(Refusal::Invalid)?;
    Ok(parsed.unwrap_or_default().to_label_selector())
}

fn compile(specs: &[NamedSpec]) -> Result<Vec<Arc<Collector>>, Refusal> {
    let compile = |NamedSpec { name, spec, .. }: &NamedSpec| {
        Collector::compile(spec).map(Arc::new).map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            Refusal::Invalid(format!("invalid collector {name}: {}", errors.join("; ")))
        })
    };
    specs.iter().map(compile).collect()
}

/// `metadata`, `spec` and `status`, without managed fields and the last applied configuration.
fn without_large_fields(kind: &GroupKind, json: &[u8]) -> Result<Json, String> {
    let mut object: Map<String, Json> =
        serde_json::from_slice(json).map_err(|error| format!("invalid object in the response: {error}"))?;
    object.retain(|field, _| matches!(&**field, "apiVersion" | "kind" | "metadata" | "spec" | "status"));
    // Of Secrets and ConfigMaps, only the metadata was requested: their kind is PartialObjectMetadata.
    object.insert("kind".to_owned(), Json::from(&*kind.kind));
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    Ok(Json::Object(object))
}

#[cfg(test)]
mod tests {
    use std::iter;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_has_a_bounded_size() {
        let response = |length: usize| response(iter::empty(), &["x".repeat(length)]);
        assert_eq!(response(1).as_deref(), Ok(&br#"{"results":[],"errors":["x"]}"#[..]));
        let Err(Refusal::Invalid(why)) = response(MAX_RESPONSE) else { panic!("it is too large") };
        assert!(why.starts_with("the response is larger than 64 MiB. "), "{why}");
    }

    #[test]
    fn large_and_secret_fields_are_left_out() {
        let object = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "data": {"password": "cGFzc3dvcmQ="},
            "metadata": {"name": "db", "managedFields": [{}], "annotations": {LAST_APPLIED: "{}", "a": "b"}},
            "spec": {"a": 1}, "status": {},
        });
        let left = without_large_fields(&GroupKind::new("", "Secret"), object.to_string().as_bytes());
        let expected = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "Secret", "metadata": {"name": "db", "annotations": {"a": "b"}},
            "spec": {"a": 1}, "status": {},
        });
        assert_eq!(left, Ok(expected));
        assert!(without_large_fields(&GroupKind::pod(), b"[]").is_err());
    }
}
