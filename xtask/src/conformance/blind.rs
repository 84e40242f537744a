//! `cargo xtask conformance --blind`: how the generic rules do on kinds whose API group taught them nothing.
//!
//! Rules that people write cannot forget a group. What stands in for that: the built-in clauses are off, and for
//! each group a second figure leaves out the cases whose verdict may rest on a word that no other group uses. Such
//! a word, a condition type, a reason or a phase in the objects of this group alone, may be in the tables of the
//! generic rules because of these very cases.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use bellwether_health::generic_words;
use serde_json::Value as Json;

use super::{Row, assess_all};

#[derive(Default)]
struct Group {
    cases: usize,
    agree: usize,
    false_green: usize,
    /// Cases without a word that only this group uses.
    blind_cases: usize,
    blind_agree: usize,
}

impl Group {
    fn line(&self, name: &str) -> String {
        format!(
            "{name:<42} {:>5} {:>6} {:>8} {:>12} {:>12} {:>6} {:>8}",
            self.cases,
            self.agree,
            percent(self.agree, self.cases),
            self.false_green,
            self.blind_cases,
            self.blind_agree,
            percent(self.blind_agree, self.blind_cases),
        )
    }

    fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.agree += other.agree;
        self.false_green += other.false_green;
        self.blind_cases += other.blind_cases;
        self.blind_agree += other.blind_agree;
    }
}

fn percent(some: usize, all: usize) -> String {
    match (some * 1000).checked_div(all) {
        Some(per_mille) => format!("{}.{}", per_mille / 10, per_mille % 10),
        None => "-".to_owned(),
    }
}

/// Prints a row for each API group, and the sum.
pub(super) fn table(directory: &Path, output: fn(&str)) -> Result<()> {
    let path = directory.join(Row::Generic.file());
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let cases: Vec<(String, BTreeSet<String>)> = text.lines().map(group_and_words).collect::<Result<_>>()?;
    let mut users = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (group, words) in &cases {
        for word in words {
            users.entry(word).or_default().insert(group);
        }
    }
    let mut groups = BTreeMap::<&str, Group>::new();
    for ((group, words), (_, outcome)) in cases.iter().zip(assess_all(directory, Row::Generic)?) {
        let only_here =
            words.iter().any(|word| users.get(word.as_str()).is_some_and(|users| users.len() == 1));
        let row = groups.entry(group).or_default();
        row.add(&Group {
            cases: 1,
            agree: usize::from(outcome.agrees),
            false_green: usize::from(outcome.false_green),
            blind_cases: usize::from(!only_here),
            blind_agree: usize::from(!only_here && outcome.agrees),
        });
    }
    output(&format!(
        "{:<42} {:>5} {:>6} {:>8} {:>12} {:>12} {:>6} {:>8}",
        "API group", "cases", "agree", "percent", "false green", "blind cases", "agree", "percent"
    ));
    let mut sum = Group::default();
    for (name, group) in &groups {
        output(&group.line(name));
        sum.add(group);
    }
    output(&sum.line("all"));
    Ok(())
}

/// The API group of a case, and the words in its status that the generic rules know.
fn group_and_words(line: &str) -> Result<(String, BTreeSet<String>)> {
    let case: Json = serde_json::from_str(line)?;
    let object = &case["object"];
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("core", |(group, _)| group);
    let mut words = BTreeSet::new();
    collect(&object["status"], &mut words);
    Ok((group.to_owned(), words))
}

/// Of condition types, reasons and short texts such as phases.
fn collect(value: &Json, words: &mut BTreeSet<String>) {
    const LONGEST_PHASE: usize = 40;
    match value {
        Json::String(text) if text.len() <= LONGEST_PHASE => words.extend(generic_words(text)),
        Json::Array(list) => list.iter().for_each(|entry| collect(entry, words)),
        Json::Object(map) => map.values().for_each(|field| collect(field, words)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_the_rules_know() {
        let line = r#"{"object": {"apiVersion": "acme.io/v1", "status": {
            "phase": "Degraded", "color": "blue", "conditions": [{"type": "DisksReady", "message": "all failed"}]}}}"#;
        let (group, words) = group_and_words(line).unwrap();
        assert_eq!(group, "acme.io");
        assert_eq!(words.into_iter().collect::<Vec<_>>(), ["degraded", "failed", "ready"]);
    }

    #[test]
    fn a_group_without_cases_has_no_percentage() {
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(2, 3), "66.6");
    }
}
