//! Reads statuses, conditions and owner references from the cluster of the tests.

use bellwether_api::ApplicationStatus;
use bellwether_conditions::Statement;
use bellwether_engine::Group;
use serde_json::Value;

use crate::{objects, world::World};

pub(crate) fn statements(group: &Group) -> Vec<(&'static str, Statement)> {
    group.conditions.iter().map(|condition| (condition.type_, condition.statement.clone())).collect()
}

impl World {
    pub(crate) fn status(&self, name: &str) -> ApplicationStatus {
        let (kind, name) = objects::key("Application.bellwether.dev", name);
        let object = self.server.get(&kind, &name).expect("the Application is there");
        serde_json::from_value(object["status"].clone()).expect("a status")
    }

    /// In a line: `True ComponentsReady: All components ready`.
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

    /// In a line.
    pub(crate) fn of_app(&self, name: &str, condition: &str) -> String {
        self.condition("Application.bellwether.dev", name, condition)
    }

    /// In a line.
    pub(crate) fn owners(&self, kind: &str, name: &str) -> String {
        let (kind, name) = objects::key(kind, name);
        let object = self.server.get(&kind, &name).expect("the object is there");
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.map(|owner| owner["name"].as_str().expect("a name")).collect::<Vec<_>>().join(" ")
    }
}
