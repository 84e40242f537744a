//! `docs/picture.svg` is drawn by hand and shows what the program prints.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result};
use bellwether_model::State;
use bellwether_terminal::sign;
use regex::Regex;
use serde_json::Value;

use crate::{NOW, Run, bellwether};

use super::page::root;

const CAPTIONS: [&str; 6] = [
    "objects a verdict on each",
    "one status",
    "namespace shop",
    "anywhere in the cluster",
    "the conditions of each: Available,",
    "Progressing, Degraded",
];

/// Where the boxes on the right begin.
const RIGHT: u32 = 600;
/// A text that begins here continues the line above.
const INDENTED: u32 = 640;

/// The lines on the left and on the right.
fn lines(picture: &str) -> Result<BTreeSet<String>> {
    let text = Regex::new(r#"<text[^>]* x="(\d+)" y="(\d+)"[^>]*>(.*?)</text>"#)?;
    let gap = Regex::new("<tspan[^>]* d?x=[^>]*>")?;
    let tag = Regex::new("<[^>]*>")?;
    let mut lines: Vec<((bool, u32), String)> = Vec::new();
    for found in text.captures_iter(picture) {
        let (x, y): (u32, u32) = (found[1].parse()?, found[2].parse()?);
        let place = (x >= RIGHT, y);
        let words = tag.replace_all(&gap.replace_all(&found[3], " "), "").into_owned();
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let index = if x == INDENTED {
            lines.len().checked_sub(1)
        } else {
            lines.iter().position(|(other, _)| *other == place)
        };
        match index.and_then(|index| lines.get_mut(index)) {
            Some((_, line)) => *line = format!("{line} {words}"),
            None => lines.push((place, words)),
        }
    }
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

fn run(arguments: &[&str]) -> Result<Run> {
    Ok(bellwether(arguments).args(["--now", NOW]).current_dir(root()).output()?.into())
}

fn json(arguments: &[&str]) -> Result<Value> {
    let ran = run(&[arguments, &["-o", "json"]].concat())?;
    serde_json::from_str(&ran.stdout).with_context(|| ran.to_string())
}

fn list<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of[field].as_array().into_iter().flatten()
}

/// The value of a field, which must be text.
fn text<'a>(of: &'a Value, field: &str) -> Result<&'a str> {
    of[field].as_str().with_context(|| format!("{field} of {of}"))
}

fn with_sign(state: &str) -> Result<String> {
    let state: State = serde_json::from_value(state.into())?;
    Ok(format!("{} {}", sign(Some(state)), state.name()))
}

/// The reason of an object in a tree.
fn reason<'a>(tree: &'a Value, object: &str) -> Option<&'a str> {
    let is_it = object.split_once('/') == tree["kind"].as_str().zip(tree["name"].as_str());
    let below = || list(tree, "children").find_map(|child| reason(child, object));
    if is_it { tree["reason"].as_str() } else { below() }
}

fn application() -> Result<Vec<String>> {
    let shop = ["checkout", "--from", "examples/shop"];
    let command = |name| [&[name], &shop[..]].concat();
    let (status, tree) = (json(&command("status"))?, json(&command("tree"))?);
    let printed = run(&command("status"))?.stdout;
    let head = Regex::new(r"^(Application \S+): (\w+)( for \w+) \(since [^)]*\)(, .*)\n")?;
    let head = head.captures(&printed).with_context(|| printed.clone())?;
    let mut lines = vec![head[1].to_owned(), format!("{}{}{}", with_sign(&head[2])?, &head[3], &head[4])];
    for object in list(&status, "objects") {
        let state = text(object, "state")?;
        let reason = if state == "Ready" { String::new() } else { format!(" {}", text(object, "reason")?) };
        let name = format!("{} {}", text(object, "kind")?, text(object, "name")?);
        lines.push(format!("{name} {}{reason}", with_sign(state)?));
    }
    let cause = Regex::new(r"(?m)^  (\d)  (\S+) ")?;
    for found in cause.captures_iter(&printed).take(2) {
        let reason = reason(&tree, &found[2]).with_context(|| tree.to_string())?;
        lines.push(format!("{} {} {reason}", &found[1], &found[2]));
    }
    Ok(lines)
}

fn rollup() -> Result<Vec<String>> {
    let status =
        json(&["status", "hyperconverged", "--from", "examples/hyperconverged/states/degraded.yaml"])?;
    let conditions: Vec<_> = list(&status, "conditions").take(3).collect();
    let [available, ..] = conditions[..] else { anyhow::bail!("no conditions: {status}") };
    let decider = text(available, "message")?.split(':').next().unwrap_or_default();
    let mut lines = vec![
        format!("Rollup {}", text(&status, "name")?),
        format!("{}, {}", text(&status, "health")?, text(available, "reason")?),
        format!("decided by {decider}"),
    ];
    for condition in conditions {
        lines.push(format!("{} {}", text(condition, "type")?, text(condition, "status")?));
    }
    for object in list(&status, "objects") {
        let fields = ["kind", "name", "available", "progressing", "degraded"];
        let fields: Vec<_> = fields.iter().map(|field| text(object, field)).collect::<Result<_>>()?;
        lines.push(fields.join(" "));
    }
    Ok(lines)
}

/// Of the Application in `examples/shop` and the Rollup in `examples/hyperconverged`.
#[test]
fn the_picture_shows_what_is_printed() -> Result<()> {
    let captions = CAPTIONS.map(str::to_owned).into_iter();
    let expected: BTreeSet<_> = captions.chain(application()?).chain(rollup()?).collect();
    assert_eq!(lines(&fs::read_to_string(root().join("docs/picture.svg"))?)?, expected);
    Ok(())
}
