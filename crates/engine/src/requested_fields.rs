//! What the users of a feed want to keep of its objects.

use std::{collections::BTreeSet, sync::Arc};

use bellwether_model::{Plan, Value};

/// Such as `status`, `readyReplicas`. Lists are traversed. Empty for the whole object, without its large and
/// secret fields.
pub type FieldPath = Box<[Box<str>]>;

/// What to keep in addition to the facts of every object: metadata, verdict and generations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedFields {
    /// The conditions that operators report.
    pub conditions: bool,
    pub paths: BTreeSet<FieldPath>,
}

impl RequestedFields {
    pub fn conditions() -> Self {
        Self { conditions: true, ..Self::default() }
    }

    pub fn paths<'p>(paths: impl IntoIterator<Item = &'p [&'p str]>) -> Self {
        let path = |path: &[&str]| path.iter().copied().map(Into::into).collect();
        Self { paths: paths.into_iter().map(path).collect(), ..Self::default() }
    }

    /// True if everything that `other` wants is kept.
    pub fn covers(&self, other: &Self) -> bool {
        // A path is kept with everything below it; a whole object is not quite whole.
        let is_kept = |path: &FieldPath| {
            self.paths.iter().any(|kept| path.starts_with(kept) && (!kept.is_empty() || path.is_empty()))
        };
        (self.conditions || !other.conditions) && other.paths.iter().all(is_kept)
    }

    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            conditions: self.conditions || other.conditions,
            paths: self.paths.union(&other.paths).cloned().collect(),
        }
    }

    pub(crate) fn keep(&self, plan: &mut Plan) {
        if self.conditions {
            plan.keep(&["metadata", "creationTimestamp"]);
            plan.keep(&["status", "conditions"]);
        }
        self.keep_paths(plan);
    }

    /// Only the fields at `paths`; `None` without paths.
    pub(crate) fn plan_of_paths(&self) -> Option<Plan> {
        let mut plan = Plan::nothing();
        self.keep_paths(&mut plan);
        Some(plan).filter(|_| !self.paths.is_empty())
    }

    fn keep_paths(&self, plan: &mut Plan) {
        for path in &self.paths {
            plan.add(&Plan::all_of(&path.iter().map(|field| &**field).collect::<Vec<_>>()));
        }
    }
}

/// The values at the requested paths of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedValues {
    /// What was requested when the object was decoded. A path outside of it says nothing about the object.
    pub requested: Arc<RequestedFields>,
    /// The object, reduced to these paths.
    pub fields: Value<'static>,
}

#[cfg(test)]
mod tests {
    use bellwether_health::user::UserRules;
    use bellwether_model::{LAST_APPLIED, Object};
    use jiff::Timestamp;

    use super::*;
    use crate::{
        id::GroupKind,
        lens::{Lens, ProjectionContext},
    };

    #[test]
    fn a_union_covers_both() {
        let (replicas, phase) =
            (RequestedFields::paths([&["spec", "replicas"][..]]), RequestedFields::paths([&["status"][..]]));
        let both = replicas.and(&phase).and(&RequestedFields::conditions());
        for one in [&replicas, &phase, &RequestedFields::conditions(), &RequestedFields::default()] {
            assert!(both.covers(one));
        }
        assert!(!replicas.covers(&phase) && !replicas.covers(&RequestedFields::conditions()));
        let deeper = RequestedFields::paths([&["status", "phase"][..]]);
        assert!(phase.covers(&deeper) && !deeper.covers(&phase));
    }

    #[test]
    fn only_the_wanted_paths_are_kept() {
        let json = br#"{"metadata": {"name": "web"}, "spec": {"replicas": 3, "paused": true},
            "status": {"conditions": [{"type": "Ready", "message": "long"}], "phase": "Up"}}"#;
        let object = Object::from_json(json, &Plan::whole()).unwrap();
        let paths = [&["spec", "replicas"][..], &["status", "conditions", "type"], &["status", "absent"]];
        let plan = RequestedFields::paths(paths).plan_of_paths().unwrap();
        let kept = serde_json::to_string(&object.fields().kept_by(&plan)).unwrap();
        assert_eq!(kept, r#"{"spec":{"replicas":3},"status":{"conditions":[{"type":"Ready"}]}}"#);
        assert!(RequestedFields::conditions().plan_of_paths().is_none());
    }

    #[test]
    fn the_last_applied_configuration_of_a_secret_is_not_kept_even_on_request() {
        let path = ["metadata", "annotations", LAST_APPLIED];
        let json = serde_json::json!({"metadata": {"name": "db", "annotations": {LAST_APPLIED: "SECRET"}}})
            .to_string();
        for (kind, is_kept) in [("Secret", false), ("Service", true)] {
            let requested = Arc::new(RequestedFields::paths([&path[..]]));
            let lens = Lens::with(&GroupKind::new("", kind), Arc::new(UserRules::default()), requested);
            let object = Object::from_json(json.as_bytes(), lens.plan()).unwrap();
            assert_eq!(format!("{object:?}").contains("SECRET"), is_kept, "{kind}");
        }
    }

    #[test]
    fn values_record_what_was_wanted() {
        let json = br#"{"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {"replicas": 3}, "status": {"phase": "Up"}}"#;
        let look = |requested: RequestedFields| {
            let kind = GroupKind::new("acme.io", "Widget");
            let lens = Lens::with(&kind, Arc::new(UserRules::default()), Arc::new(requested));
            let object = Object::from_json(json, lens.plan()).unwrap();
            lens.project(&object, ProjectionContext { now: Timestamp::UNIX_EPOCH, has_status: None })
                .1
                .facts
                .values
        };
        let replicas = RequestedFields::paths([&["spec", "replicas"][..]]);
        let both = replicas.and(&RequestedFields::paths([&["status", "phase"][..]]));
        let narrow = look(replicas.clone()).unwrap();
        assert_eq!(serde_json::to_string(&narrow.fields).unwrap(), r#"{"spec":{"replicas":3}}"#);
        assert!(narrow.requested.covers(&replicas) && !narrow.requested.covers(&both));
        let wide = look(both.clone()).unwrap();
        assert_eq!(
            serde_json::to_string(&wide.fields).unwrap(),
            r#"{"spec":{"replicas":3},"status":{"phase":"Up"}}"#
        );
        assert!(wide.requested.covers(&both));
        assert_eq!(look(RequestedFields::conditions()), None);
    }
}
