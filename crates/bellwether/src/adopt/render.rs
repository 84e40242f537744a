//! The plan as text.

use std::fmt::Write as _;

use bellwether_engine::{Facts, GroupKind, NamespacedName};
use bellwether_inspect::observe::ListedObject;
use bellwether_terminal::{Screen, printable, wrap};

use super::plan::{MetadataChange, MetadataField, ObjectChange, Plan, object_name};

/// More are only counted.
const MAX_OTHERS: usize = 10;

/// Other objects of the same kinds that match the selector.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Members without the annotation.
    pub(super) not_owned: Vec<String>,
    /// Members with the annotation, which the Application will own.
    pub(super) owned: Vec<String>,
    /// A sentence for each kind that cannot be listed.
    pub(super) unknown: Vec<String>,
}

impl Others {
    /// Adds an object if it will be a member.
    pub(super) fn add(&mut self, plan: &Plan, object: &ListedObject) {
        let ListedObject { kind, name, facts } = object;
        let NamespacedName { namespace, name: application } = &plan.application;
        if name.namespace != *namespace || plan.names(kind, name) || !plan.selects(facts) {
            return;
        }
        let object = object_name(kind, name);
        match facts.application.as_deref() {
            None => self.not_owned.push(object),
            Some(own) if own == &**application => self.owned.push(object),
            Some(_) => {}
        }
    }

    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if !self.owned.is_empty() {
            sentences.push(format!("Also owned (labels and annotation): {}.", some_of(&self.owned)));
        }
        if !self.not_owned.is_empty() {
            sentences.push(format!("Also members, not owned (labels only): {}.", some_of(&self.not_owned)));
        }
        sentences.extend(self.unknown.iter().map(|why| format!("Other members are unknown: {why}.")));
        sentences
    }
}

fn some_of(names: &[String]) -> String {
    let mut text = names.iter().take(MAX_OTHERS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(MAX_OTHERS) {
        let _ = write!(text, " and {more} more");
    }
    text
}

impl Plan {
    fn names(&self, kind: &GroupKind, name: &NamespacedName) -> bool {
        self.steps.iter().any(|step| step.object.kind == *kind && step.object.name == *name)
    }

    fn selects(&self, facts: &Facts) -> bool {
        self.labels().iter().all(|(key, value)| facts.labels.get(key) == Some(value))
    }

    /// A line for each change.
    pub(super) fn text(&self, others: &Others, screen: Screen) -> String {
        let NamespacedName { namespace, name } = &self.application;
        let (objects, them) = if self.steps.len() == 1 { ("object", "it") } else { ("objects", "them") };
        let mut text = format!("Application {namespace}/{name} with {} {objects}:\n\n", self.steps.len());
        for step in &self.steps {
            let _ = writeln!(text, "  {}", step.object);
            step.write(&mut text);
        }
        let _ = writeln!(text, "  Application/{name}");
        if self.creates {
            let labels: Vec<_> = self.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
            let keys: Vec<_> = self.component_keys().collect();
            let _ = writeln!(text, "    create");
            let _ = writeln!(text, "    selector: {}", labels.join(","));
            let _ = writeln!(text, "    components: {}", keys.join(", "));
        } else {
            let _ = writeln!(text, "    no changes");
        }
        text.push('\n');
        let ownership =
            format!("The Application owns the {objects}: deleting Application {name} deletes {them}.");
        for sentence in [ownership].iter().chain(&others.sentences()) {
            for line in wrap(sentence, screen.page()) {
                let _ = writeln!(text, "{line}");
            }
        }
        // Names and values may contain control characters.
        text.lines().fold(String::new(), |text, line| text + &printable(line) + "\n")
    }

    fn component_keys(&self) -> impl Iterator<Item = &str> {
        self.manifest["spec"]["components"].as_object().into_iter().flatten().map(|(key, _)| key.as_str())
    }
}

impl ObjectChange {
    fn write(&self, text: &mut String) {
        for MetadataChange { field, key, before, after } in &self.changes {
            let field = match field {
                MetadataField::Labels => "label",
                MetadataField::Annotations => "annotation",
            };
            let before = match before.as_deref() {
                None => "<none>",
                Some("") => "\"\"",
                Some(before) => before,
            };
            let after = if after.is_empty() { "\"\"" } else { after };
            let _ = writeln!(text, "    {field} {key}: {before} → {after}");
        }
        if self.changes.is_empty() {
            let _ = writeln!(text, "    no changes");
        }
    }
}
