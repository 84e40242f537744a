//! The assessment of an object, in any dialect.

use std::borrow::Cow;

use bellwether_engine::GroupKind;
use bellwether_health::{
    Context, Evidence, Later, Source, Verdict, assess,
    dialect::{argo, kstatus},
    explain,
};
use bellwether_input::InputError;
use bellwether_inspect::owner_tree::{at, reason_and_message};
use bellwether_model::{Object, State};
use bellwether_terminal::printable;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::cli::Dialect;

/// An object with its assessment.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) identity: Identity,
    pub(crate) assessment: Assessment,
    /// The fields that the verdict is based on, if they were requested.
    pub(crate) evidence: Option<Vec<Evidence>>,
}

#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// Empty for a cluster-scoped object.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The cluster that it is in, if the user names several.
    pub(crate) cluster: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Assessment {
    Native(Verdict),
    Kstatus(kstatus::Assessment),
    /// None if Argo CD has no check for the kind.
    Argo(Option<argo::Health>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Assessor<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) context: Context<'a>,
    /// Whether to return the fields that a verdict is based on.
    pub(crate) evidence: bool,
}

impl Assessor<'_> {
    pub(crate) fn assess(&self, object: &Object<'_>) -> Row {
        let identity = Identity {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            cluster: None,
        };
        let mut evidence = None;
        let assessment = match self.dialect {
            Dialect::Native if self.evidence => {
                let explained = explain(object, &self.context);
                evidence = Some(explained.evidence);
                Assessment::Native(explained.verdict)
            }
            Dialect::Native => Assessment::Native(assess(object, &self.context)),
            Dialect::Kstatus => Assessment::Kstatus(kstatus::assess(object, self.context.now)),
            Dialect::Argo => Assessment::Argo(argo::assess(object)),
        };
        Row { identity, assessment, evidence }
    }
}

impl Row {
    pub(crate) fn in_cluster(mut self, cluster: Option<String>) -> Self {
        self.identity.cluster = cluster;
        self
    }
}

impl Identity {
    pub(crate) fn kind(&self) -> GroupKind {
        GroupKind::new(self.api_version.split_once('/').map_or("", |(group, _)| group), &self.kind)
    }

    /// `Deployment/web`
    pub(crate) fn short(&self) -> String {
        printable(&format!("{}/{}", self.kind, self.name)).into_owned()
    }

    /// `deployment.apps/web`
    pub(crate) fn qualified(&self) -> String {
        let group = self.api_version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
        printable(&format!("{}{group}/{}", self.kind.to_lowercase(), self.name)).into_owned()
    }

    /// `Deployment shop/web`, `Deployment shop/web @west`
    pub(crate) fn heading(&self) -> String {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        let at = at(self.cluster.as_deref());
        printable(&format!("{} {}{separator}{}{at}", self.kind, self.namespace, self.name)).into_owned()
    }
}

impl Assessment {
    /// The native state; none if Argo CD has no check for the kind.
    pub(crate) fn state(&self) -> Option<State> {
        match self {
            Self::Native(verdict) => Some(verdict.state),
            Self::Kstatus(assessment) => Some(match assessment.status {
                kstatus::Status::Current => State::Ready,
                kstatus::Status::InProgress => State::InProgress,
                kstatus::Status::Failed => State::Failed,
                kstatus::Status::Terminating => State::Terminating,
                kstatus::Status::Unknown => State::Unknown,
            }),
            Self::Argo(health) => health.as_ref().map(|health| match health.status {
                argo::HealthStatusCode::Healthy => State::Ready,
                argo::HealthStatusCode::Progressing => State::InProgress,
                argo::HealthStatusCode::Degraded => State::Failed,
                argo::HealthStatusCode::Suspended => State::Suspended,
                argo::HealthStatusCode::Unknown => State::Unknown,
            }),
        }
    }

