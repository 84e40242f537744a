//! The CombinedStatus of a binding: as stored, as wanted, and the write between them.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use bellwether_api::{
    CombinedStatusFields, GROUP, REPORT_NAMESPACE, VERSION, combined_status_labels as labels,
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    digest::Digest,
    effect::{Part, Patched, Slot, Urgency, Write},
    event::Outcome,
    facts::{Facts, Labels, OwnerReference, ResourceVersion},
    feeds::Feed,
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, GroupKind, NamespacedName, ObjectKey},
    overwrite_backoff::OverwriteBackoff,
    publication::CONFLICT_TIMEOUT,
    requested_fields::FieldPath,
};

use super::binding::{Binding, BindingId};

/// Label values have at most 63 characters.
const MAX_LABEL: usize = 63;

#[derive(Debug, Default)]
pub(super) struct Output {
    /// `None`: it has no reason to exist.
    pub(super) binding: Option<BindingId>,
    stored: Option<StoredOutput>,
    /// Until then, a write waits for the watch to show what an earlier one met.
    awaits_watch_until: Option<Timestamp>,
    overwrites: OverwriteBackoff,
}

#[derive(Debug)]
struct StoredOutput {
    uid: Box<str>,
    version: ResourceVersion,
    labels: Labels,
    owners: Box<[OwnerReference]>,
    results: Digest,
    clusters: Digest,
    is_deleting: bool,
}

/// What a CombinedStatus should be.
pub(super) struct Wanted {
    pub(super) fields: CombinedStatusFields,
    pub(super) labels: BTreeMap<&'static str, String>,
    pub(super) owner: OwnerReference,
}

/// The object's UID and the policy's.
pub(super) fn name(namespace: &str, object: &str, policy: &str) -> NamespacedName {
    let namespace = if namespace.is_empty() { REPORT_NAMESPACE } else { namespace };
    NamespacedName::new(namespace, &format!("{object}.{policy}"))
}

/// The UIDs of the object and of the policy in the name of a CombinedStatus.
fn uids(name: &NamespacedName) -> (&str, &str) {
    name.name.rsplit_once('.').unwrap_or_default()
}

pub(super) fn policy_uid(name: &NamespacedName) -> &str {
    uids(name).1
}

pub(super) fn group(name: &NamespacedName) -> GroupRef {
    GroupRef::new(OwnKind::CombinedStatus, name.clone())
}

pub(super) fn slot(name: &NamespacedName) -> Slot {
    let group = group(name);
    Slot { object: group.object(), part: Part::Object(group) }
}

/// Creates the namespace of a CombinedStatus that could not be created, if it is ours.
pub(super) fn namespace_write(name: &NamespacedName) -> Option<(Slot, Write)> {
    if *name.namespace != *REPORT_NAMESPACE {
        return None;
    }
    let (cluster, kind) = (Cluster::hub(), GroupKind::new("", "Namespace"));
    let object = ObjectKey { cluster, kind, name: NamespacedName::new("", REPORT_NAMESPACE) };
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": REPORT_NAMESPACE}});
    let write = Write::Create { manifest: Arc::new(manifest), owner: Box::default(), dry_run: false };
    Some((Slot { object, part: Part::Object(group(name)) }, write))
}

impl Wanted {
    /// `kind`: the feed of the object's kind in the hub. `None` before it is known how the kind is served.
    pub(super) fn new(binding: &Binding, object: &Facts, kind: &Feed, policy: &str) -> Option<Self> {
        let served = kind.served.as_ref()?;
        let group = &kind.kind.group;
        let api_version =
            if group.is_empty() { served.version.to_string() } else { format!("{group}/{}", served.version) };
        let labels = [
            (labels::API_GROUP, &**group),
            (labels::RESOURCE, &*served.plural),
            (labels::NAMESPACE, &*binding.name.namespace),
            (labels::NAME, &*binding.name.name),
            (labels::BINDING_POLICY, policy),
        ];
        Some(Self {
            fields: binding.fields(),
            labels: labels.into_iter().map(|(key, value)| (key, label_value(value))).collect(),
            owner: OwnerReference {
                api_version: api_version.into(),
                kind: (*kind.kind.kind).into(),
                name: (*binding.name.name).into(),
                uid: object.uid.clone(),
                controller: None,
                block_owner_deletion: None,
            },
        })
    }
}

