//! The variables of a row: what an object looks like in one cluster.

use std::borrow::Cow;

use bellwether_model::{State, Value};
use bellwether_tables::{Propagation, Row, last_status_update, returned};

use crate::{facts::Facts, planted::Bug, requested_fields::RequestedValues};

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
        let (returned, propagation) = (self.returned(), self.propagation());
        evaluate(&Row { inventory, obj, returned: &returned, propagation: &propagation })
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

    pub(super) fn propagation(&self) -> Value<'static> {
        let (health, progress) = self.health();
        let object = self.values().map(|values| &values.fields);
        let observed = object.and_then(|object| object.at("status.observedGeneration"));
        let propagation = Propagation {
            found: self.found,
            stale: self.is_stale,
            health,
            progress,
            observed_generation: observed.and_then(Value::as_int),
            last_update: object.and_then(last_status_update),
        };
        propagation.variable()
    }

    /// The variable `returned`, with what is requested.
    pub(super) fn returned(&self) -> Cow<'_, Value<'static>> {
        match self.values() {
            // Only an expression that reads the whole can tell that others have requested more of the object.
            Some(values) if values.requested.paths.iter().any(|path| is_whole(path)) => {
                Cow::Owned(returned(&values.fields))
            }
            Some(values) => Cow::Borrowed(&values.fields),
            None => Cow::Owned(Value::Null),
        }
    }

    fn values(&self) -> Option<&RequestedValues> {
        self.facts.and_then(|facts| facts.values.as_deref())
    }
}

/// Whether it is the path of an object, or of its metadata.
fn is_whole(path: &[Box<str>]) -> bool {
    path.is_empty() || path.iter().map(|field| &**field).eq(["metadata"])
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
