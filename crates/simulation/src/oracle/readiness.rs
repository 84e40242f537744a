//! `status.state` and the condition Ready, from the states of members and the health check.

use bellwether_api::{Application, ObjectCounts, State};
use bellwether_engine::GroupKind;
use serde_json::{Value, json};

use super::{Oracle, Part};

impl Oracle<'_> {
    /// `status.state`: the worst of what keeps the Application from being ready.
    pub(super) fn state(&self, app: &Application, parts: &[Part]) -> State {
        if app.metadata.deletion_timestamp.is_some() {
            return State::Terminating;
        }
        state_of(readiness(&self.all_states(app, parts)))
    }

    /// `status.reason` where it is that of a verdict.
    pub(super) fn reason(state: State, parts: &[Part]) -> Option<String> {
        let is_symptom = |part: &&Part| part.lacks_endpoints && part.state == State::InProgress;
        let worst = parts.iter().filter(|part| part.state == state && state != State::Ready);
        let worst = worst.min_by_key(is_symptom);
        let blocking = || parts.iter().find(|part| part.blocks && state == State::InProgress);
        let worst = worst.or_else(blocking)?;
        worst.says.as_ref().map(|(reason, ..)| reason.clone())
    }

    /// The states of the parts, of the kinds that cannot be used, and of the health check.
    fn all_states(&self, app: &Application, parts: &[Part]) -> Vec<State> {
        let mut all = states(parts);
        all.extend((self.unresolved(app) > 0).then_some(State::Unknown));
        all.extend(parts.iter().any(|part| part.blocks).then_some(State::InProgress));
        all.extend(match self.health_check(app) {
            Some("False") => Some(State::InProgress),
            Some("Unknown") => Some(State::Unknown),
            // A passing health check counts only if the spec has no components.
            Some("True") if Self::has_only_a_check(app) => Some(State::Ready),
            _ => None,
        });
        all
    }

    /// Status, reason and message of Ready. The message is null where the oracle does not know it.
    pub(super) fn ready(&self, app: &Application, parts: &[Part]) -> Value {
        if app.metadata.deletion_timestamp.is_some() {
            return json!(["False", "Terminating", null]);
        }
        let (unresolved, check) = (self.unresolved(app), self.health_check(app));
        let (status, reason) = readiness(&self.all_states(app, parts));
        // The oracle knows the messages of verdicts, but not those for missing and unreadable components.
        let are_texts_known = parts.iter().all(|part| part.says.is_some());
        let message = match status {
            "True" => Some(match parts.iter().filter(|part| part.state == State::Suspended).count() {
                0 => "All components ready".to_owned(),
                suspended => format!("All components ready, {suspended} suspended"),
            }),
            "False" if are_texts_known && check.is_none() && unresolved == 0 => {
                let worst = [State::Failed, State::Missing, State::InProgress, State::Terminating];
                let bad: Vec<_> = worst
                    .iter()
                    .flat_map(|state| parts.iter().filter(move |part| part.state == *state))
                    .chain(parts.iter().filter(|part| part.blocks))
                    .map(|part| (format!("{}/{}:", part.kind.kind, part.name), part.one_line()))
                    .collect();
                Some(bellwether_conditions::message(bad.clone(), bad.len(), 1024))
            }
            _ => None,
        };
        json!([status, reason, message])
    }

    pub(super) fn has_only_a_check(app: &Application) -> bool {
        app.spec.components.is_empty() && app.spec.component_kinds.is_empty()
    }

    /// Readiness of the health-check Pod. None if the spec has no health check.
    pub(super) fn health_check(&self, app: &Application) -> Option<&'static str> {
        let template = json!(app.spec.health_check.as_ref()?.template.spec);
        let known = self.kinds[&GroupKind::pod()];
        if known.unreadable.is_some() {
            return Some("Unknown");
        }
        let pods = &known.objects;
        let is_ours = |pod: &&Value| {
            pod["metadata"]["ownerReferences"][0]["uid"] == json!(app.metadata.uid) && pod["spec"] == template
        };
        let is_over = |pod: &Value| {
            pod["metadata"].get("deletionTimestamp").is_some()
                || ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase)
        };
        let pod = pods.values().map(|pod| &pod.value).find(is_ours).filter(|pod| !is_over(pod));
        let conditions = pod.and_then(|pod| pod["status"]["conditions"].as_array()).into_iter().flatten();
        let ready = conditions.filter(|it| it["type"] == "Ready").map(|it| it["status"].as_str()).next();
        Some(match ready.flatten() {
            Some("True") => "True",
            Some("False") => "False",
            _ => "Unknown",
        })
    }
}

impl Part {
    /// The reason of the verdict. None if the object is missing or unreadable.
    pub fn reason(&self) -> Option<&str> {
        self.says.as_ref().map(|(reason, ..)| &**reason)
    }

    /// The text about the object in the message of Ready.
    fn one_line(&self) -> String {
        let Some((reason, message, _)) = &self.says else { return String::new() };
        if self.kind == GroupKind::bellwether("Application") {
            return format!("{} ({reason})", self.state.name());
        }
        if self.state == State::Failed && !message.contains(reason.as_str()) {
            return format!("{reason}: {message}");
        }
        message.clone()
    }
}

/// Status and reason of Ready from the states of members and missing components.
pub fn readiness(states: &[State]) -> (&'static str, &'static str) {
    let worst = [
        (State::Failed, "ComponentsFailed"),
        (State::Missing, "ComponentsMissing"),
        (State::InProgress, "ComponentsInProgress"),
        (State::Terminating, "ComponentsTerminating"),
    ];
    if let Some((_, reason)) = worst.into_iter().find(|(state, _)| states.contains(state)) {
        ("False", reason)
    } else if states.contains(&State::Unknown) {
        ("Unknown", "ComponentsUnknown")
    } else if states.is_empty() {
        ("Unknown", "NoComponents")
    } else {
        ("True", "ComponentsReady")
    }
}

/// `status.state` of an Application that is not being deleted, from status and reason of Ready.
pub fn state_of(ready: (&str, &str)) -> State {
    match ready {
        ("True", _) => State::Ready,
        (_, "ComponentsFailed") => State::Failed,
        (_, "ComponentsMissing") => State::Missing,
        (_, "ComponentsInProgress") => State::InProgress,
        (_, "ComponentsTerminating") => State::Terminating,
        _ => State::Unknown,
    }
}

pub(super) fn states(parts: &[Part]) -> Vec<State> {
    parts.iter().map(|part| part.state).collect()
}

pub fn counts(states: &[State]) -> ObjectCounts {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let of = |wanted: State| number(states.iter().filter(|state| **state == wanted).count());
    ObjectCounts {
        total: number(states.len()),
        ready: of(State::Ready),
        in_progress: of(State::InProgress),
        failed: of(State::Failed),
        suspended: of(State::Suspended),
        terminating: of(State::Terminating),
        unknown: of(State::Unknown),
        missing: of(State::Missing),
    }
}