impl Output {
    /// Takes the stored object from a watch event. Returns whether it has to be compared with the wanted one.
    pub(super) fn observe(&mut self, facts: &Facts, fields: &CombinedStatusFields) -> bool {
        let is_older = |stored: &StoredOutput| {
            stored.uid == facts.uid && facts.resource_version.is_before(&stored.version)
        };
        if self.stored.as_ref().is_some_and(is_older) {
            return false;
        }
        let stored = StoredOutput {
            uid: facts.uid.clone(),
            version: facts.resource_version.clone(),
            labels: facts.labels.clone(),
            owners: facts.owners.clone(),
            results: digest(&fields.results),
            clusters: digest(&fields.clusters),
            is_deleting: facts.deleting,
        };
        let was_awaited = self.awaits_watch_until.take().is_some();
        let is_known = self.stored.as_ref().is_some_and(|known| known.has_content_of(&stored));
        if !is_known {
            self.overwrites.observe_foreign(&facts.resource_version);
        }
        self.stored = Some(stored);
        was_awaited || !is_known
    }

    /// Only the resourceVersion changed. Returns whether a write was waiting for that.
    pub(super) fn observe_version(&mut self, facts: &Facts) -> bool {
        let Some(stored) = self.stored.as_mut().filter(|stored| stored.uid == facts.uid) else {
            return false;
        };
        if facts.resource_version.is_before(&stored.version) {
            return false;
        }
        stored.version = facts.resource_version.clone();
        self.awaits_watch_until.take().is_some()
    }

    /// The hub was restored from a backup: older versions are current.
    pub(super) fn forget_version(&mut self) {
        if let Some(stored) = &mut self.stored {
            stored.version = ResourceVersion::unknown();
        }
    }

    pub(super) fn forget_stored(&mut self) {
        self.stored = None;
        self.awaits_watch_until = None;
    }

    /// The API group of the workload object, as far as the stored owner references name it.
    pub(super) fn object_group(&self, name: &NamespacedName) -> Option<&str> {
        let (object, _) = uids(name);
        let owner = self.stored.as_ref()?.owners.iter().find(|owner| *owner.uid == *object)?;
        Some(owner.api_version.split_once('/').map_or("", |(group, _)| group))
    }

    pub(super) fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// A new object and a change of the counts should not wait for the rows.
    pub(super) fn urgency(&self, binding: &Binding) -> Urgency {
        let clusters = digest(&Some(binding.counts()));
        let has_counts = self.stored.as_ref().is_some_and(|stored| stored.clusters == clusters);
        if has_counts { Urgency::MessageOnly } else { Urgency::Transition }
    }

    /// The write that makes the stored object the wanted one; `None` if they are equal.
    pub(super) fn write(&self, name: &NamespacedName, wanted: &Wanted, now: Timestamp) -> Option<Write> {
        if self.awaits_watch_until.is_some() || self.overwrites.backs_off_until(now).is_some() {
            return None;
        }
        let (results, clusters) = (json!(wanted.fields.results), json!(wanted.fields.clusters));
        let Some(stored) = &self.stored else {
            let manifest = json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "CombinedStatus",
                "metadata": {
                    "name": &*name.name,
                    "namespace": &*name.namespace,
                    "labels": wanted.labels,
                    "ownerReferences": [wanted.owner],
                },
                "results": results,
                "clusters": clusters,
            });
            let owner = wanted.owner.uid.clone();
            return Some(Write::Create { manifest: Arc::new(manifest), owner, dry_run: false });
        };
        // It will be created again when it is gone.
        if stored.is_deleting {
            return None;
        }
        let mut fields: Vec<(FieldPath, Value)> = Vec::new();
        let mut set = |path: &[&str], value: Value| {
            fields.push((path.iter().map(|field| (*field).into()).collect(), value));
        };
        if stored.results != Digest::of(&results) {
            set(&["results"], results);
        }
        if stored.clusters != Digest::of(&clusters) {
            set(&["clusters"], clusters);
        }
        if let Some(labels) = stored.labels_with(&wanted.labels) {
            set(&["metadata", "labels"], json!(labels));
        }
        if !stored.owners.contains(&wanted.owner) {
            let others = stored.owners.iter().filter(|owner| owner.uid != wanted.owner.uid);
            let owners: Vec<_> = others.chain([&wanted.owner]).collect();
            set(&["metadata", "ownerReferences"], json!(owners));
        }
        (!fields.is_empty()).then(|| Write::SetFields {
            uid: stored.uid.clone(),
            resource_version: stored.version.clone(),
            part: Patched::Object,
            fields: fields.into(),
        })
    }

    pub(super) fn deletion(&self) -> Option<Write> {
        let stored = self.stored.as_ref().filter(|stored| !stored.is_deleting)?;
        self.awaits_watch_until.is_none().then(|| Write::Delete { uid: stored.uid.clone() })
    }

    /// Handles the outcome of a write. Returns when to check again, if the watch is awaited or another writer
    /// overwrites the object.
    pub(super) fn written(&mut self, write: &Write, outcome: &Outcome, now: Timestamp) -> Option<Timestamp> {
        let awaits_watch = match (write, outcome) {
            (Write::SetFields { uid, fields, .. }, Outcome::Written(Some(version))) => {
                if let Some(stored) = &mut self.stored
                    && stored.uid == *uid
                    && !version.is_before(&stored.version)
                {
                    stored.merge(version, fields);
                    self.overwrites.record_own_write(version, now);
                }
                false
            }
            (Write::Delete { uid }, Outcome::Written(_)) => {
                if let Some(stored) = self.stored.as_mut().filter(|stored| stored.uid == *uid) {
                    stored.is_deleting = true;
                }
                false
            }
            (Write::SetFields { resource_version: before, .. }, Outcome::Conflict) => {
                self.stored.as_ref().is_some_and(|stored| stored.version == *before)
            }
            // The response has no UID.
            (Write::Create { .. }, Outcome::Written(_) | Outcome::Conflict) => self.stored.is_none(),
            _ => false,
        };
        self.awaits_watch_until = awaits_watch.then(|| now.checked_add(CONFLICT_TIMEOUT).ok()).flatten();
        self.awaits_watch_until.or_else(|| self.overwrites.backs_off_until(now))
    }

    pub(super) fn clock_set(&mut self, by: SignedDuration) {
        self.overwrites.clock_set(by);
    }

    /// Writes again although the watch has shown nothing.
    pub(super) fn retry(&mut self) {
        self.awaits_watch_until = None;
    }
}

