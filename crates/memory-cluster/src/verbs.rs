//! The verbs of an API server: each checks the preconditions and then makes the change.

use std::{fmt, rc::Rc};

use bellwether_engine::{GroupKind, NamespacedName};
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

    /// Replaces an existing object except for its status. `uid` and `resourceVersion` in its metadata are
    /// preconditions.
    pub fn replace(&mut self, mut manifest: Value) -> Result<Rc<O>, Rejection> {
        let (kind, name) = identity(&manifest);
        let before = Rc::clone(self.get(&kind, &name).ok_or(Rejection::NotFound)?);
        check(before.object(), &manifest["metadata"])?;
        if self.has_status(&kind)
            && let Some(fields) = manifest.as_object_mut()
        {
            fields.remove("status");
            fields
                .extend(before.object().value.get("status").map(|status| ("status".into(), status.clone())));
        }
        for field in ["generation", "resourceVersion", "uid"] {
            manifest["metadata"][field] = before.object().metadata()[field].clone();
        }
        Ok(if manifest == before.object().value { before } else { self.put(manifest) })
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
    fn a_replace_keeps_the_status() {
        let mut cluster = cluster();
        let replace = |cluster: &mut MemoryCluster, version: &str, fields: &Value| {
            let mut manifest = manifest("bellwether.dev/v1alpha1", "Application");
            manifest["metadata"]["resourceVersion"] = json!(version);
            merge(&mut manifest, fields);
            cluster.replace(manifest).map(|object| object.version())
        };
        assert_eq!(replace(&mut cluster, "0", &json!({})), Err(Rejection::Modified));
        assert_eq!(replace(&mut cluster, "1", &json!({})), Ok(1), "no change");
        cluster.edit(&application(), &web(), |it| it["status"]["progress"] = json!(7));
        let spec = json!({ "spec": { "type": "shop" }, "status": { "progress": 8 } });
        assert_eq!(replace(&mut cluster, "2", &spec), Ok(3));
        let object = cluster.get(&application(), &web()).expect("the object exists");
        assert_eq!(
            (&object.value["spec"]["type"], &object.value["status"]["progress"]),
            (&json!("shop"), &json!(7))
        );
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 2, 3));
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
