//! The arguments of `bellwether adopt`, validated.

use std::collections::BTreeMap;

use bellwether_engine::NamespacedName;

use super::problem::Problem;
use crate::cli::Adopt;

/// The default label of the selector.
const PART_OF: &str = "app.kubernetes.io/part-of";

/// The Application to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdoptRequest {
    pub(super) application: NamespacedName,
    /// Of the selector.
    pub(super) labels: BTreeMap<String, String>,
    /// The user gave no `--selector`.
    pub(super) has_default_labels: bool,
    pub(super) type_: Option<String>,
    /// To append to kubectl commands, so that they use the same cluster.
    pub(super) kubectl_flags: String,
}

impl AdoptRequest {
    pub(super) fn of(command: &Adopt, namespace: &str) -> Result<Self, Vec<Problem>> {
        // `application/wordpress` is accepted as well as `wordpress`.
        let name = command.name.strip_prefix("application/").unwrap_or(&command.name);
        let has_default_labels = command.selector.is_empty();
        let labels = if has_default_labels {
            BTreeMap::from([(PART_OF.to_owned(), name.to_owned())])
        } else {
            labels(&command.selector)?
        };
        Ok(Self {
            application: NamespacedName::new(namespace, name),
            labels,
            has_default_labels,
            kubectl_flags: command.input.location().flags().kubectl.unwrap_or_default(),
            type_: command.type_.clone(),
        })
    }
}

fn labels(words: &[String]) -> Result<BTreeMap<String, String>, Vec<Problem>> {
    let mut labels = BTreeMap::new();
    let mut problems = Vec::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            problems.push(format!("invalid --selector {word:?}: use KEY=VALUE, e.g. app=wordpress"));
            continue;
        };
        match labels.insert(key.to_owned(), value.to_owned()) {
            Some(other) if other != value => problems.push(format!(
                "conflicting values in --selector: {key}={other} and {key}={value}. Use one of them"
            )),
            _ => {}
        }
    }
    if problems.is_empty() { Ok(labels) } else { Err(problems.into_iter().map(Problem::input).collect()) }
}
