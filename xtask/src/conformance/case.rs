//! One case: an object, the expected status, and the comparison with Bellwether's verdict.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use bellwether_health::{
    Context, Verdict, assess,
    dialect::{argo, kstatus},
    user::{Form, RuleTarget, UserRule, UserRules},
};
use bellwether_model::{Object, State};
use jiff::Timestamp;
use serde_json::Value as Json;

pub(super) struct Case {
    pub(super) id: String,
    pub(super) now: Timestamp,
    /// The expected status; `None` if the other project does not assess the kind.
    status: Option<String>,
    /// The expected message, where it must match.
    message: Option<String>,
    /// Type, status and reason of required conditions.
    conditions: Vec<[String; 3]>,
    /// Types of forbidden conditions.
    absent: Vec<String>,
    /// Flux's expressions: current, in progress, failed.
    expressions: [Option<String>; 3],
    /// The error that Flux reports.
    error: Option<String>,
    pub(super) object: Vec<u8>,
}

pub(super) struct Outcome {
    pub(super) agrees: bool,
    /// Failed is expected, but the verdict is Ready.
    pub(super) false_green: bool,
    pub(super) expected: String,
    pub(super) got: String,
}

impl Case {
    pub(super) fn read(line: &str) -> Result<Self> {
        let mut case: Json = serde_json::from_str(line)?;
        let now = match &case["now"] {
            Json::String(now) => now.parse().with_context(|| format!("invalid time {now}"))?,
            _ => Timestamp::now(),
        };
        Ok(Self {
            id: text(&case["id"]).context("missing id")?,
            now,
            status: text(&case["status"]),
            message: text(&case["message"]),
            conditions: entries(&case["conditions"])
                .map(|condition| {
                    ["type", "status", "reason"].map(|field| text(&condition[field]).unwrap_or_default())
                })
                .collect(),
            absent: entries(&case["absent"]).filter_map(text).collect(),
            expressions: ["Current", "InProgress", "Failed"].map(|name| text(&case["exprs"][name])),
            error: text(&case["err"]),
            object: serde_json::to_vec(&case["object"].take())?,
        })
    }
}

fn text(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn entries(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

/// Compares the kstatus dialect with kstatus.
pub(super) fn kstatus(case: &Case, ours: &kstatus::Assessment) -> Outcome {
    let theirs = case.status.as_deref().unwrap_or("none");
    let got = format!("{:?}", ours.status);
    let conditions: Vec<_> = ours
        .conditions
        .iter()
        .map(|condition| {
            [condition.kind.to_owned(), format!("{:?}", condition.status), condition.reason.to_string()]
        })
        .collect();
    Outcome {
        agrees: got == theirs
            && case.message.as_ref().is_none_or(|message| *message == ours.message)
            && case.conditions.iter().all(|condition| conditions.contains(condition))
            && !conditions.iter().any(|[kind, ..]| case.absent.contains(kind)),
        false_green: theirs == "Failed" && got == "Current",
        expected: format!(
            "{theirs} {:?} with {:?} and without {:?}",
            bounded(case.message.as_deref().unwrap_or("any message")),
            case.conditions,
            case.absent
        ),
        got: format!("{got} {:?} with {conditions:?}", bounded(&ours.message)),
    }
}

/// Compares the argo dialect with Argo CD.
pub(super) fn argo(case: &Case, ours: Option<&argo::Health>) -> Outcome {
    let got = ours.map(|health| format!("{:?}", health.status));
    let word = |status: Option<&str>| status.unwrap_or("none").to_owned();
    Outcome {
        agrees: got == case.status,
        false_green: case.status.as_deref() == Some("Degraded") && got.as_deref() == Some("Healthy"),
        expected: word(case.status.as_deref()),
        got: format!("{} {:?}", word(got.as_deref()), bounded(ours.map_or("", |health| &health.message))),
    }
}

/// Whether a state corresponds to a health status of Argo CD. Argo CD has no status for deletion, and is
/// Unknown or Missing in cases where Bellwether is InProgress.
fn means(status: &str, state: State) -> bool {
    match status {
        "Healthy" => state == State::Ready,
        "Progressing" => matches!(state, State::InProgress | State::Terminating),
        "Degraded" => state == State::Failed,
        "Suspended" => state == State::Suspended,
        "Missing" => state == State::InProgress,
        "Unknown" => matches!(state, State::Unknown | State::InProgress),
        _ => false,
    }
}

/// Compares Bellwether's verdict with that of Argo CD.
pub(super) fn native(case: &Case, verdict: &Verdict) -> Outcome {
    let status = case.status.as_deref().unwrap_or("none");
    Outcome {
        agrees: means(status, verdict.state),
        false_green: status == "Degraded" && verdict.state == State::Ready,
        expected: status.to_owned(),
        got: format!(
            "{:?} {} by {}: {}",
            verdict.state,
            verdict.reason,
            verdict.rule.id,
            bounded(&verdict.message)
        ),
    }
}

/// Compares a rule with Flux's expressions with Flux: the status, or the exact error.
pub(super) fn flux(case: &Case, object: &Object<'_>) -> Outcome {
    let [current, in_progress, failed] = case.expressions.clone();
    let rule = UserRule {
        name: "flux".to_owned(),
        created: None,
        kind: RuleTarget {
            group: object.group().to_owned(),
            version: None,
            kind: Some(object.kind().to_owned()),
        },
        form: Form::Flux { current: current.unwrap_or_default(), in_progress, failed },
    };
    let (got, verdict) = match rule.compile() {
        Ok(rule) => {
            let rules = UserRules::new([Arc::new(rule)]);
            let verdict = assess(object, &Context { rules: Some(&rules), ..Context::at(case.now) });
            let got = match verdict.state {
                State::Ready => "Current".to_owned(),
                State::Unknown => verdict.message.to_string(),
                state => state.name().to_owned(),
            };
            (got, Some(verdict))
        }
        Err(errors) => (errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "), None),
    };
    let expected = case.error.clone().or_else(|| case.status.clone()).unwrap_or_default();
    Outcome {
        agrees: got == expected,
        false_green: expected == "Failed" && verdict.is_some_and(|verdict| verdict.state == State::Ready),
        expected,
        got,
    }
}

/// The beginning of a message, without control characters.
fn bounded(message: &str) -> String {
    const LONGEST: usize = 160;
    let mut characters =
        message.chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut bounded: String = characters.by_ref().take(LONGEST).collect();
    if characters.next().is_some() {
        bounded.push('…');
    }
    bounded
}