    /// The state as the dialect names it.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Native(verdict) => format!("{:?}", verdict.state),
            Self::Kstatus(assessment) => format!("{:?}", assessment.status),
            Self::Argo(Some(health)) => format!("{:?}", health.status),
            Self::Argo(None) => "NoOpinion".to_owned(),
        }
    }

    /// Ready, or without a check in Argo CD.
    pub(crate) fn is_healthy(&self) -> bool {
        self.state().is_none_or(|state| state == State::Ready)
    }

    pub(crate) fn message(&self) -> Cow<'_, str> {
        printable(match self {
            Self::Native(verdict) => &verdict.message,
            Self::Kstatus(assessment) => &assessment.message,
            Self::Argo(health) => health.as_ref().map_or("", |health| &health.message),
        })
    }

    /// `Reason: message` of a native verdict that is Failed, the message alone of any other.
    pub(crate) fn why(&self) -> String {
        match self.verdict() {
            Some(verdict) => {
                printable(&reason_and_message(verdict.state, &verdict.reason, &verdict.message)).into_owned()
            }
            None => self.message().into_owned(),
        }
    }

    /// None in other dialects.
    pub(crate) fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Native(verdict) => Some(verdict),
            Self::Kstatus(_) | Self::Argo(_) => None,
        }
    }

    /// Unknown because no rule applies.
    pub(crate) fn has_no_rule(&self) -> bool {
        self.verdict()
            .is_some_and(|verdict| verdict.state == State::Unknown && verdict.rule.source == Source::None)
    }
}

/// For `-o json`. Unknown fields are left out, except that `status` is null if Argo CD has no check for the
/// kind.
impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("apiVersion", &self.identity.api_version)?;
        fields.serialize_entry("kind", &self.identity.kind)?;
        if !self.identity.namespace.is_empty() {
            fields.serialize_entry("namespace", &self.identity.namespace)?;
        }
        fields.serialize_entry("name", &self.identity.name)?;
        if let Some(cluster) = &self.identity.cluster {
            fields.serialize_entry("cluster", cluster)?;
        }
        match &self.assessment {
            Assessment::Native(verdict) => {
                fields.serialize_entry("state", &verdict.state)?;
                fields.serialize_entry("progress", &verdict.progress)?;
                fields.serialize_entry("reason", &verdict.reason)?;
                fields.serialize_entry("message", &verdict.message)?;
                if let Some(since) = verdict.since {
                    fields.serialize_entry("since", &since.to_string())?;
                }
                fields.serialize_entry("rule", &verdict.rule)?;
                if let Some(evidence) = &self.evidence {
                    fields.serialize_entry("evidence", evidence)?;
                    if let Some(later) = &verdict.later {
                        fields.serialize_entry("later", &NextVerdict::from(later.as_ref()))?;
                    }
                }
            }
            Assessment::Kstatus(assessment) => {
                fields.serialize_entry("status", &assessment.status)?;
                fields.serialize_entry("message", &assessment.message)?;
                fields.serialize_entry("conditions", &assessment.conditions)?;
            }
            Assessment::Argo(health) => {
                fields.serialize_entry("status", &health.as_ref().map(|health| health.status))?;
                fields.serialize_entry("message", health.as_ref().map_or("", |health| &health.message))?;
            }
        }
        fields.end()
    }
}

/// The verdict after `at`, if the object does not change.
#[derive(Serialize)]
struct NextVerdict<'v> {
    at: String,
    state: State,
    reason: &'v str,
    message: &'v str,
}

impl<'v> From<&'v Later> for NextVerdict<'v> {
    fn from(later: &'v Later) -> Self {
        let Verdict { state, reason, message, .. } = &later.verdict;
        Self { at: later.at.to_string(), state: *state, reason, message }
    }
}

/// An entry of `-o json`.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Entry<'r> {
    Row(&'r Row),
    Problem { error: String },
}

/// For `-o json`, in the order of the input.
pub(crate) fn entries(read: &[Result<Row, InputError>]) -> Vec<Entry<'_>> {
    read.iter()
        .map(|entry| match entry {
            Ok(row) => Entry::Row(row),
            Err(problem) => Entry::Problem { error: problem.to_string() },
        })
        .collect()
}
