//! The verbs of an API server: each checks the preconditions and then makes the change.

use std::{fmt, rc::Rc};

use bellwether_engine::{FieldPath, GroupKind, NamespacedName};
use serde_json::{Value, json};

use crate::{
    cluster::MemoryCluster,
    merge::merge,
    object::{Object, Stored, identity},
};

/// The endpoint that a patch is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// The object. Ignores changes of the status if the kind has a status subresource.
    None,
    /// `/status`: changes only the status.
    Status,
}

/// Why the API server rejects a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    NotFound,
    AlreadyExists,
    /// The object has a different UID from the one in the precondition.
    OtherUid,
    /// The object has a different resourceVersion from the one in the precondition.
    Modified,
    /// The object is invalid for this reason.
    Invalid(&'static str),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::OtherUid => "Precondition failed: UID in precondition",
            Self::Modified => "the object has been modified",
            Self::Invalid(why) => why,
        })
    }
}

impl<O: Stored> MemoryCluster<O> {
    /// Creates an object, or with `dry_run` only validates it. Returns the object, unless it is a dry run.
    pub fn create(&mut self, manifest: Value, dry_run: bool) -> Result<Option<Rc<O>>, Rejection> {
        let (kind, name) = identity(&manifest);
        let image = manifest["spec"]["containers"][0]["image"].as_str();
        if kind == GroupKind::pod() && image.unwrap_or_default().is_empty() {
            return Err(Rejection::Invalid("spec.containers[0].image: Required value"));
        }
        if self.get(&kind, &name).is_some() {
            return Err(Rejection::AlreadyExists);
        }
        Ok((!dry_run).then(|| self.put(manifest)))
    }

    /// Merges a patch into an object. `uid` and `resourceVersion` in its metadata are preconditions. A patch
    /// without effect makes no new resourceVersion. Returns the patched object.
    pub fn patch(
        &mut self,
        kind: &GroupKind,
        name: &NamespacedName,
        subresource: Subresource,
        patch: &Value,
    ) -> Result<Rc<O>, Rejection> {
        let before = Rc::clone(self.get(kind, name).ok_or(Rejection::NotFound)?);
        let object = before.object();
        check(object, &patch["metadata"])?;
        let mut value = object.value.clone();
        match subresource {
            Subresource::Status if !self.has_status(kind) => return Err(Rejection::NotFound),
            Subresource::Status => merge(&mut value["status"], &patch["status"]),
            Subresource::None if !self.has_status(kind) => merge(&mut value, patch),
            Subresource::None => {
                let mut patch = patch.clone();
                patch.as_object_mut().map(|fields| fields.remove("status"));
                merge(&mut value, &patch);
            }
        }
        Ok(if value == object.value { before } else { self.put(value) })
    }

    /// Sets fields of an object, as a JSON patch does. A field is added to a map that exists, or removed if its
    /// value is null. `expected` has `uid` and `resourceVersion`, the preconditions.
    pub fn set_fields(
        &mut self,
        kind: &GroupKind,
        name: &NamespacedName,
        subresource: Subresource,
        expected: &Value,
        fields: impl IntoIterator<Item = (FieldPath, Value)>,
    ) -> Result<Rc<O>, Rejection> {
        let before = Rc::clone(self.get(kind, name).ok_or(Rejection::NotFound)?);
        let object = before.object();
        check(object, expected)?;
        let mut value = object.value.clone();
        for (path, field) in fields {
            let Some((last, above)) = path.split_last() else { continue };
            let above = above.iter().try_fold(&mut value, |value, field| value.get_mut(&**field));
            let map = above
                .and_then(Value::as_object_mut)
                .ok_or(Rejection::Invalid("add operation: missing path"))?;
            match field {
                Value::Null if map.remove(&**last).is_none() => {
                    return Err(Rejection::Invalid("remove operation: missing path"));
                }
                Value::Null => {}
                field => _ = map.insert(last.to_string(), field),
            }
        }
        let is_status = match subresource {
            Subresource::Status if !self.has_status(kind) => return Err(Rejection::NotFound),
            Subresource::Status => true,
            Subresource::None => false,
        };
        // Each endpoint ignores the fields of the other.
        if self.has_status(kind)
            && let Some(fields) = value.as_object_mut()
        {
            let ignored: Vec<_> =
                fields.keys().filter(|key| (*key == "status") != is_status).cloned().collect();
            for key in ignored {
                match object.value.get(&key) {
                    Some(before) => fields.insert(key, before.clone()),
                    None => fields.remove(&key),
                };
            }
        }
        Ok(if value == object.value { before } else { self.put(value) })
    }

    fn has_status(&self, kind: &GroupKind) -> bool {
        self.kinds.get(kind).is_none_or(|served| served.has_status)
    }

    /// Deletes an object if it has this UID. A Pod only gets a deletion timestamp: its node removes it later.
    /// Returns the object before the deletion.
    pub fn delete(
        &mut self,
        kind: &GroupKind,
        name: &NamespacedName,
        uid: Option<&str>,
        now: &str,
    ) -> Result<Rc<O>, Rejection> {
        let before = Rc::clone(self.get(kind, name).ok_or(Rejection::NotFound)?);
        if uid.is_some_and(|uid| uid != before.object().uid()) {
            return Err(Rejection::OtherUid);
        }
        if *kind != GroupKind::pod() {
            self.remove(kind, name);
        } else if !before.object().is_deleting() {
            self.edit(kind, name, |pod| pod["metadata"]["deletionTimestamp"] = json!(now));
        }
        Ok(before)
    }
}

