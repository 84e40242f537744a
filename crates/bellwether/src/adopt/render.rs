//! A plan in words.

use std::fmt::Write as _;

use bellwether_engine::{Facts, GroupKind, NamespacedName};
use bellwether_inspect::observe::ListedObject;
use bellwether_terminal::{Screen, printable, wrap};

use super::plan::{Mark, MarkTarget, ObjectChange, Plan};

/// So many others are named; the rest is counted.
const MOST_OTHERS: usize = 10;

/// Objects of the same kinds that the selector matches as well.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// They are counted.
    pub(super) counted: Vec<String>,
    /// They were annotated for this Application before, so that they become its own.
    pub(super) owned: Vec<String>,
    /// Kinds of which nobody can tell, and why.
    pub(super) unknown: Vec<String>,
}

impl Others {
    /// Takes note of an object that was seen.
    pub(super) fn see(&mut self, plan: &Plan, beside: &ListedObject) {
        let ListedObject { kind, name, facts } = beside;
        let NamespacedName { namespace, name: application } = &plan.application;
        if name.namespace != *namespace || plan.names(kind, name) || !plan.selects(facts) {
            return;
        }
        let object = format!("{kind} {}", name.name);
        match facts.application.as_deref() {
            None => self.counted.push(object),
            Some(own) if own == &**application => self.owned.push(object),
            Some(_) => {}
        }
    }

    fn told(&self, application: &str) -> Vec<String> {
        let mut told = Vec::new();
        if !self.owned.is_empty() {
            told.push(format!(
                "It will own others too, which have its labels and its annotation: {}.",
                some_of(&self.owned)
            ));
        }
        if !self.counted.is_empty() {
            told.push(format!(
                "It will count others too, which have its labels, without owning them: {}.",
                some_of(&self.counted)
            ));
        }
        told.extend(
            self.unknown
                .iter()
                .map(|why| format!("Whether {application} will count others too cannot be told: {why}.")),
        );
        told
    }
}

fn some_of(names: &[String]) -> String {
    let mut text = names.iter().take(MOST_OTHERS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(MOST_OTHERS) {
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

    /// All that is to be done, a line for each change.
    pub(super) fn told(&self, others: &Others, screen: Screen) -> String {
        let NamespacedName { namespace, name } = &self.application;
        let (objects, these) =
            if self.steps.len() == 1 { ("object", "this object") } else { ("objects", "these objects") };
        let mut text = format!("Application {namespace}/{name} of {} {objects}:\n\n", self.steps.len());
        for step in &self.steps {
            let _ = writeln!(text, "  {} {}", step.object.kind, step.object.name.name);
            step.tell(&mut text);
        }
        let _ = writeln!(text, "  Application {name}");
        if self.creates {
            let labels: Vec<_> = self.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
            let _ = writeln!(text, "    created, with the selector {}", labels.join(","));
            let keys: Vec<_> = self.component_keys().collect();
            let components = if keys.len() == 1 { "component" } else { "components" };
            let _ = writeln!(text, "    and the {components} {}", keys.join(", "));
        } else {
            let _ = writeln!(text, "    is there already, and names just these");
        }
        text.push('\n');
        let whose =
            format!("It will own {these}: whoever deletes Application {name} deletes {these} with it.");
        let told = others.told(name);
        for sentence in [whose].iter().chain(&told) {
            for line in wrap(sentence, screen.page()) {
                let _ = writeln!(text, "{line}");
            }
        }
        // Names and values come from anywhere; the breaks between lines are ours.
        text.lines().fold(String::new(), |text, line| text + &printable(line) + "\n")
    }

    fn component_keys(&self) -> impl Iterator<Item = &str> {
        self.manifest["spec"]["components"].as_object().into_iter().flatten().map(|(key, _)| key.as_str())
    }
}

impl ObjectChange {
    fn tell(&self, text: &mut String) {
        for Mark { place, key, before, after } in &self.changes {
            let place = match place {
                MarkTarget::Labels => "label",
                MarkTarget::Annotations => "annotation",
            };
            let before = match before.as_deref() {
                None => "none",
                Some("") => "\"\"",
                Some(before) => before,
            };
            let after = if after.is_empty() { "\"\"" } else { after };
            let _ = writeln!(text, "    {place} {key}: {before} → {after}");
        }
        if self.changes.is_empty() {
            let _ = writeln!(text, "    has its labels and its annotation already");
        }
    }
}
