//! The rows of bound objects over HTTP: from the engine's memory as far as it goes, completed by objects that are
//! read for the request and not kept.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use bellwether_engine::{
    BoundRow, BoundRowKey, BoundRows, BoundRowsQuery, GroupKind, NamespacedName, RowFilter, ServedResource,
};
use bellwether_inspect::fleet::{Completion, Fields, Selector, Shape, is_complete, tables_of_bound};
use bellwether_kube_io::bound_objects::{self as fleet, HubKind, KindError, ReadObject};
use bellwether_model::LAST_APPLIED;
use bellwether_server::{
    BoundObjects, FullRow, NamedSpec, ObjectsRequest, QueryRequest, QueryResponse, Refusal, RowsPage,
    RowsRequest,
};
use bellwether_tables::Collector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value as Json};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

use crate::query::Answer;

/// A page of rows is made in so many steps of the engine at most. Then it ends, however few rows it has.
const MAX_STEPS: usize = 50;

/// Rows in one step of the engine, of a query.
const STEP: usize = 500;

/// Rows of one query: a bound of its memory.
const MAX_ROWS: usize = 20_000;

/// Objects that one query reads from clusters.
const MAX_READ: usize = 2_000;

/// Requests that need much memory, at the same time. Others wait.
const LARGE_REQUESTS: usize = 4;

const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

const NOT_KNOWN: &str = "it is not known yet which objects are bound. Try again when /readyz returns 200";

const REMEDY: &str = "the controller does not read it in clusters. Bind it, or read the clusters themselves: \
                      bellwether query --cluster NAME=KUBECONFIG";

pub(super) struct FleetObjects {
    objects: fleet::BoundObjects,
    large_requests: Semaphore,
}

type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

impl BoundObjects for FleetObjects {
    fn kind<'a>(
        &'a self,
        word: &'a str,
        as_kubectl: bool,
    ) -> Pending<'a, Option<(GroupKind, ServedResource)>> {
        Box::pin(async move {
            match self.objects.kind(word, as_kubectl).await {
                Ok(HubKind { kind, served }) => Ok(Some((kind, served))),
                Err(KindError::NoSuchKind(unknown)) if unknown.candidates.is_empty() => Ok(None),
                // Discovery is open to every user.
                Err(KindError::NoSuchKind(ambiguous)) => Err(Refusal::Invalid(ambiguous.to_string())),
                Err(KindError::Unknown(why)) => Err(Refusal::Unavailable(why)),
            }
        })
    }

    fn rows(&self, request: RowsRequest) -> Pending<'_, RowsPage> {
        Box::pin(self.page(request))
    }

    fn query(&self, request: QueryRequest, kind: GroupKind) -> Pending<'_, QueryResponse> {
        Box::pin(async move {
            let evaluated = timeout(QUERY_TIMEOUT, self.evaluate(request, kind)).await;
            let why = || format!("no answer within {QUERY_TIMEOUT:?}. Name fewer objects");
            evaluated.unwrap_or_else(|_| Err(Refusal::Unavailable(why())))
        })
    }
}

impl FleetObjects {
    pub(super) fn new(objects: fleet::BoundObjects) -> Self {
        Self { objects, large_requests: Semaphore::new(LARGE_REQUESTS) }
    }