/// Checks the preconditions in the metadata of a request.
fn check(object: &Object, expected: &Value) -> Result<(), Rejection> {
    if !expected["uid"].is_null() && expected["uid"] != *object.uid() {
        return Err(Rejection::OtherUid);
    }
    let version = &expected["resourceVersion"];
    if !version.is_null() && *version != object.metadata()["resourceVersion"] {
        return Err(Rejection::Modified);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{application, cluster, manifest, metadata, web};

    const NOW: &str = "2026-11-14T10:00:00Z";

    #[test]
    fn a_patch_has_uid_and_resource_version_preconditions() {
        let mut cluster = cluster();
        let mut patch = |uid: &str, version: &str| {
            let patch =
                json!({ "metadata": { "uid": uid, "resourceVersion": version, "labels": { "a": "b" } } });
            cluster
                .patch(&application(), &web(), Subresource::None, &patch)
                .map(|object| object.metadata()["labels"]["a"] == "b")
        };
        assert_eq!(patch("u2", "1"), Err(Rejection::OtherUid));
        assert_eq!(patch("u1", "0"), Err(Rejection::Modified));
        assert_eq!(patch("u1", "1"), Ok(true));
        assert_eq!(patch("u1", "2"), Ok(true), "no change");
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 1, 2));
        let nothing =
            cluster.patch(&application(), &NamespacedName::new("shop", "db"), Subresource::None, &json!({}));
        assert_eq!(nothing.err(), Some(Rejection::NotFound));
    }

    #[test]
    fn only_the_subresource_changes_the_status() {
        let mut cluster = cluster();
        let patch = json!({ "spec": { "type": "shop" }, "status": { "progress": 7 } });
        let mut written = |subresource| {
            let object =
                cluster.patch(&application(), &web(), subresource, &patch).expect("the object exists");
            (object.value["spec"]["type"].clone(), object.value["status"]["progress"].clone())
        };
        assert_eq!(written(Subresource::Status), (Value::Null, json!(7)));
        let mut cluster = self::cluster();
        let object =
            cluster.patch(&application(), &web(), Subresource::None, &patch).expect("the object exists");
        assert_eq!((&object.value["spec"]["type"], object.value.get("status")), (&json!("shop"), None));
    }

    #[test]
    fn fields_are_set_with_preconditions_and_on_their_endpoint() {
        let mut cluster = cluster();
        let fields = |progress: i64| {
            [
                (["spec".into()].into(), json!({ "type": "shop" })),
                (["status".into()].into(), json!({ "progress": progress })),
            ]
        };
        let mut set = |subresource, version: &str, progress| {
            let expected = json!({ "uid": "u1", "resourceVersion": version });
            let object =
                cluster.set_fields(&application(), &web(), subresource, &expected, fields(progress))?;
            Ok((object.value["spec"]["type"].clone(), object.value["status"]["progress"].clone()))
        };
        assert_eq!(set(Subresource::None, "0", 7), Err(Rejection::Modified));
        assert_eq!(set(Subresource::None, "1", 7), Ok((json!("shop"), Value::Null)));
        assert_eq!(set(Subresource::Status, "2", 7), Ok((json!("shop"), json!(7))));
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 2, 3));
        let mut remove = || {
            let field = [(["status".into()].into(), Value::Null)];
            let object =
                cluster.set_fields(&application(), &web(), Subresource::Status, &json!({}), field)?;
            Ok(object.value.get("status").is_some())
        };
        assert_eq!(remove(), Ok(false));
        assert_eq!(remove(), Err(Rejection::Invalid("remove operation: missing path")));
        let deep = [(["spec".into(), "absent".into(), "a".into()].into(), json!(1))];
        let missing = cluster.set_fields(&application(), &web(), Subresource::None, &json!({}), deep);
        assert_eq!(missing.err(), Some(Rejection::Invalid("add operation: missing path")));
    }

    #[test]
    fn create_rejects_existing_and_invalid_objects() {
        let mut cluster = cluster();
        let again = cluster.create(manifest("bellwether.dev/v1alpha1", "Application"), false);
        assert_eq!(again.err(), Some(Rejection::AlreadyExists));
        let service = manifest("v1", "Service");
        assert!(matches!(cluster.create(service.clone(), true), Ok(None)));
        assert_eq!(cluster.objects.len(), 1, "it was a dry run");
        assert!(matches!(cluster.create(service, false), Ok(Some(_))));
        let pod = cluster.create(manifest("v1", "Pod"), false);
        assert!(matches!(pod, Err(Rejection::Invalid(_))));
    }

    #[test]
    fn a_deleted_pod_stays_until_its_node_removes_it() {
        let mut cluster = cluster();
        cluster.put(manifest("v1", "Pod"));
        assert_eq!(
            cluster.delete(&GroupKind::pod(), &web(), Some("u9"), NOW).err(),
            Some(Rejection::OtherUid)
        );
        for _ in 0..2 {
            assert!(cluster.delete(&GroupKind::pod(), &web(), Some("u2"), NOW).is_ok());
            let pod = cluster.get(&GroupKind::pod(), &web()).expect("its node has not removed it");
            assert_eq!((&pod.metadata()["deletionTimestamp"], pod.version()), (&json!(NOW), 3));
        }
        assert!(cluster.delete(&application(), &web(), None, NOW).is_ok());
        assert!(cluster.get(&application(), &web()).is_none());
    }
}
