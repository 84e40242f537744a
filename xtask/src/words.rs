//! `cargo xtask words`: finds words that texts and comments must not have.
//!
//! Texts are what users read: string literals and command help of shipped crates, documentation, snapshots of
//! output, and the descriptions in the CRDs.

mod kubectl;
mod phrase;
mod rust;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use self::phrase::{Match, line_of};
use crate::run::{log, print, root};

/// Forbidden in comments and texts. A phrase with a space at its end needs another word after it, which is not
/// "longer".
const EVERYWHERE: &[&str] = &[
    "nobody",
    "somebody",
    "whoever",
    "is no ",
    "are no ",
    "on its way",
    "looked after",
    "looked at",
    "again and again",
    "is told",
    "are told",
];

/// Forbidden in texts only.
const IN_TEXTS: &[&str] = &[
    "looks after",
    "looks at",
    "has not been judged",
    "cannot be judged",
    "needs a human",
    "there is no such",
    "it is missing",
];

/// Crates that are not shipped: their strings are not texts for users.
const NOT_SHIPPED: [&str; 3] = ["simulation", "soak", "testkit"];

/// A place where a forbidden word is right.
struct Exception {
    /// From the root of the repository.
    file: &'static str,
    /// A part of the line, with the word.
    text: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

/// A forbidden word in a file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: String,
    line: usize,
    word: String,
    hint: &'static str,
    text: String,
}

/// Fails if a text or a comment has a forbidden word, or if an exception does not match any.
pub(crate) fn check() -> Result<()> {
    log("\n$ words");
    let findings = find_all(&root())?;
    let stale = stale(EXCEPTIONS, &findings);
    let findings: Vec<_> = findings.iter().filter(|finding| !is_allowed(EXCEPTIONS, finding)).collect();
    for finding in &findings {
        let Finding { file, line, word, hint, text } = finding;
        print(&format!("{file}:{line}: {word:?}{hint}: {text}"));
    }
    for exception in &stale {
        print(&format!("{}: stale exception: {:?} ({})", exception.file, exception.text, exception.reason));
    }
    if findings.is_empty() && stale.is_empty() {
        log("no forbidden words");
        return Ok(());
    }
    bail!(
        "{} forbidden words, {} stale exceptions. Rewrite the texts; the table of exceptions is in xtask/src/words.rs.",
        findings.len(),
        stale.len()
    )
}

fn is_allowed(exceptions: &[Exception], finding: &Finding) -> bool {
    exceptions.iter().any(|exception| exception.covers(finding))
}

fn stale<'a>(exceptions: &'a [Exception], findings: &[Finding]) -> Vec<&'a Exception> {
    exceptions.iter().filter(|exception| !findings.iter().any(|finding| exception.covers(finding))).collect()
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        self.file == finding.file
            && finding.text.contains(self.text)
            && self.text.to_ascii_lowercase().contains(&finding.word)
    }
}

