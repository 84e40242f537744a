//! StatusCollectors: compiles them, and publishes whether each is valid.

use std::sync::Arc;

use bellwether_api::{ConditionStatus, StatusCollectorSpec, StatusCollectorStatus};
use bellwether_conditions::{Statement, message};
use bellwether_model::text::shorten;
use bellwether_tables::{Collector, CollectorError};
use jiff::Timestamp;

use crate::{
    condition_types::VALID,
    effect::Write,
    publication::{ConditionSet, Publication, Recorded},
    reasons::status_collector as reasons,
    registry::Published,
    stored_condition::{ConditionShape, MESSAGE_BUDGET},
};

pub(super) const CONDITIONS: ConditionSet = ConditionSet {
    own: &[VALID],
    recorded: &[Recorded::Condition(VALID, Some(ConditionStatus::True))],
    shape: ConditionShape::Generation,
    overwrite_hint: None,
};

/// The limits of `status.errors` in the CRD.
const MAX_ERRORS: usize = 128;
const MAX_ERROR_LENGTH: usize = 1024;

#[derive(Debug)]
pub(super) struct CollectorState {
    pub(super) publication: Publication,
    spec: StatusCollectorSpec,
    compiled: Result<Arc<Collector>, Vec<CollectorError>>,
}

/// What a policy finds under the name of a collector.
#[derive(Clone, Debug)]
pub(super) enum CollectorVersion {
    Missing,
    Invalid,
    Valid(Arc<Collector>),
}

/// Collectors are compared by identity: each version of the spec is compiled once.
impl PartialEq for CollectorVersion {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Valid(own), Self::Valid(other)) => Arc::ptr_eq(own, other),
            (Self::Missing, Self::Missing) | (Self::Invalid, Self::Invalid) => true,
            _ => false,
        }
    }
}

impl CollectorVersion {
    pub(super) fn valid(&self) -> Option<&Arc<Collector>> {
        match self {
            Self::Valid(collector) => Some(collector),
            Self::Missing | Self::Invalid => None,
        }
    }
}

impl Published for CollectorState {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl CollectorState {
    pub(super) fn new(publication: Publication, spec: StatusCollectorSpec) -> Self {
        let compiled = Collector::compile(&spec).map(Arc::new);
        Self { publication, spec, compiled }
    }

    /// Returns whether the spec changed.
    pub(super) fn set_spec(&mut self, spec: &StatusCollectorSpec) -> bool {
        if self.spec == *spec {
            return false;
        }
        self.compiled = Collector::compile(spec).map(Arc::new);
        self.spec = spec.clone();
        true
    }

    pub(super) fn version(&self) -> CollectorVersion {
        self.compiled
            .as_ref()
            .map_or(CollectorVersion::Invalid, |collector| CollectorVersion::Valid(Arc::clone(collector)))
    }

    pub(super) fn statement(&self) -> Statement {
        match &self.compiled {
            Ok(_) => Statement::new(ConditionStatus::True, reasons::VALID, "Every expression is valid"),
            Err(errors) => {
                let items = errors.iter().map(|error| (format!("{}:", error.place), error.text.clone()));
                let text = message(items, errors.len(), MESSAGE_BUDGET);
                Statement::new(ConditionStatus::False, reasons::INVALID, text)
            }
        }
    }

    pub(super) fn status(&self, now: Timestamp) -> Option<Write> {
        let conditions = self.publication.conditions([(VALID, Some(self.statement()))], now);
        let errors = self.compiled.as_ref().err().into_iter().flatten().take(MAX_ERRORS).map(|error| {
            let mut text = error.to_string();
            shorten(&mut text, MAX_ERROR_LENGTH);
            text
        });
        let status = StatusCollectorStatus {
            observed_generation: Some(self.publication.generation),
            conditions: conditions.into_iter().map(Into::into).collect(),
            errors: errors.collect(),
        };
        self.publication.render_write(&status)
    }
}
