//! The pages list every field of a kind, and every reason.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use rstest::rstest;

use super::page::root;
use crate::run;

/// Fields with a type of Kubernetes: `metav1.Condition` and `PodSpec`. Their own fields need no line.
const OF_KUBERNETES: [&str; 2] = ["status.conditions", "spec.healthCheck.template.spec"];

/// The paths of all fields below `path`, without the brackets of lists.
fn fields(path: &str, schema: &JSONSchemaProps, found: &mut Vec<String>) {
    if OF_KUBERNETES.contains(&path) {
        return;
    }
    for (name, property) in schema.properties.iter().flatten() {
        let field = format!("{path}.{name}");
        fields(&field, property, found);
        found.push(field);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        fields(path, items, found);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        fields(path, values, found);
    }
}

/// The texts in backticks, without the brackets of lists.
fn code(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(|code| code.replace("[]", ""))
}

/// Whether this line of a table is about the field. It begins with the path of the field or of one below it;
/// or it begins with the path of one above it and then has its name.
fn is_about(line: &str, field: &str) -> bool {
    let Some((first, rest)) = line.strip_prefix("| ").and_then(|line| line.split_once(" | ")) else {
        return false;
    };
    let is_below =
        |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'));
    let name = field.rsplit('.').next().unwrap_or(field);
    let has_name = code(rest).any(|it| it == name);
    code(first).any(|path| path == field || is_below(&path, field) || has_name && is_below(field, &path))
}

#[rstest]
#[case::application("Application", "docs/applications.md")]
#[case::rollup("Rollup", "docs/rollups.md")]
#[case::health_rule("HealthRule", "docs/writing-rules.md")]
#[case::status_collector("StatusCollector", "docs/status-collectors.md")]
#[case::binding_policy("BindingPolicy", "docs/binding-policies.md")]
fn every_field_has_a_line(#[case] kind: &str, #[case] page: &str) -> Result<()> {
    let crd = bellwether_api::crds().into_iter().find(|crd| crd.spec.names.kind == kind).context("a CRD")?;
    let version = crd.spec.versions.into_iter().next().context("a version")?;
    let schema = version.schema.and_then(|schema| schema.open_api_v3_schema).context("a schema")?;
    let text = fs::read_to_string(root().join(page))?;
    let (spec, status) = text.split_once("\n## Status\n").context("a section Status")?;
    let mut missing = Vec::new();
    for (part, text) in [("spec", spec), ("status", status)] {
        let properties = schema.properties.as_ref().and_then(|properties| properties.get(part));
        let mut found = Vec::new();
        fields(part, properties.with_context(|| part.to_owned())?, &mut found);
        ensure!(!found.is_empty(), "{kind} has no field in {part}");
        for field in found {
            let path = field.strip_prefix(part).and_then(|path| path.strip_prefix('.')).unwrap_or(&field);
            if !text.lines().any(|line| is_about(line, path)) {
                missing.push(field);
            }
        }
    }
    ensure!(missing.is_empty(), "{page} has no line about {missing:?}");
    Ok(())
}

#[rstest]
#[case::itself("| `health` | the worst |", "health", true)]
#[case::below("| `for.kind` | the kind |", "for", true)]
#[case::above("| `objects[]` | `name`, `since` |", "objects.since", true)]
#[case::another("| `objects[]` | `name`, `since` |", "objects.rule", false)]
#[case::of_another("| `objects[]` | `name`, `since` |", "since", false)]
#[case::similar("| `dependenciesReady` | a number |", "dependencies", false)]
#[case::no_table("`health` is the worst", "health", false)]
fn a_line_is_about_a_field(#[case] line: &str, #[case] field: &str, #[case] expected: bool) {
    assert_eq!(is_about(line, field), expected);
}

/// The reasons of `whose -o json`.
#[test]
fn every_reason_of_whose_has_a_line() -> Result<()> {
    let source = fs::read_to_string(root().join("crates/inspect/src/whose.rs"))?;
    let (_, variants) = source.split_once("\nenum OwnerReason {\n").context("the enum")?;
    let (variants, _) = variants.split_once("\n}").context("the end of the enum")?;
    let variants = variants.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let reasons: BTreeSet<_> = variants.map(|line| line.trim_end_matches(',').to_owned()).collect();
    let page = fs::read_to_string(root().join("docs/terminal.md"))?;
    let (_, table) = page.split_once("\n| `reason` | meaning |\n|---|---|\n").context("the table")?;
    let lines = table.lines().map_while(|line| line.strip_prefix("| `")?.split_once("` | "));
    let listed: BTreeSet<_> = lines.map(|(reason, _)| reason.to_owned()).collect();
    assert_eq!(listed, reasons);
    Ok(())
}

#[test]
fn every_flag_of_the_controller_has_a_line() -> Result<()> {
    let page = fs::read_to_string(root().join("docs/terminal.md"))?;
    let (_, section) = page.split_once("\n## controller\n").context("the section")?;
    let (_, table) =
        section.split_once("\n| flag | default | meaning |\n|---|---|---|\n").context("the table")?;
    let lines = table.lines().map_while(|line| line.strip_prefix("| ")?.split_once(" | "));
    let listed: BTreeSet<_> = lines.flat_map(|(flags, _)| code(flags)).collect();
    let options = run(&["controller", "--help"]).stdout;
    let options = options.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
    let names = options.filter_map(|line| line.split([' ', '[', '=']).next()).map(|name| format!("--{name}"));
    assert_eq!(listed, names.collect());
    Ok(())
}

#[test]
fn every_collector_of_the_library_has_a_line() -> Result<()> {
    let page = fs::read_to_string(root().join("docs/status-collectors.md"))?;
    for entry in fs::read_dir(root().join("deploy/collectors"))? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".yaml") else { continue };
        ensure!(page.contains(&format!("\n| [{name}](../deploy/collectors/{file}) | ")), "{file}");
    }
    Ok(())
}

#[test]
fn every_flag_of_query_has_a_line() -> Result<()> {
    let page = fs::read_to_string(root().join("docs/terminal.md"))?;
    let (_, section) = page.split_once("\n## query\n").context("the section")?;
    let (section, _) = section.split_once("\n## lint\n").context("the next section")?;
    let options = run(&["query", "--help"]).stdout;
    let options = options.lines().filter_map(|line| line.split_once("--"));
    for (_, option) in options.filter(|(before, _)| before.trim().len() <= 3 && !before.contains('=')) {
        let name = option.split([' ', '[', '=']).next().unwrap_or_default();
        ensure!(name == "help" || name == "output" || section.contains(&format!("`--{name}")), "{name}");
    }
    Ok(())
}
