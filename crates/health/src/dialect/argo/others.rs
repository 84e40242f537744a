//! Argo CD's checks of other kinds.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Health, HealthStatusCode};
use crate::dialect::go::{self, Typed};

pub(super) fn service(o: Typed<'_>) -> go::Result<Health> {
    let addresses = o.list("status.loadBalancer.ingress")?.count();
    Ok(if o.text("spec.type")? == "LoadBalancer" && addresses == 0 {
        Health::progressing("")
    } else {
        Health::healthy("")
    })
}

/// The only check that ignores fields of a wrong type.
#[expect(clippy::unnecessary_wraps, reason = "same signature as the other checks")]
pub(super) fn ingress(o: Typed<'_>) -> go::Result<Health> {
    let addresses = o.list("status.loadBalancer.ingress").map_or(0, Iterator::count);
    Ok(if addresses == 0 { Health::progressing("") } else { Health::healthy("") })
}

pub(super) fn claim(o: Typed<'_>) -> go::Result<Health> {
    let status = match o.text("status.phase")? {
        "Lost" => HealthStatusCode::Degraded,
        "Pending" => HealthStatusCode::Progressing,
        "Bound" => HealthStatusCode::Healthy,
        _ => HealthStatusCode::Unknown,
    };
    Ok(Health::new(status, ""))
}

pub(super) fn api_service(o: Typed<'_>) -> go::Result<Health> {
    let conditions = go::conditions(o)?;
    Ok(match conditions.iter().find(|condition| condition.kind == "Available") {
        None => Health::progressing("Waiting to be processed"),
        Some(available) => {
            let status =
                if available.is_true() { HealthStatusCode::Healthy } else { HealthStatusCode::Progressing };
            Health::new(status, format!("{}: {}", available.reason, available.message))
        }
    })
}

pub(super) fn workflow(o: Typed<'_>) -> go::Result<Health> {
    let status = match o.text("status.phase")? {
        "" | "Pending" | "Running" => HealthStatusCode::Progressing,
        "Succeeded" => HealthStatusCode::Healthy,
        "Failed" | "Error" => HealthStatusCode::Degraded,
        _ => HealthStatusCode::Unknown,
    };
    Ok(Health::new(status, o.text("status.message")?.to_owned()))
}

/// autoscaling/v1 has the conditions in an annotation.
pub(super) fn autoscaler(o: Typed<'_>) -> go::Result<Health> {
    if o.text("apiVersion")? != "autoscaling/v1" {
        let conditions: Vec<_> = go::conditions(o)?.into_iter().map(Scaling::from).collect();
        return Ok(scaling(&conditions));
    }
    let annotations = o.at("metadata.annotations")?;
    let Some(annotation) = annotations.entry("autoscaling.alpha.kubernetes.io/conditions")? else {
        return Ok(scaling(&[]));
    };
    Ok(match serde_json::from_str::<Option<Vec<Option<Scaling<'_>>>>>(annotation) {
        Ok(conditions) => scaling(&conditions.into_iter().flatten().flatten().collect::<Vec<_>>()),
        Err(error) => Health::unknown(format!("failed to convert conditions annotation to typed: {error}")),
    })
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Scaling<'o> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'o, str>,
    #[serde(borrow)]
    status: Cow<'o, str>,
    #[serde(borrow)]
    reason: Cow<'o, str>,
    #[serde(borrow)]
    message: Cow<'o, str>,
}

impl<'o> From<go::GoCondition<'o>> for Scaling<'o> {
    fn from(condition: go::GoCondition<'o>) -> Self {
        Self {
            kind: condition.kind.into(),
            status: condition.status.into(),
            reason: condition.reason.into(),
            message: condition.message.into(),
        }
    }
}

/// Condition types and reasons that mean Degraded.
const ERRORS: &[(&str, &str)] = &[
    ("AbleToScale", "FailedGetScale"),
    ("AbleToScale", "FailedUpdateScale"),
    ("ScalingActive", "FailedGetResourceMetric"),
    ("ScalingActive", "FailedGetObjectMetric"),
    ("ScalingActive", "FailedGetPodsMetric"),
    ("ScalingActive", "FailedGetExternalMetric"),
    ("ScalingActive", "FailedComputeMetricsReplicas"),
    ("ScalingActive", "InvalidSelector"),
];

/// Errors take precedence over conditions that are True.
fn scaling(conditions: &[Scaling<'_>]) -> Health {
    let is_error =
        |condition: &&Scaling<'_>| ERRORS.contains(&(condition.kind.as_ref(), condition.reason.as_ref()));
    let works = |condition: &&Scaling<'_>| {
        matches!(condition.kind.as_ref(), "AbleToScale" | "ScalingLimited") && condition.status == "True"
    };
    if let Some(error) = conditions.iter().find(is_error) {
        return Health::degraded(error.message.to_string());
    }
    match conditions.iter().find(works) {
        Some(working) => Health::healthy(working.message.to_string()),
        None => Health::progressing("Waiting to Autoscale"),
    }
}
