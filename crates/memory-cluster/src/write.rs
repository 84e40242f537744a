//! Makes the changes of the engine directly, without requests.

use bellwether_engine::{Outcome, Patched, RequiredOwner, ResourceVersion, Slot, Write};
use serde_json::{Value, json};

use crate::{
    cluster::MemoryCluster,
    object::{Object, Stored},
    verbs::{Rejection, Subresource},
};

impl<O: Stored> MemoryCluster<O> {
    /// Makes a change if its preconditions hold.
    pub fn write(&mut self, slot: &Slot, change: &Write, now: &str) -> Outcome {
        let (kind, name) = (&slot.object.kind, &slot.object.name);
        let guard =
            |uid: &str, version: &ResourceVersion| json!({ "uid": uid, "resourceVersion": version.as_str() });
        let written = match change {
            Write::Status { uid, resource_version: version, patch, .. } => {
                let patch = json!({ "metadata": guard(uid, version), "status": &**patch });
                self.patch(kind, name, Subresource::Status, &patch).map(Some)
            }
            Write::OwnerReferences { uid, resource_version: version, owners, required_owner: requires } => {
                if let Some(owner) = requires.as_ref().filter(|owner| !self.stays(owner)) {
                    let why = format!(
                        "owner {}/{} does not exist or is being deleted",
                        owner.kind.kind, owner.name
                    );
                    return Outcome::Failed(why.into());
                }
                let mut metadata = guard(uid, version);
                metadata["ownerReferences"] = json!(**owners);
                self.patch(kind, name, Subresource::None, &json!({ "metadata": metadata })).map(Some)
            }
            Write::Create { manifest, dry_run, .. } => self.create(Value::clone(manifest), *dry_run),
            Write::SetFields { uid, resource_version: version, part, fields } => {
                let subresource = match part {
                    Patched::Object => Subresource::None,
                    Patched::Status => Subresource::Status,
                };
                self.set_fields(kind, name, subresource, &guard(uid, version), fields.iter().cloned())
                    .map(Some)
            }
            Write::Apply { .. } => Err(Rejection::Invalid("server-side apply is not supported")),
            Write::Delete { uid, .. } => self.delete(kind, name, Some(uid), now).map(|_| None),
        };
        match written {
            Ok(object) => Outcome::Written(object.map(|object| version(object.object()))),
            Err(Rejection::NotFound) => Outcome::NotFound,
            // The object to delete is gone; another one has its name.
            Err(Rejection::OtherUid) if matches!(change, Write::Delete { .. }) => Outcome::NotFound,
            Err(Rejection::AlreadyExists | Rejection::OtherUid | Rejection::Modified) => Outcome::Conflict,
            Err(Rejection::Invalid(why)) => Outcome::Rejected(why.into()),
        }
    }

    /// Whether an owner exists and is not being deleted.
    fn stays(&self, owner: &RequiredOwner) -> bool {
        let object = self.get(&owner.kind, &owner.name).map(|it| it.object());
        object.is_some_and(|it| it.uid() == &*owner.uid && !it.is_deleting())
    }
}

fn version(object: &Object) -> ResourceVersion {
    ResourceVersion::new(object.metadata()["resourceVersion"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bellwether_engine::{Cluster, GroupKind, ObjectKey, Part};

    use super::*;
    use crate::cluster::tests::{application, cluster, manifest, metadata, web};

    const NOW: &str = "2026-11-14T10:00:00Z";

    fn slot(kind: GroupKind, part: Part) -> Slot {
        Slot { object: ObjectKey { cluster: Cluster::hub(), kind, name: web() }, part }
    }

    #[test]
    fn a_status_write_has_uid_and_resource_version_preconditions() {
        let mut cluster = cluster();
        let write = |cluster: &mut MemoryCluster, uid: &str, version: &str| {
            let change = Write::Status {
                uid: uid.into(),
                resource_version: ResourceVersion::new(version),
                patch: Arc::new(json!({ "progress": 7 })),
                transitions: Box::default(),
                owned_kinds: Box::default(),
            };
            cluster.write(&slot(application(), Part::Status), &change, NOW)
        };
        assert_eq!(write(&mut cluster, "u2", "1"), Outcome::Conflict);
        assert_eq!(write(&mut cluster, "u1", "0"), Outcome::Conflict);
        assert_eq!(metadata(&cluster).2, 1, "not written");
        assert_eq!(write(&mut cluster, "u1", "1"), Outcome::Written(Some(ResourceVersion::new("2"))));
        let object = cluster.get(&application(), &web()).expect("the object exists");
        assert_eq!(object.value["status"]["progress"], 7);
        cluster.remove(&application(), &web());
        assert_eq!(write(&mut cluster, "u1", "2"), Outcome::NotFound);
    }

    #[test]
    fn owner_references_are_not_written_if_the_owner_is_gone() {
        let mut cluster = cluster();
        cluster.put(manifest("v1", "Service"));
        let mut write = |owner: &str| {
            let change = Write::OwnerReferences {
                uid: "u2".into(),
                resource_version: ResourceVersion::new("2"),
                owners: Arc::new([]),
                required_owner: Some(Box::new(RequiredOwner {
                    kind: application(),
                    api_version: "v1alpha1".into(),
                    plural: "applications".into(),
                    name: web(),
                    uid: owner.into(),
                })),
            };
            cluster.write(&slot(GroupKind::new("", "Service"), Part::OwnerReferences), &change, NOW)
        };
        assert!(matches!(write("another"), Outcome::Failed(_)));
        assert!(matches!(write("u1"), Outcome::Written(_)));
    }
}
