//! The variables of a row: what an object looks like in one cluster.

use bellwether_model::{State, Value};
use bellwether_tables::Row;

use crate::{facts::Facts, planted::Bug};

/// An object in one of the clusters that it is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'a> {
    /// `None` if the object does not exist there, or if that is not known.
    pub(super) facts: Option<&'a Facts>,
    /// Whether the object exists there; `None` if that is not known.
    pub(super) found: Option<bool>,
    /// What is known is too old, or comes from a kind that cannot be read any more.
    pub(super) is_stale: bool,
}

/// How a cluster counts for an object. Among policies, the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    Reporting,
    Missing,
    Stale,
}

impl Report<'_> {
    pub(super) fn presence(&self) -> Presence {
        match self.found {
            _ if self.is_stale && !Bug::CountStaleAsReporting.is_planted() => Presence::Stale,
            Some(true) => Presence::Reporting,
            _ => Presence::Missing,
        }
    }

    /// Calls `evaluate` with the row.
    pub(super) fn with_row<T>(
        &self,
        inventory: &Value<'_>,
        obj: &Value<'_>,
        evaluate: impl FnOnce(&Row<'_>) -> T,
    ) -> T {
        let values = self.facts.and_then(|facts| facts.values.as_deref());
        let returned = values.map_or(&Value::Null, |values| &values.fields);
        let propagation = self.propagation(returned);
        evaluate(&Row { inventory, obj, returned, propagation: &propagation })
    }

    /// The state and the progress. What a stale cluster reported last does not make the object fine there.
    pub(super) fn health(&self) -> (State, Option<u8>) {
        let verdict = self.facts.map(|facts| &facts.verdict).filter(|_| !self.is_stale);
        match (verdict, self.found) {
            (Some(verdict), _) => (verdict.state, Some(verdict.progress)),
            (None, Some(false)) if !self.is_stale => (State::Missing, Some(0)),
            _ => (State::Unknown, None),
        }
    }

    pub(super) fn propagation(&self, returned: &Value<'_>) -> Value<'static> {
        let (health, progress) = self.health();
        let fields = [
            ("found", self.found.map_or(Value::Null, Value::Bool)),
            ("stale", Value::Bool(self.is_stale)),
            ("health", Value::Text(health.name().into())),
            ("progress", progress.map_or(Value::Null, |progress| Value::Int(progress.into()))),
            (
                "observedGeneration",
                returned.at("status.observedGeneration").map_or(Value::Null, Value::to_static),
            ),
            ("lastReturnedUpdateTimestamp", last_status_update(returned)),
        ];
        Value::Map(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

/// When the status was written last, by the managed fields; of a kind without a status subresource, when the
/// object was. RFC 3339 in UTC sorts like the time.
fn last_status_update(returned: &Value<'_>) -> Value<'static> {
    let writes = returned.at("metadata.managedFields").and_then(Value::as_list).unwrap_or_default();
    let time = |write: &&Value<'_>| write.get("time").and_then(Value::as_text).map(str::to_owned);
    let is_status = |write: &&Value<'_>| write.get("subresource").and_then(Value::as_text) == Some("status");
    let of_status = writes.iter().filter(is_status).filter_map(|write| time(&write)).max();
    let last = of_status.or_else(|| writes.iter().filter_map(|write| time(&write)).max());
    last.map_or(Value::Null, |time| Value::Text(time.into()))
}

/// The fields of an object that the variable `propagation` is made from.
pub(super) fn fields_of_propagation(field: Option<&str>) -> &'static [&'static [&'static str]] {
    const GENERATION: &[&str] = &["status", "observedGeneration"];
    const UPDATE: [&[&str]; 2] =
        [&["metadata", "managedFields", "time"], &["metadata", "managedFields", "subresource"]];
    match field {
        Some("observedGeneration") => &[GENERATION],
        Some("lastReturnedUpdateTimestamp") => &UPDATE,
        None => &[GENERATION, UPDATE[0], UPDATE[1]],
        Some(_) => &[],
    }
}
