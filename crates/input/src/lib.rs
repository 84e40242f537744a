//! Objects from files, directories and stdin: YAML documents, JSON, JSON lines and lists.
//!
//! Each object is visited as soon as it is decoded, and then dropped. In memory are the results of the visits
//! and the text of one file at a time. What is not a Kubernetes object becomes a [`InputError`] with a place;
//! all other objects are still read.

mod json;
mod lines;
mod parallel;
mod seeds;
mod split;
#[cfg(test)]
mod tests;
mod texts;
mod yaml;

use std::{
    borrow::Borrow,
    fmt, fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use bellwether_model::{Object, Plan};
use bellwether_terminal::printable;

pub use self::{
    lines::{DuplicateKey, Lines, ObjectLocation},
    texts::Texts,
};
use self::{
    lines::{Origin, Route},
    seeds::Head,
    texts::Text,
};

/// Called with each object, from several threads at once.
pub type Visit<'v, R> = dyn Fn(&Object<'_>) -> R + Sync + 'v;

/// A [`Visit`] that also gets the place of the object.
pub type VisitLocated<'v, R> = dyn Fn(&Object<'_>, &ObjectLocation<'_>) -> R + Sync + 'v;

type VisitInText<'v, R> = dyn Fn(&Object<'_>, Origin<'_>) -> R + Sync + 'v;

/// An error in the input: the place and the reason, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError(String);

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result for each object, in the order of the input.
pub type Entries<R> = Vec<Result<R, InputError>>;

/// Visits every object in the inputs, decoded with the plan. The path `-` is stdin.
pub fn read<R: Send>(inputs: &[PathBuf], plan: &Plan, visit: &Visit<'_, R>) -> Entries<R> {
    read_with_locations(inputs, plan, &|object, _| visit(object))
}

pub fn read_with_locations<R: Send>(
    inputs: &[PathBuf],
    plan: &Plan,
    visit: &VisitLocated<'_, R>,
) -> Entries<R> {
    let mut entries = Vec::new();
    for input in inputs {
        read_input(input, texts::of(input), plan, visit, &mut entries);
    }
    entries
}

fn read_input<R: Send>(
    input: &Path,
    texts: impl Iterator<Item: Borrow<Text>>,
    plan: &Plan,
    visit: &VisitLocated<'_, R>,
    entries: &mut Entries<R>,
) {
    let before = entries.len();
    let documents: usize = texts.map(|text| read_one(text.borrow(), plan, visit, entries)).sum();
    // The empty output of a failed command must not pass as healthy.
    if documents == 0 && entries.len() == before {
        let source = Source::of(input);
        entries.push(Err(InputError(format!("no objects in {source}"))));
    }
}

#[derive(Clone, Copy)]
enum Source<'p> {
    Stdin,
    File(&'p Path),
}

impl<'p> Source<'p> {
    fn of(path: &'p Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::File(path) }
    }

    fn read(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Stdin => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Self::File(path) => fs::read(path),
        }
    }

    /// Whether the extension of the file is one for JSON lines.
    fn has_json_lines(self) -> bool {
        matches!(self, Self::File(path) if extension(path).is_some_and(|extension| JSON_LINES.contains(&extension)))
    }
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::File(path) => f.write_str(&printable(&path.to_string_lossy())),
        }
    }
}

