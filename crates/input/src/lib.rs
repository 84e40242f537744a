//! Objects from files, directories and stdin: YAML documents, JSON, JSON lines and lists.
//!
//! Each object is visited as soon as it is decoded, and then dropped. In memory are the results of the visits
//! and the text of one file at a time. What is not a Kubernetes object becomes a [`InputError`] with a place;
//! all other objects are still read.

mod json;
mod lines;
mod parallel;
mod quoted;
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
    split::Content,
    texts::Text,
};

/// Called with each object, from several threads at once.
pub type Visit<'v, R> = dyn Fn(&Object<'_>) -> R + Sync + 'v;

/// A [`Visit`] that also gets the place of the object.
pub type VisitLocated<'v, R> = dyn Fn(&Object<'_>, &ObjectLocation<'_>) -> R + Sync + 'v;

/// The apiVersion and kind of a document that has neither, if its other fields tell.
pub type KindOfBare<'v> = dyn Fn(&Object<'_>) -> Option<(&'static str, &'static str)> + Sync + 'v;

type VisitInText<'v, R> = dyn Fn(&Object<'_>, Origin<'_>) -> R + Sync + 'v;

/// How the objects of a text are read.
struct Reading<'v, R> {
    plan: &'v Plan,
    visit: &'v VisitInText<'v, R>,
    kind_of_bare: Option<&'v KindOfBare<'v>>,
    /// Whether an object in YAML may have a key twice. The last one counts then, as on the API server.
    accepts_duplicate_keys: bool,
}

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
    read_all(inputs, &Request { plan, visit, kind_of_bare: None, accepts_duplicate_keys: false })
}

/// As [`read_with_locations`], but a YAML map may have a key twice: the last one counts.
/// [`ObjectLocation::duplicate_key`] tells the first of them.
pub fn read_with_duplicate_keys<R: Send>(
    inputs: &[PathBuf],
    plan: &Plan,
    visit: &VisitLocated<'_, R>,
) -> Entries<R> {
    read_all(inputs, &Request { plan, visit, kind_of_bare: None, accepts_duplicate_keys: true })
}

/// As [`read_with_duplicate_keys`], and also visits documents without apiVersion and kind, as objects of the
/// kind that `kind_of_bare` tells.
pub fn read_with_bare_documents<R: Send>(
    inputs: &[PathBuf],
    plan: &Plan,
    visit: &VisitLocated<'_, R>,
    kind_of_bare: &KindOfBare<'_>,
) -> Entries<R> {
    let kind_of_bare = Some(kind_of_bare);
    read_all(inputs, &Request { plan, visit, kind_of_bare, accepts_duplicate_keys: true })
}

/// Visits every object in a text that is not a file, such as the response of an API server to a list.
pub fn read_response<R: Send>(text: &str, plan: &Plan, visit: &Visit<'_, R>) -> Vec<Result<R, String>> {
    let visit: &VisitInText<'_, R> = &|object, _| visit(object);
    let reading = Reading { plan, visit, kind_of_bare: None, accepts_duplicate_keys: false };
    let (_, found) = read_text(text, false, &reading);
    found.into_iter().map(|entry| entry.map_err(|error| error.what)).collect()
}

/// Any YAML or JSON value, from a file with one document.
pub fn read_value(file: &Path) -> Result<serde_json::Value, InputError> {
    let source = Source::of(file);
    let text = Text::at(file.to_owned());
    yaml::value(text.content()?).map_err(|error| error.at(source))
}

/// What a caller asks for: see [`Reading`].
struct Request<'v, R> {
    plan: &'v Plan,
    visit: &'v VisitLocated<'v, R>,
    kind_of_bare: Option<&'v KindOfBare<'v>>,
    accepts_duplicate_keys: bool,
}

fn read_all<R: Send>(inputs: &[PathBuf], request: &Request<'_, R>) -> Entries<R> {
    let mut entries = Vec::new();
    for input in inputs {
        read_input(input, texts::of(input), request, &mut entries);
    }
    entries
}

fn read_input<R: Send>(
    input: &Path,
    texts: impl Iterator<Item: Borrow<Text>>,
    request: &Request<'_, R>,
    entries: &mut Entries<R>,
) {
    let before = entries.len();
    let documents: usize = texts.map(|text| read_one(text.borrow(), request, entries)).sum();
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
fn read_one<R: Send>(text: &Text, request: &Request<'_, R>, entries: &mut Entries<R>) -> usize {
    let source = Source::of(&text.path);
    let text = match text.content() {
        Ok(text) => text,
        Err(error) => {
            entries.push(Err(error));
            return 0;
        }
    };
    let reading = Reading {
        plan: request.plan,
        visit: &|object, origin| (request.visit)(object, &ObjectLocation { source, origin }),
        kind_of_bare: request.kind_of_bare,
        accepts_duplicate_keys: request.accepts_duplicate_keys,
    };
    let (documents, found) = read_text(text, source.has_json_lines(), &reading);
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
fn read_text<R: Send>(text: &str, json_lines: bool, reading: &Reading<'_, R>) -> (usize, Found<R>) {
    let documents: Vec<_> = if json_lines {
        split::json_lines(text).into_iter().collect()
    } else {
        split::documents(text).into_iter().map(|document| (document, document.pieces())).collect()
    };
    let pieces: Vec<_> = documents.iter().flat_map(|(_, pieces)| pieces).collect();
    let mut results = parallel::map(&pieces, |piece| piece.read(reading)).into_iter();
    let mut found = Vec::new();
    for (document, pieces) in &documents {
        let results: Vec<_> = results.by_ref().take(pieces.len()).collect();
        // An item with an alias to an anchor in another item can only be parsed together with it. And quoted
        // text that goes on without indentation may have looked like the end of an item.
        if pieces.iter().any(|piece| matches!(piece.content, Content::Item(_)))
            && results.iter().any(Result::is_err)
            && let [Ok(together)] = &mut *parallel::map(&[document.whole()], |whole| whole.read(reading))
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
    reading: &'t Reading<'t, R>,
    found: Found<R>,
}

impl<'t, R> Collector<'t, R> {
    fn new(
        head: &'t Head<'t>,
        text: &'t str,
        place: Place,
        duplicate_keys: bool,
        reading: &'t Reading<'t, R>,
    ) -> Self {
        let route = match place.item {
            Some(_) => Route::Only,
            None if head.is_list() => Route::Items,
            None => Route::Itself,
        };
        let item = place.item.or(head.is_list().then_some(1));
        let origin = Origin { text, place: Place { item, ..place }, route, duplicate_keys };
        Self { head, origin, reading, found: Vec::new() }
    }

    fn take(&mut self, object: Result<Object<'_>, String>) {
        let place = self.origin.reported_place();
        let visited = object.and_then(|object| self.visit(&self.head.item(object)));
        self.found.push(visited.map_err(|what| LocatedError { place, what }));
        self.origin.place.item = self.origin.place.item.map(|item| item + 1);
    }

    fn visit(&self, object: &Object<'_>) -> Result<R, String> {
        let missing = match (object.api_version(), object.kind()) {
            ("", "") => match self.reading.kind_of_bare.and_then(|kind_of| kind_of(object)) {
                Some((api_version, kind)) => {
                    let object = object.clone().of_kind(api_version, kind);
                    return Ok((self.reading.visit)(&object, self.origin));
                }
                None => "apiVersion and kind",
            },
            ("", _) => "apiVersion",
            (_, "") => "kind",
            _ => return Ok((self.reading.visit)(object, self.origin)),
        };
        Err(format!("not a Kubernetes object: {missing} missing"))
    }
}
