//! What is asked for, made sense of.

use std::collections::BTreeMap;

use bellwether_engine::NamespacedName;

use super::problem::Problem;
use crate::cli::Adopt;

/// The label that says to which application an object belongs, where nobody asks for another.
const PART_OF: &str = "app.kubernetes.io/part-of";

/// The Application that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdoptRequest {
    pub(super) application: NamespacedName,
    /// The labels that make an object a member.
    pub(super) labels: BTreeMap<String, String>,
    /// Whether they are those that are taken where none are asked for.
    pub(super) by_default: bool,
    pub(super) type_: Option<String>,
}

impl AdoptRequest {
    /// What a command asks for in this namespace, or what is wrong with it.
    pub(super) fn of(command: &Adopt, namespace: &str) -> Result<Self, Vec<Problem>> {
        // `application/wordpress`, as kubectl has it, is meant as well as `wordpress`.
        let name = command.name.strip_prefix("application/").unwrap_or(&command.name);
        let by_default = command.selector.is_empty();
        let labels = if by_default {
            BTreeMap::from([(PART_OF.to_owned(), name.to_owned())])
        } else {
            labels(&command.selector)?
        };
        Ok(Self {
            application: NamespacedName::new(namespace, name),
            labels,
            by_default,
            type_: command.type_.clone(),
        })
    }
}

/// The labels in `key=value`s.
fn labels(words: &[String]) -> Result<BTreeMap<String, String>, Vec<Problem>> {
    let mut labels = BTreeMap::new();
    let mut problems = Vec::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            problems.push(format!("--selector {word:?} is no label: write KEY=VALUE, such as app=wordpress"));
            continue;
        };
        match labels.insert(key.to_owned(), value.to_owned()) {
            Some(other) if other != value => problems.push(format!(
                "--selector asks for {key}={other} and for {key}={value}, and no object can have both: give one of them"
            )),
            _ => {}
        }
    }
    if problems.is_empty() { Ok(labels) } else { Err(problems.into_iter().map(Problem::input).collect()) }
}