const JSON_LINES: [&str; 2] = ["jsonl", "ndjson"];

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// The files in a directory and its subdirectories for which `wanted` is true, sorted by path. Hidden files
/// are skipped. Links to directories are not followed, because they may form a cycle.
pub fn files_in(directory: &Path, wanted: &dyn Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut paths: Vec<_> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        if path.is_dir() {
            if !path.is_symlink() {
                files.extend(files_in(&path, wanted)?);
            }
        } else if wanted(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Whether the extension of the file is one for YAML, JSON or JSON lines.
pub fn holds_objects(path: &Path) -> bool {
    extension(path).is_some_and(|extension| {
        ["yaml", "yml", "json"].contains(&extension) || JSON_LINES.contains(&extension)
    })
}

/// Returns the number of documents in the text.
fn read_one<R: Send>(
    text: &Text,
    plan: &Plan,
    visit: &VisitLocated<'_, R>,
    entries: &mut Entries<R>,
) -> usize {
    let source = Source::of(&text.path);
    let bytes = match &text.bytes {
        Ok(bytes) => bytes,
        Err(problem) => {
            entries.push(Err(problem.clone()));
            return 0;
        }
    };
    let text = match str::from_utf8(bytes) {
        Ok(text) => text.trim_start_matches('\u{feff}'),
        Err(error) => {
            let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
            entries.push(Err(InputError(format!("{source}:{line}: not UTF-8"))));
            return 0;
        }
    };
    let visit = |object: &Object<'_>, origin: Origin<'_>| visit(object, &ObjectLocation { source, origin });
    let (documents, found) = read_text(text, source.has_json_lines(), plan, &visit);
    entries.extend(found.into_iter().map(|entry| entry.map_err(|error| error.at(source))));
    documents
}

/// A place in a text. Numbers start at 1.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The item of a list.
    item: Option<usize>,
    line: usize,
}

/// Editors open `file:line`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.line)?;
        self.item.map_or(Ok(()), |item| write!(f, " (item {item})"))
    }
}

#[derive(Clone, Debug)]
struct LocatedError {
    /// With the item only if the line is not its own.
    place: Place,
    what: String,
}

impl LocatedError {
    fn at(&self, source: Source<'_>) -> InputError {
        InputError(format!("{source}:{self}"))
    }
}

impl fmt::Display for LocatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, printable(&self.what))
    }
}

type Found<R> = Vec<Result<R, LocatedError>>;

/// Returns the number of documents in the text, and the result for each object.
fn read_text<R: Send>(
    text: &str,
    json_lines: bool,
    plan: &Plan,
    visit: &VisitInText<'_, R>,
) -> (usize, Found<R>) {
    let documents: Vec<_> = if json_lines {
        split::json_lines(text).into_iter().collect()
    } else {
        split::documents(text).into_iter().map(|document| (document, document.pieces())).collect()
    };
    let pieces: Vec<_> = documents.iter().flat_map(|(_, pieces)| pieces).collect();
    let mut results = parallel::map(&pieces, |piece| piece.read(plan, visit)).into_iter();
    let mut found = Vec::new();
    for (document, pieces) in &documents {
        let results: Vec<_> = results.by_ref().take(pieces.len()).collect();
        // An item with an alias to an anchor in another item can only be parsed together with it.
        if results.len() > 1
            && results.iter().any(Result::is_err)
            && let [Ok(together)] = &mut *parallel::map(&[document.whole()], |whole| whole.read(plan, visit))
        {
            found.append(together);
            continue;
        }
        for result in results {
            match result {
                Ok(objects) => found.extend(objects),
                Err(error) => found.push(Err(error)),
            }
        }
    }
    (documents.len(), found)
}

/// Visits objects as they are decoded, and collects the results.
struct Collector<'t, R> {
    head: &'t Head<'t>,
    origin: Origin<'t>,
    visit: &'t VisitInText<'t, R>,
    found: Found<R>,
}

impl<'t, R> Collector<'t, R> {
    fn new(head: &'t Head<'t>, text: &'t str, place: Place, visit: &'t VisitInText<'t, R>) -> Self {
        let route = match place.item {
            Some(_) => Route::Only,
            None if head.is_list() => Route::Items,
            None => Route::Itself,
        };
        let item = place.item.or(head.is_list().then_some(1));
        let origin = Origin { text, place: Place { item, ..place }, route };
        Self { head, origin, visit, found: Vec::new() }
    }

    fn take(&mut self, object: Result<Object<'_>, String>) {
        let place = self.origin.reported_place();
        let visited = object.and_then(|object| self.visit(&self.head.item(object)));
        self.found.push(visited.map_err(|what| LocatedError { place, what }));
        self.origin.place.item = self.origin.place.item.map(|item| item + 1);
    }

    fn visit(&self, object: &Object<'_>) -> Result<R, String> {
        let missing = match (object.api_version(), object.kind()) {
            ("", "") => "apiVersion and kind",
            ("", _) => "apiVersion",
            (_, "") => "kind",
            _ => return Ok((self.visit)(object, self.origin)),
        };
        Err(format!("not a Kubernetes object: {missing} missing"))
    }
}
