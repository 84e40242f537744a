//! An object that belongs to no Application, with what is below it.

use anyhow::Result;
use bellwether_api::{APPLICATION_ANNOTATION, GROUP, VERSION};
use bellwether_engine::{Cluster, Dialect, FeedEvent, GroupKind, Member, NamespacedName, ProjectionContext};
use bellwether_model::{Object, Value};
use jiff::Timestamp;
use serde_json::json;

use super::{
    Evaluator, Notes, Observation, drop_invented_times,
    named_clusters::{list, sources},
};

/// Where the object names no Application.
const NAME: &str = "alone";

impl Observation {
    /// How the object would count for an Application of which it is the only member, with a note for each kind
    /// below it that the user may not list.
    pub fn alone(&self, kind: &GroupKind, name: &NamespacedName) -> Result<(Option<Member>, Notes)> {
        let application = Dialect::Bellwether.kind();
        let own = [application.clone(), GroupKind::bellwether("HealthRule")];
        let namespace = Some(name.namespace.to_string());
        let mut evaluator = Evaluator::new(self.evaluator.scope.alike(&own, namespace.clone()));
        let (mut lists, mut notes) = (sources(&self.origin, &[]), Notes::default());
        evaluator.start(self.now, &mut lists);
        let Some((feed, lens)) = lists.get_mut(&Cluster::hub())?.take(&application) else {
            return Ok((None, notes));
        };
        let manifest = self.application_of(kind, name)?;
        let projection = ProjectionContext { now: self.now, has_status: Some(true) };
        let object = Object::from_json(&manifest, lens.plan())?;
        let (application, object) = lens.project(&object, projection);
        let events = [FeedEvent::Applied(application, Box::new(object)), FeedEvent::ListCompleted];
        evaluator.apply(self.now, events.map(|event| (feed, event)), &mut lists);
        let mut note = |kind: &GroupKind, events: &[FeedEvent]| {
            notes.note(kind, events, &self.origin, namespace.as_deref());
        };
        while let Some(listed) = list(&mut lists, namespace.as_deref(), &mut note)? {
            evaluator.apply(self.now, listed.events, &mut lists);
        }
        notes.note_uses(&evaluator.engine);
        let mut groups = evaluator.groups(self.now);
        drop_invented_times(&mut groups, self.now, Timestamp::MAX);
        let members = groups.into_iter().flat_map(|group| group.members);
        let is_it = |member: &Member| member.uid.is_some() && (&member.kind, &member.name) == (kind, name);
        Ok((members.into_iter().find(is_it), notes))
    }

    /// An Application with this member. An object that names an Application is a member of no other.
    fn application_of(&self, kind: &GroupKind, name: &NamespacedName) -> Result<Vec<u8>> {
        let named = |object: &Object<'_>| {
            let annotations = object.at("metadata.annotations")?;
            annotations.get(APPLICATION_ANNOTATION).and_then(Value::as_text).map(str::to_owned)
        };
        let named = self.with(kind, name, &named)?.flatten().filter(|named| !named.is_empty());
        let application = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "Application",
            "metadata": {
                "namespace": &*name.namespace, "name": named.as_deref().unwrap_or(NAME),
                "uid": NAME, "resourceVersion": "1", "generation": 1,
            },
            "spec": {
                "selector": {},
                "components": { NAME: { "group": &*kind.group, "kind": &*kind.kind, "name": &*name.name } },
                "ownership": "Observe",
            },
        });
        Ok(application.to_string().into_bytes())
    }
}
