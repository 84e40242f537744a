//! What can be read in the cluster, in the words of the stories.

use bellwether_api::ApplicationStatus;
use bellwether_conditions::Statement;
use bellwether_engine::Group;
use serde_json::Value;

use crate::{objects, world::World};

/// What the conditions of a group say.
pub(crate) fn statements(group: &Group) -> Vec<(&'static str, Statement)> {
    group.conditions.iter().map(|condition| (condition.type_, condition.statement.clone())).collect()
}

impl World {
    /// The status of an Application, as the cluster has it.
    pub(crate) fn status(&self, name: &str) -> ApplicationStatus {
        let (kind, name) = objects::key("Application.bellwether.dev", name);
        let object = self.server.get(&kind, &name).expect("the Application is there");
        serde_json::from_value(object["status"].clone()).expect("a status")
    }

    /// A condition of an object, in a line: `True ComponentsReady: All components ready`.
    pub(crate) fn condition(&self, kind: &str, name: &str, condition: &str) -> String {
        let (kind, name) = objects::key(kind, name);
        let object = self.server.get(&kind, &name).expect("the object is there");
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let mut of_type = conditions.filter(|other| other["type"] == condition);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        of_type.next().map_or_else(
            || "none".to_owned(),
            |it| format!("{} {}: {}", text(&it["status"]), text(&it["reason"]), text(&it["message"])),
        )
    }

    /// A condition of an Application, in a line.
    pub(crate) fn of_app(&self, name: &str, condition: &str) -> String {
        self.condition("Application.bellwether.dev", name, condition)
    }

    /// The names of the owners of an object, in a line.
    pub(crate) fn owners(&self, kind: &str, name: &str) -> String {
        let (kind, name) = objects::key(kind, name);
        let object = self.server.get(&kind, &name).expect("the object is there");
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.map(|owner| owner["name"].as_str().expect("a name")).collect::<Vec<_>>().join(" ")
    }
}