/// Sorted, and each word at most once for a line.
fn find_all(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = BTreeSet::new();
    for file in files(root)? {
        let path = root.join(&file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        findings.extend(find_in(&file, &text));
    }
    Ok(findings.into_iter().collect())
}

/// All files to scan, relative to the root.
fn files(root: &Path) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    files.extend(["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned));
    files.extend(below(root, "bench", ".md")?);
    files.extend(below(root, "docs", ".md")?);
    files.extend(below(root, "examples", ".md")?);
    files.extend(below(root, "deploy/crds", ".yaml")?);
    for directory in fs::read_dir(root.join("crates"))? {
        let krate = format!("crates/{}", directory?.file_name().to_string_lossy());
        let snapshots = below(root, &format!("{krate}/tests"), ".snap")?;
        files.extend(snapshots.into_iter().filter(|file| file.contains("/snapshots/")));
        files.extend(sources(root, &format!("{krate}/src"))?);
    }
    Ok(files)
}

/// The source files of a crate, without modules that exist only for tests.
fn sources(root: &Path, directory: &str) -> Result<Vec<String>> {
    let mut sources = below(root, directory, ".rs")?;
    sources.retain(|file| !file.ends_with("/tests.rs") && !file.contains("/tests/"));
    let mut test_modules = Vec::new();
    for file in &sources {
        let text = fs::read_to_string(root.join(file))?;
        test_modules.extend(rust::test_modules(&text).into_iter().map(|name| module_path(file, &name)));
    }
    sources.retain(|file| {
        !test_modules
            .iter()
            .any(|module| *file == format!("{module}.rs") || file.starts_with(&format!("{module}/")))
    });
    Ok(sources)
}

/// The path of a child module without `.rs`.
fn module_path(file: &str, name: &str) -> String {
    let stem = file.trim_end_matches(".rs");
    let parent = ["/mod", "/lib", "/main"].iter().find_map(|root| stem.strip_suffix(root)).unwrap_or(stem);
    format!("{parent}/{name}")
}

fn below(root: &Path, directory: &str, suffix: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::from(directory)];
    while let Some(directory) = pending.pop() {
        let path = root.join(&directory);
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
            let entry = entry?;
            let name = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                pending.push(name);
            } else if name.to_string_lossy().ends_with(suffix) {
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

/// All findings in a file. Its name decides what is a text.
fn find_in(file: &str, text: &str) -> Vec<Finding> {
    let extension = file.rsplit('.').next().unwrap_or_default();
    let mask = match extension {
        "rs" => return find_in_source(file, text),
        "snap" => snapshot_body(text),
        "yaml" => descriptions(text),
        _ => text.to_owned(),
    };
    let mut matches = phrase::find(mask.as_bytes(), &[EVERYWHERE, IN_TEXTS].concat());
    if extension == "md" {
        matches.extend(kubectl::find(&mask));
    }
    findings(file, text, matches)
}

fn find_in_source(file: &str, text: &str) -> Vec<Finding> {
    let masks = rust::masks(text);
    let mut matches = phrase::find(&masks.comments, EVERYWHERE);
    if !NOT_SHIPPED.iter().any(|name| file.starts_with(&format!("crates/{name}/"))) {
        matches.extend(phrase::find(&masks.texts, &[EVERYWHERE, IN_TEXTS].concat()));
    }
    findings(file, text, matches)
}

fn findings(file: &str, text: &str, matches: Vec<Match>) -> Vec<Finding> {
    let lines: Vec<_> = text.lines().collect();
    let finding = |found: Match| {
        let line = line_of(text.as_bytes(), found.offset);
        let text = lines.get(line - 1).map_or("", |line| line.trim()).to_owned();
        Finding { file: file.to_owned(), line, word: found.word, hint: found.hint, text }
    };
    matches.into_iter().map(finding).collect()
}

/// A snapshot with its header blanked: the body follows the second `---`.
fn snapshot_body(text: &str) -> String {
    let mut separators = 0;
    let keep = |line: &str| {
        separators += usize::from(separators < 2 && line.trim_end() == "---");
        separators == 2
    };
    keep_lines(text, keep)
}

/// A CRD with everything blanked but its descriptions.
fn descriptions(text: &str) -> String {
    let mut key: Option<usize> = None;
    let keep = |line: &str| {
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        if line[indent..].starts_with("description:") {
            key = Some(indent);
        } else if key.is_some_and(|key| indent <= key && !line.trim().is_empty()) {
            key = None;
        }
        key.is_some()
    };
    keep_lines(text, keep)
}

fn keep_lines(text: &str, mut keep: impl FnMut(&str) -> bool) -> String {
    let blank = |line: &str| line.bytes().map(|byte| if byte == b'\n' { '\n' } else { '\0' }).collect();
    text.split_inclusive('\n').map(|line| if keep(line) { line.to_owned() } else { blank(line) }).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn found(file: &str, text: &str) -> Vec<(usize, String)> {
        find_in(file, text).into_iter().map(|finding| (finding.line, finding.word)).collect()
    }

    fn one(line: usize, word: &str) -> Vec<(usize, String)> {
        vec![(line, word.to_owned())]
    }

    #[test]
    fn strings_and_comments_have_different_words() {
        let source = "/// Nobody writes it.\n// it is missing\nconst TEXT: &str = \"it is missing\";\n";
        let both = vec![(1, "nobody".to_owned()), (3, "it is missing".to_owned())];
        assert_eq!(found("crates/engine/src/one.rs", source), both);
        assert_eq!(found("crates/soak/src/one.rs", source), one(1, "nobody"), "its strings are not shipped");
    }

    #[test]
    fn the_header_of_a_snapshot_is_not_scanned() {
        let snapshot = "---\nsource: nobody.rs\n---\nok\n--- stdout\nis no kind\n";
        assert_eq!(found("crates/a/tests/it/snapshots/a.snap", snapshot), one(6, "is no"));
    }

    #[test]
    fn only_descriptions_of_crds_are_scanned() {
        let crd = "spec:\n- description: |-\n    The rule is\n    no rule.\n\n    Nobody.\n  name: nobody\n";
        let expected = vec![(3, "is no".to_owned()), (6, "nobody".to_owned())];
        assert_eq!(found("deploy/crds/a.yaml", crd), expected);
        assert_eq!(found("deploy/crds/a.yaml", "- description: Somebody\n  x: nobody\n"), one(1, "somebody"));
    }

    #[test]
    fn documents_are_scanned_for_kubectl() {
        let document = "Run:\n\n    kubectl get applications\n";
        assert_eq!(found("docs/a.md", document), one(3, "applications"));
        assert_eq!(found("crates/a/tests/it/snapshots/a.snap", document), []);
    }

    #[rstest]
    #[case("crates/a/src/lib.rs", "crates/a/src/child")]
    #[case("crates/a/src/b/mod.rs", "crates/a/src/b/child")]
    #[case("crates/a/src/b.rs", "crates/a/src/b/child")]
    fn modules_have_paths(#[case] file: &str, #[case] expected: &str) {
        assert_eq!(module_path(file, "child"), expected);
    }

    #[test]
    fn an_exception_needs_the_file_the_text_and_the_word() {
        let exception =
            |file, text| Exception { file, text, reason: "the user of the container is named nobody" };
        let finding = &find_in("docs/a.md", "USER nobody\n")[0];
        assert!(is_allowed(&[exception("docs/a.md", "USER nobody")], finding));
        for other in [exception("docs/b.md", "USER nobody"), exception("docs/a.md", "USER root")] {
            assert!(!is_allowed(&[other], finding));
        }
        assert!(!is_allowed(&[exception("docs/a.md", "USER")], finding), "the text must have the word");
    }

    #[test]
    fn an_exception_without_a_finding_is_stale() {
        let exceptions = [
            Exception { file: "docs/a.md", text: "USER nobody", reason: "" },
            Exception { file: "docs/a.md", text: "nobody else", reason: "" },
        ];
        let findings = find_in("docs/a.md", "USER nobody\n");
        let texts: Vec<_> = stale(&exceptions, &findings).iter().map(|exception| exception.text).collect();
        assert_eq!(texts, ["nobody else"]);
    }

    #[test]
    fn every_exception_has_a_reason() {
        assert!(EXCEPTIONS.iter().all(|exception| !exception.reason.is_empty()));
    }
}
