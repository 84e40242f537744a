//! What an API server does with requests: preconditions first, then the change.

use std::{fmt, rc::Rc};

use bellwether_engine::{GroupKind, NamespacedName};
use serde_json::{Value, json};

use crate::{
    cluster::MemoryCluster,
    merge::merge,
    object::{Object, Stored, identity},
};

/// The endpoint of an object that a patch is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself: all of it can be changed, but for the status if that is a subresource.
    None,
    /// `/status`: nothing but the status can be changed.
    Status,
}

/// Why a request changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The object does not exist.
    NotFound,
    /// An object of this name exists.
    AlreadyExists,
    /// The object has another UID than the request names.
    OtherUid,
    /// The object has another version than the request names.
    Modified,
    /// The object is not valid, for this reason.
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
    /// Creates an object, or only looks whether it could be created. Gives the object, unless it is a dry run.
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

    /// Replaces an object that exists, but for its status. A `uid` or `resourceVersion` in its metadata is a precondition.
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

    /// Merges a patch into an object. A `uid` or `resourceVersion` in its metadata is a precondition. What changes nothing
    /// makes no new version. Gives the object as it is then.
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

    /// Deletes an object, if it has this UID. A Pod only gets a deletion timestamp: its node removes it later. Gives the
    /// object as it was.
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

/// Whether the preconditions in the metadata of a request hold.
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
    fn a_patch_changes_the_object_and_the_version_that_it_names() {
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
        assert_eq!(patch("u1", "2"), Ok(true), "nothing changes");
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 1, 2));
        let nothing =
            cluster.patch(&application(), &NamespacedName::new("shop", "db"), Subresource::None, &json!({}));
        assert_eq!(nothing.err(), Some(Rejection::NotFound));
    }

    #[test]
    fn the_status_is_written_through_its_subresource_alone() {
        let mut cluster = cluster();
        let patch = json!({ "spec": { "type": "shop" }, "status": { "progress": 7 } });
        let mut written = |subresource| {
            let object = cluster.patch(&application(), &web(), subresource, &patch).expect("it is there");
            (object.value["spec"]["type"].clone(), object.value["status"]["progress"].clone())
        };
        assert_eq!(written(Subresource::Status), (Value::Null, json!(7)));
        let mut cluster = self::cluster();
        let object = cluster.patch(&application(), &web(), Subresource::None, &patch).expect("it is there");
        assert_eq!((&object.value["spec"]["type"], object.value.get("status")), (&json!("shop"), None));
    }

    #[test]
    fn what_replaces_an_object_is_all_of_it_but_the_status() {
        let mut cluster = cluster();
        let replace = |cluster: &mut MemoryCluster, version: &str, fields: &Value| {
            let mut manifest = manifest("bellwether.dev/v1alpha1", "Application");
            manifest["metadata"]["resourceVersion"] = json!(version);
            merge(&mut manifest, fields);
            cluster.replace(manifest).map(|object| object.version())
        };
        assert_eq!(replace(&mut cluster, "0", &json!({})), Err(Rejection::Modified));
        assert_eq!(replace(&mut cluster, "1", &json!({})), Ok(1), "nothing changes");
        cluster.edit(&application(), &web(), |it| it["status"]["progress"] = json!(7));
        let spec = json!({ "spec": { "type": "shop" }, "status": { "progress": 8 } });
        assert_eq!(replace(&mut cluster, "2", &spec), Ok(3));
        let object = cluster.get(&application(), &web()).expect("it is there");
        assert_eq!(
            (&object.value["spec"]["type"], &object.value["status"]["progress"]),
            (&json!("shop"), &json!(7))
        );
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 2, 3));
    }

    #[test]
    fn what_exists_or_is_not_valid_is_not_created() {
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
    fn a_pod_ends_before_it_is_gone() {
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
