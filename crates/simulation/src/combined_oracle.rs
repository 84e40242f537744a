//! The oracle for BindingPolicies: what they bind, and the CombinedStatuses, computed from scratch.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_engine::{GroupKind, NamespacedName};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    collectors::{Row, samples},
    inventory::Labels,
    object::Object,
    site::Site,
    store::Store,
};

/// All clusters as they are.
pub(crate) struct Fleet<'a> {
    pub(crate) hub: &'a Store,
    /// The clusters in the inventory.
    pub(crate) clusters: BTreeMap<Site, Member<'a>>,
    pub(crate) now: Timestamp,
}

/// A cluster in the inventory.
pub(crate) struct Member<'a> {
    pub(crate) labels: &'a Labels,
    pub(crate) uid: String,
    pub(crate) store: &'a Store,
    /// Nothing has arrived from it for longer than any threshold.
    pub(crate) is_stale: bool,
}

/// An object under a BindingPolicy.
pub(crate) struct Binding {
    pub(crate) policy: Rc<Object>,
    pub(crate) object: Rc<Object>,
    /// Names of StatusCollectors, in order.
    pub(crate) collectors: Vec<String>,
    pub(crate) wants_singleton: bool,
    pub(crate) clusters: Vec<Site>,
}

impl Binding {
    /// The CombinedStatus of the binding.
    pub(crate) fn output(&self) -> NamespacedName {
        let namespace = match &*self.object.name.namespace {
            "" => "bellwether-report",
            namespace => namespace,
        };
        NamespacedName::new(namespace, &format!("{}.{}", self.object.uid(), self.policy.uid()))
    }
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether a label selector in JSON matches.
pub(crate) fn selects(selector: &Value, labels: &Labels) -> bool {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    equal.into_iter().all(|(key, value)| labels.get(key).is_some_and(|label| *value == **label))
        && expressions.all(|expression| {
            let label = expression["key"].as_str().and_then(|key| labels.get(key));
            let is_in = label.is_some_and(|label| strings(&expression["values"]).contains(&&**label));
            match expression["operator"].as_str() {
                Some("In") => is_in,
                Some("NotIn") => !is_in,
                Some("Exists") => label.is_some(),
                _ => label.is_none(),
            }
        })
}

fn labels_of(object: &Object) -> Labels {
    let labels = object.metadata()["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Whether a list of names is empty, or has a name or a wildcard.
fn names(list: &Value, name: &str) -> bool {
    let list = strings(list);
    list.is_empty() || list.contains(&"*") || list.contains(&name)
}

/// Whether a clause of a policy may match objects of a kind with this plural.
pub(crate) fn matches_kind(clause: &Value, kind: &GroupKind, plural: &str) -> bool {
    let resources = strings(&clause["resources"]);
    let is_any = resources.is_empty() || resources.contains(&"*");
    let is_left_out = kind.is_bellwether() || matches!(&*kind.kind, "EndpointSlice");
    clause["apiGroup"].as_str().is_none_or(|group| group == "*" || *group == *kind.group)
        && names(&clause["resources"], plural)
        && *kind != GroupKind::bellwether("CombinedStatus")
        && !(is_any && is_left_out)
}

/// Whether a clause of a policy matches an object of a kind with this plural.
pub(crate) fn matches(clause: &Value, object: &Object, plural: &str) -> bool {
    let labels = labels_of(object);
    let selectors = clause["objectSelectors"].as_array().cloned().unwrap_or_default();
    let namespace = &*object.name.namespace;
    let in_namespace = if namespace.is_empty() {
        names(&clause["namespaces"], "")
    } else {
        names(&clause["namespaces"], namespace)
    };
    matches_kind(clause, &object.kind, plural)
        && in_namespace
        && names(&clause["objectNames"], &object.name.name)
        && (selectors.is_empty() || selectors.iter().any(|selector| selects(selector, &labels)))
}

/// The clauses of a policy.
pub(crate) fn clauses(policy: &Object) -> Vec<Value> {
    policy.value["spec"]["downsync"].as_array().cloned().unwrap_or_default()
}

/// Whether a policy selects a cluster with these labels.
pub(crate) fn selects_cluster(policy: &Object, labels: &Labels) -> bool {
    let selectors = policy.value["spec"]["clusterSelectors"].as_array().into_iter().flatten();
    selectors.into_iter().any(|selector| selects(selector, labels))
}

impl Fleet<'_> {
    fn own(&self, kind: &str) -> Vec<Rc<Object>> {
        self.hub.of_kind(&GroupKind::bellwether(kind)).map(Rc::clone).collect()
    }

    pub(crate) fn policies(&self) -> Vec<Rc<Object>> {
        self.own("BindingPolicy")
    }

    pub(crate) fn collectors(&self) -> Vec<Rc<Object>> {
        self.own("StatusCollector")
    }

    pub(crate) fn selected(&self, policy: &Object) -> Vec<Site> {
        let selected = self.clusters.iter().filter(|(_, member)| selects_cluster(policy, member.labels));
        selected.map(|(site, _)| *site).collect()
    }

    pub(crate) fn bindings(&self) -> Vec<Binding> {
        let mut bindings = Vec::new();
        for policy in self.policies() {
            let clusters = self.selected(&policy);
            for (kind, served) in &self.hub.kinds {
                for object in self.hub.of_kind(kind) {
                    let mut clauses = clauses(&policy);
                    clauses.retain(|clause| matches(clause, object, &served.plural));
                    if clauses.is_empty() {
                        continue;
                    }
                    let mut collectors: Vec<String> = Vec::new();
                    for name in clauses.iter().flat_map(|clause| strings(&clause["statusCollectors"])) {
                        if !collectors.iter().any(|own| own == name) {
                            collectors.push(name.to_owned());
                        }
                    }
                    bindings.push(Binding {
                        policy: Rc::clone(&policy),
                        object: Rc::clone(object),
                        collectors,
                        wants_singleton: clauses
                            .iter()
                            .any(|clause| clause["wantSingletonReportedState"] == true),
                        clusters: clusters.clone(),
                    });
                }
            }
        }
        bindings
    }

    fn row<'a>(&'a self, binding: &'a Binding, site: Site) -> Option<Row<'a>> {
        const NOTHING: &Value = &Value::Null;
        let member = self.clusters.get(&site)?;
        let object = &binding.object;
        let returned = member.store.get(&object.kind, &object.name);
        let served = member.store.kinds.get(&object.kind);
        let health = match returned {
            _ if member.is_stale => "Unknown".to_owned(),
            Some(returned) => {
                let verdict = returned.verdict(self.now, served.map(|served| served.has_status));
                verdict.state.name().to_owned()
            }
            None => "Missing".to_owned(),
        };
        Some(Row {
            cluster: site.name(),
            labels: member.labels,
            uid: &member.uid,
            obj: &object.value,
            returned: returned.map_or(NOTHING, |returned| &returned.value),
            found: Some(returned.is_some()).filter(|_| !member.is_stale),
            is_stale: member.is_stale,
            health,
        })
    }

    /// The spec of a StatusCollector, if it exists.
    fn collector(&self, name: &str) -> Option<Value> {
        let name = NamespacedName::new("", name);
        let collector = self.hub.get(&GroupKind::bellwether("StatusCollector"), &name)?;
        Some(collector.value["spec"].clone())
    }

    /// Whether there is a reason for a CombinedStatus.
    pub(crate) fn has_collectors(&self, binding: &Binding) -> bool {
        binding.collectors.iter().any(|name| self.collector(name).is_some())
    }

    /// The CombinedStatus of a binding in the form of [`shape`].
    pub(crate) fn combined_status(&self, binding: &Binding) -> Value {
        let rows: Vec<_> = binding.clusters.iter().filter_map(|site| self.row(binding, *site)).collect();
        let is_stale = rows.iter().any(|row| row.is_stale);
        let samples = samples();
        let results = binding.collectors.iter().filter_map(|name| {
            let spec = self.collector(name)?;
            let sample = samples.iter().find(|sample| sample.spec == spec)?;
            let result = sample.result?;
            // What a stale cluster reported last is not known here.
            let result = if is_stale && sample.reads_returned { Value::Null } else { result(&rows) };
            Some(json!({"name": name, "result": result}))
        });
        let object = &binding.object;
        let (group, served) = (&*object.kind.group, self.hub.kinds.get(&object.kind));
        let version = served.map(|served| served.version.to_string()).unwrap_or_default();
        let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
        let reason = |row: &Row<'_>| match row {
            Row { is_stale: true, .. } => Some("Stale"),
            Row { found: Some(true), .. } => None,
            _ => Some("Missing"),
        };
        let count = |wanted| rows.iter().filter(|row| reason(row) == wanted).count();
        let not_reporting = ["Stale", "Missing"].into_iter().flat_map(|wanted| {
            let named = rows.iter().filter(move |row| reason(row) == Some(wanted));
            named.map(move |row| json!({"name": row.cluster, "reason": wanted}))
        });
        json!({
            "labels": {
                "status.bellwether.dev/api-group": group,
                "status.bellwether.dev/resource": served.map(|served| served.plural.to_string()),
                "status.bellwether.dev/namespace": &*object.name.namespace,
                "status.bellwether.dev/name": &*object.name.name,
                "status.bellwether.dev/binding-policy": &*binding.policy.name.name,
            },
            "owner": {
                "apiVersion": api_version, "kind": &*object.kind.kind, "name": &*object.name.name, "uid": object.uid(),
            },
            "results": results.collect::<Vec<_>>(),
            "clusters": {
                "bound": rows.len(), "reporting": count(None), "stale": count(Some("Stale")),
                "missing": count(Some("Missing")),
            },
            "notReporting": not_reporting.collect::<Vec<_>>(),
        })
    }
}

/// A stored CombinedStatus in the form of [`Fleet::combined_status`]. Null replaces what the oracle does not know.
pub(crate) fn shape(stored: &Object, expected: &Value) -> Value {
    let value = &stored.value;
    let mut labels = stored.metadata()["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|key, _| key.starts_with("status.bellwether.dev/"));
    }
    let owners = stored.metadata()["ownerReferences"].as_array().cloned().unwrap_or_default();
    let owner = owners.into_iter().find(|owner| owner["uid"] == expected["owner"]["uid"]);
    let results = value["results"].as_array().cloned().unwrap_or_default();
    let results: Vec<_> = results
        .iter()
        .enumerate()
        .map(|(index, result)| {
            let is_unknown = expected["results"][index]["result"].is_null();
            let shaped = if is_unknown { Value::Null } else { crate::collectors::shape(result) };
            json!({"name": result["name"], "result": shaped})
        })
        .collect();
    let counts = &value["clusters"];
    let count = |field: &str| counts[field].clone();
    json!({
        "labels": labels,
        "owner": owner,
        "results": results,
        "clusters": {
            "bound": count("bound"), "reporting": count("reporting"), "stale": count("stale"),
            "missing": count("missing"),
        },
        "notReporting": counts["notReporting"].as_array().cloned().unwrap_or_default(),
    })
}