    async fn page(&self, request: RowsRequest) -> Result<RowsPage, Refusal> {
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
            return Err(self.unbound(&kind, &NamespacedName::new(namespace, &name)).await);
        }
        // The semaphore is never closed.
        let _permit = if full { self.large_requests.acquire().await.ok() } else { None };
        let rows = if full { self.full(&kind, rows).await } else { rows.into_iter().map(alone).collect() };
        Ok(RowsPage { rows, next })
    }

    async fn step(&self, query: BoundRowsQuery) -> Result<BoundRows, Refusal> {
        self.objects.rows(query).await.ok_or_else(|| Refusal::Unavailable(NOT_KNOWN.to_owned()))
    }

    /// Why an object has no rows.
    async fn unbound(&self, kind: &GroupKind, name: &NamespacedName) -> Refusal {
        let served = self.objects.served(kind);
        let exists = match served {
            Some(served) => self.objects.exists_in_hub(&HubKind { kind: kind.clone(), served }, name).await,
            None => Ok(false),
        };
        match exists {
            Ok(false) => Refusal::Absent,
            // Without the permission to read it, the controller only knows that nothing binds it.
            Ok(true) | Err(_) => {
                Refusal::NotBound(format!("{} {name} is bound by no BindingPolicy: {REMEDY}", kind.kind))
            }
        }
    }

    /// The rows with the objects as their clusters have them now.
    async fn full(&self, kind: &GroupKind, rows: Vec<BoundRow>) -> Vec<FullRow> {
        let keys = rows.iter().filter(|row| row.found != Some(false)).map(|row| row.key.clone());
        let objects = self.objects.objects(kind, keys.collect()).await;
        let mut objects = objects.into_iter();
        let with_object = |row: BoundRow| {
            let object = if row.found == Some(false) { None } else { objects.next() };
            let object = match object {
                None | Some(Ok(None)) => None,
                Some(Ok(Some(json))) => Some(without_large_fields(kind, &json)),
                Some(Err(why)) => Some(Err(why)),
            };
            FullRow { row, object }
        };
        rows.into_iter().map(with_object).collect()
    }

    async fn evaluate(&self, request: QueryRequest, kind: GroupKind) -> Result<QueryResponse, Refusal> {
        let collectors = compile(&request.collectors)?;
        // The semaphore is never closed.
        let _permit = self.large_requests.acquire().await.ok();
        let shape = if request.one_table { Shape::OneTable } else { Shape::TableForEachObject };
        let (mut rows, mut errors) = self.bound_rows(&request.objects, &kind, &collectors).await?;
        let fields = Fields::of(collectors.iter().map(|collector| &**collector));
        errors.extend(self.complete(&mut rows, &Completion { kind: &kind, fields: &fields }).await?);
        let evaluate = move || {
            let evaluated = tables_of_bound(&rows, &kind, &collectors, shape);
            let answers = evaluated.iter().flat_map(|evaluated| {
                request.collectors.iter().zip(&evaluated.tables).map(|(named, table)| {
                    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                    let limit =
                        named.limit.or_else(|| u64::try_from(named.spec.limit).ok()).unwrap_or(u64::MAX);
                    let page = table.page(&named.name, size(named.offset), size(limit));
                    let answer = Answer::new(evaluated, page, named.columns.as_deref(), named.offset);
                    serde_json::to_value(answer)
                })
            });
            answers.collect::<Result<Vec<_>, _>>()
        };
        let results =
            spawn_blocking(evaluate).await.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        let results = results.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        Ok(QueryResponse { results, errors })
    }

    /// All rows, and a sentence for each named object without any.
    async fn bound_rows(
        &self,
        objects: &ObjectsRequest,
        kind: &GroupKind,
        collectors: &[Arc<Collector>],
    ) -> Result<(Vec<BoundRow>, Vec<String>), Refusal> {
        // Without it, the namespace that the user may read would be no filter.
        let Some(served) = self.objects.served(kind) else {
            return Err(Refusal::Unavailable(format!("the hub does not serve {kind} at the moment")));
        };
        let namespace = objects.namespace.as_deref().filter(|_| served.namespaced);
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
            match self.unbound(kind, &named).await {
                // The user may read it, and learns that it does not exist.
                Refusal::Absent => errors.push(format!("{} {named} not found in the hub", kind.kind)),
                Refusal::NotBound(why) | Refusal::Invalid(why) | Refusal::Unavailable(why) => {
                    errors.push(why);
                }
            }
        }
        if rows.is_empty() && errors.is_empty() {
            errors.push(format!("no {} is bound by a BindingPolicy: {REMEDY}", kind.kind));
        }
        Ok((rows, errors))
    }

    /// Reads the objects whose facts lack a field. Returns a sentence for each cluster that did not answer.
    async fn complete(
        &self,
        rows: &mut [BoundRow],
        completion: &Completion<'_>,
    ) -> Result<Vec<String>, Refusal> {
        let lacks = |row: &BoundRow, is_of_hub: bool| {
            let variables = row.variables.as_deref();
            variables.is_some_and(|it| if is_of_hub { it.obj.is_none() } else { it.returned.is_none() })
        };
        let mut of_hub: Vec<_> =
            rows.iter().filter(|row| lacks(row, true)).map(|row| row.key.object.clone()).collect();
        of_hub.dedup();
        let incomplete = |row: &&mut BoundRow| lacks(row, false);
        let keys: Vec<_> = rows.iter().filter(|row| lacks(row, false)).map(|row| row.key.clone()).collect();
        if of_hub.len() + keys.len() > MAX_READ {
            return Err(Refusal::Invalid(format!(
                "the collector reads fields that the controller does not keep, of {} objects; at most {MAX_READ} are \
                 read. Name fewer objects, or name a StatusCollector with these fields in a BindingPolicy",
                of_hub.len() + keys.len()
            )));
        }
        let hub_keys = of_hub.into_iter().map(|object| BoundRowKey { object, cluster: Arc::default() });
        let hub_keys: Vec<_> = hub_keys.collect();
        let (in_hub, in_clusters) = tokio::join!(
            self.objects.objects(completion.kind, hub_keys.clone()),
            self.objects.objects(completion.kind, keys)
        );
        let mut errors = set_obj(rows, &hub_keys, in_hub, completion);
        for (row, object) in rows.iter_mut().filter(incomplete).zip(in_clusters) {
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
        Ok(errors)
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
        of_hub.insert(&key.object, obj);
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
    use serde_json::json;

    use super::*;

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