impl StoredOutput {
    fn has_content_of(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.results == other.results
            && self.clusters == other.clusters
            && self.labels == other.labels
            && self.owners == other.owners
            && self.is_deleting == other.is_deleting
    }

    /// All labels with ours; `None` if ours are there.
    fn labels_with<'a>(
        &'a self,
        ours: &'a BTreeMap<&'static str, String>,
    ) -> Option<BTreeMap<&'a str, &'a str>> {
        let has_ours = ours.iter().all(|(key, value)| self.labels.get(key) == Some(value));
        let stored = self.labels.iter().map(|(key, value)| (&**key, &**value));
        (!has_ours).then(|| stored.chain(ours.iter().map(|(key, value)| (*key, &**value))).collect())
    }

    /// Applies fields that were written.
    fn merge(&mut self, version: &ResourceVersion, fields: &[(FieldPath, Value)]) {
        self.version = version.clone();
        for (path, value) in fields {
            match path.last().map(|field| &**field) {
                Some("results") => self.results = Digest::of(value),
                Some("clusters") => self.clusters = Digest::of(value),
                Some("labels") => {
                    let labels = value.as_object().into_iter().flatten();
                    self.labels = labels
                        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
                        .collect();
                }
                Some("ownerReferences") => {
                    self.owners = Deserialize::deserialize(value).unwrap_or_default();
                }
                _ => {}
            }
        }
    }
}

/// By way of a JSON value, whose fields are sorted.
fn digest(value: &impl Serialize) -> Digest {
    Digest::of(&json!(value))
}

/// A legal label value that is the text itself if that is legal. Otherwise it ends in a hash of it.
fn label_value(text: &str) -> String {
    let is_legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let has_ends = |text: &str| {
        let is_end = |char: Option<char>| char.is_some_and(|char| char.is_ascii_alphanumeric());
        text.is_empty() || (is_end(text.chars().next()) && is_end(text.chars().next_back()))
    };
    if text.len() <= MAX_LABEL && text.chars().all(is_legal) && has_ends(text) {
        return text.to_owned();
    }
    let hash = Sha256::digest(text).iter().take(5).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    });
    let legal = text.chars().map(|char| if is_legal(char) { char } else { '-' });
    let stem: String = legal.take(MAX_LABEL - hash.len() - 1).collect();
    let stem = stem.trim_matches(|char: char| !char.is_ascii_alphanumeric());
    if stem.is_empty() { hash } else { format!("{stem}-{hash}") }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::short("web", "web")]
    #[case::empty("", "")]
    #[case::dots("a.b_c-d", "a.b_c-d")]
    #[case::colons("system:node", "system-node-")]
    #[case::at_the_end("a:", "a-")]
    #[case::nothing_legal(":", "")]
    fn label_values_are_legal(#[case] text: &str, #[case] stem: &str) {
        let value = label_value(text);
        assert!(value.starts_with(stem), "{value}");
        assert!(value == text || value.len() == stem.len() + 10, "{value}");
    }

    #[test]
    fn long_names_have_different_label_values() {
        let long = |last: &str| label_value(&format!("{}{last}", "a".repeat(80)));
        assert_eq!(long("b").len(), MAX_LABEL);
        assert_ne!(long("b"), long("c"));
    }

    #[test]
    fn the_name_has_both_uids() {
        let output = name("", "o-1", "p-2");
        assert_eq!(output, NamespacedName::new("bellwether-report", "o-1.p-2"));
        assert_eq!(policy_uid(&output), "p-2");
    }
}
