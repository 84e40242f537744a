//! Rules from files and directories: HealthRules in YAML, and Argo CD scripts in the layout of Argo CD.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use bellwether_api::HealthRule;
use bellwether_engine::user_rule;
use bellwether_health::user::{CompiledRule, Form, RuleTarget, UserRule, UserRules};
use bellwether_input::{ObjectLocation, files_in};
use bellwether_model::{Object, Plan};

use super::finding::{Finding, or_unnamed, place};
use crate::{
    output::cannot_read,
    schema::{self, KindSchema},
};

#[derive(Default)]
pub(crate) struct Loaded {
    /// All rules, valid or not, in the order of the files.
    pub(crate) rules: Vec<Found>,
    /// Errors about files that cannot be read.
    pub(crate) problems: Vec<String>,
}

pub(crate) struct Found {
    pub(crate) file: PathBuf,
    /// The first line of the rule. None for a script.
    pub(crate) line: Option<usize>,
    pub(crate) name: String,
    pub(crate) rule: Result<Arc<CompiledRule>, Vec<Finding>>,
}

/// The file name of Argo CD scripts.
const SCRIPT: &str = "health.lua";

/// The wildcard in directory names of Argo CD.
const ANYTHING: &str = "_";

impl Loaded {
    pub(crate) fn from(inputs: &[PathBuf]) -> Self {
        let mut loaded = Self::default();
        for input in inputs {
            if !input.is_dir() {
                loaded.read_file(input);
                continue;
            }
            match files_in(input, &is_rule_file) {
                Ok(files) => files.iter().for_each(|file| loaded.read_file(file)),
                Err(error) => loaded.problems.push(cannot_read(input, &error)),
            }
        }
        loaded
    }

    /// All errors: unreadable files and invalid rules.
    pub(crate) fn errors(&self) -> Vec<String> {
        let mut errors = self.problems.clone();
        for found in &self.rules {
            // The path of a script is its name.
            let rule = found.line.map(|_| format!("rule {}: ", or_unnamed(&found.name))).unwrap_or_default();
            let file = found.file.display().to_string();
            let invalid = found.rule.as_ref().err().into_iter().flatten();
            errors.extend(invalid.map(|error| format!("{}: {rule}{error}", place(&file, error.line))));
        }
        errors
    }

    /// The valid rules.
    pub(crate) fn in_force(&self) -> UserRules {
        UserRules::new(self.rules.iter().filter_map(|found| found.rule.as_ref().ok()).cloned())
    }

    fn read_file(&mut self, file: &Path) {
        if file.extension().is_some_and(|extension| extension == "lua") {
            return self.read_script(file);
        }
        let plan = Plan::whole();
        let read = |object: &Object<'_>, location: &ObjectLocation<'_>| {
            is_rule(object).then(|| {
                let lines = location.lines();
                let rule = read_rule(object).map_err(|errors| {
                    let errors = errors.into_iter().map(|error| error.located(&lines));
                    let mut errors: Vec<_> = errors.collect();
                    errors.sort_by_key(|error| error.line);
                    errors
                });
                let (line, name) = (Some(lines.first()), object.name().to_owned());
                Found { file: file.to_owned(), line, name, rule }
            })
        };
        for entry in bellwether_input::read_with_locations(&[file.to_owned()], &plan, &read) {
            match entry {
                Ok(Some(found)) => self.rules.push(found),
                // Not a rule: ignore it.
                Ok(None) => {}
                Err(problem) => self.problems.push(problem.to_string()),
            }
        }
    }

    /// Reads a script. Its directories name the kind: `GROUP/KIND/health.lua`.
    fn read_script(&mut self, file: &Path) {
        let source = match fs::read_to_string(file) {
            Ok(source) => source,
            Err(error) => return self.problems.push(cannot_read(file, &error)),
        };
        let directory = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut above = directory.ancestors().skip(1).filter_map(|path| path.file_name()?.to_str());
        let (kind, group) = (above.next().unwrap_or_default(), above.next().unwrap_or_default());
        if file.file_name().is_none_or(|name| name != SCRIPT) || !is_kind(group, kind) {
            let text = format!("{}: not a health script: move it to GROUP/KIND/{SCRIPT}", file.display());
            return self.problems.push(text);
        }
        let name = format!("{group}/{kind}/{SCRIPT}");
        let kind = RuleTarget {
            group: group.replace(ANYTHING, "*"),
            version: None,
            kind: (kind != ANYTHING).then(|| kind.to_owned()),
        };
        let rule = UserRule { name: name.clone(), created: None, kind, form: Form::Lua(source) };
        let rule = rule.compile().map(Arc::new);
        let rule = rule.map_err(|errors| errors.into_iter().map(Finding::in_script).collect());
        self.rules.push(Found { file: file.to_owned(), line: None, name, rule });
    }
}

/// Whether directories may name a kind. The kinds of Kubernetes are in CamelCase; any other has a group with a
/// dot, and its name may be in lower case, such as `acid.zalan.do/postgresql`.
fn is_kind(group: &str, kind: &str) -> bool {
    let mut letters = kind.chars();
    let first = letters.next();
    let is_name = first.is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let is_custom = first.is_some_and(|first| first.is_ascii_uppercase()) || group.contains('.');
    kind == ANYTHING || (is_name && is_custom)
}

/// Whether a file may have rules: not a test suite, and not in testdata.
fn is_rule_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_test = is_suite_file(path) || path.components().any(|part| part.as_os_str() == "testdata");
    !is_test && (name == SCRIPT || bellwether_input::holds_objects(path))
}

/// Whether a file is a test suite such as `health_test.yaml` or `widgets_test.yaml`, outside of testdata.
pub(crate) fn is_suite_file(path: &Path) -> bool {
    if path.components().any(|part| part.as_os_str() == "testdata") {
        return false;
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    is_yaml && stem.ends_with("_test")
}

fn is_rule(object: &Object<'_>) -> bool {
    object.group() == "bellwether.dev" && object.kind() == "HealthRule"
}

/// The errors have no line.
pub(super) fn read_rule(object: &Object<'_>) -> Result<Arc<CompiledRule>, Vec<Finding>> {
    let mut errors =
        KindSchema::of("HealthRule").map(|schema| schema.check(object.fields())).unwrap_or_default();
    errors.extend(schema::error_in_head(object));
    if !errors.is_empty() {
        return Err(errors.into_iter().map(Finding::in_field).collect());
    }
    let typed = serde_json::to_value(object.fields()).and_then(serde_json::from_value::<HealthRule>);
    match typed {
        Ok(rule) => {
            let created = object.time("metadata.creationTimestamp");
            let rule = UserRule { created, ..user_rule(object.name(), rule.spec) }.compile();
            rule.map(Arc::new).map_err(|errors| errors.into_iter().map(Finding::in_source).collect())
        }
        Err(error) => Err(vec![Finding::in_field(schema::FieldError {
            field: "spec".to_owned(),
            message: error.to_string(),
        })]),
    }
}
