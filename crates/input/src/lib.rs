//! Objects from files, directories and standard input: YAML of many documents, JSON, JSON lines, lists.
//!
//! Every object is judged as soon as it is read, and forgotten: what is kept is what was said of it, and the text of one
//! file at a time. What is no Kubernetes object becomes a [`Problem`] at its place, and does not hide the rest.

mod cut;
mod json;
mod lines;
mod parallel;
mod seeds;
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
    lines::{Lines, Spot},
    texts::Texts,
};
use self::{
    lines::{Stretch, Way},
    seeds::Head,
    texts::Text,
};

/// What is done with an object. Many threads may do it at once.
pub type Judge<'j, R> = dyn Fn(&Object<'_>) -> R + Sync + 'j;

/// The same for who wants to know where the object stands.
pub type JudgeOnSpot<'j, R> = dyn Fn(&Object<'_>, &Spot<'_>) -> R + Sync + 'j;

/// The same within a text.
type JudgeInText<'j, R> = dyn Fn(&Object<'_>, Stretch<'_>) -> R + Sync + 'j;

/// Why there is no object at some place, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What became of each object, in the order of the input.
pub type Entries<R> = Vec<Result<R, Problem>>;

/// Reads what the plan keeps of every object of the inputs, and judges it. The path `-` is standard input.
pub fn read<R: Send>(inputs: &[PathBuf], plan: &Plan, judge: &Judge<'_, R>) -> Entries<R> {
    read_with_spots(inputs, plan, &|object, _| judge(object))
}

/// The same, and says where every object stands.
pub fn read_with_spots<R: Send>(inputs: &[PathBuf], plan: &Plan, judge: &JudgeOnSpot<'_, R>) -> Entries<R> {
    let mut entries = Vec::new();
    for input in inputs {
        read_input(input, texts::of(input), plan, judge, &mut entries);
    }
    entries
}

/// Reads the texts of an input.
fn read_input<R: Send>(
    input: &Path,
    texts: impl Iterator<Item: Borrow<Text>>,
    plan: &Plan,
    judge: &JudgeOnSpot<'_, R>,
    entries: &mut Entries<R>,
) {
    let before = entries.len();
    let documents: usize = texts.map(|text| read_one(text.borrow(), plan, judge, entries)).sum();
    // An empty answer of a command that failed must not pass for a healthy one.
    if documents == 0 && entries.len() == before {
        let source = Source::of(input);
        entries.push(Err(Problem(format!("{source} holds no object, so there is nothing to judge"))));
    }
}

/// Where a text comes from.
#[derive(Clone, Copy)]
enum Source<'p> {
    StandardInput,
    File(&'p Path),
}

impl<'p> Source<'p> {
    fn of(path: &'p Path) -> Self {
        if path == Path::new("-") { Self::StandardInput } else { Self::File(path) }
    }

    fn read(self) -> io::Result<Vec<u8>> {
        match self {
            Self::StandardInput => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Self::File(path) => fs::read(path),
        }
    }

    /// Whether the name of the file says that every line is a document.
    fn has_json_lines(self) -> bool {
        matches!(self, Self::File(path) if extension(path).is_some_and(|extension| JSON_LINES.contains(&extension)))
    }
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("standard input"),
            Self::File(path) => f.write_str(&printable(&path.to_string_lossy())),
        }
    }
}

const JSON_LINES: [&str; 2] = ["jsonl", "ndjson"];

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// The files that are wanted in a directory and the directories below it, by name. What is hidden stays so, and links to
/// directories are not followed, because they may lead in circles.
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

/// Whether the name of a file says that it holds objects.
pub fn holds_objects(path: &Path) -> bool {
    extension(path).is_some_and(|extension| {
        ["yaml", "yml", "json"].contains(&extension) || JSON_LINES.contains(&extension)
    })
}

/// Reads one text, and says how many documents it has.
fn read_one<R: Send>(
    text: &Text,
    plan: &Plan,
    judge: &JudgeOnSpot<'_, R>,
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
            let what = format!("{source}: it is no UTF-8 text from byte {} on", error.valid_up_to());
            entries.push(Err(Problem(what)));
            return 0;
        }
    };
    let judge = |object: &Object<'_>, stretch: Stretch<'_>| judge(object, &Spot { source, stretch });
    let (documents, found) = read_text(text, source.has_json_lines(), plan, &judge);
    entries.extend(found.into_iter().map(|entry| entry.map_err(|fault| fault.at(source))));
    documents
}

/// Where in a text something stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The document, from 1.
    document: usize,
    /// The item of its list, from 1.
    item: Option<usize>,
    /// The line of the text, from 1.
    line: usize,
}

/// What is wrong at a place.
#[derive(Clone, Debug)]
struct Fault {
    place: Place,
    what: String,
}

impl Fault {
    fn at(&self, source: Source<'_>) -> Problem {
        Problem(format!("{source}, {self}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {}", self.place.document)?;
        if let Some(item) = self.place.item {
            write!(f, ", item {item}")?;
        }
        write!(f, ", line {}: {}", self.place.line, printable(&self.what))
    }
}

/// What became of the objects of a text.
type Found<R> = Vec<Result<R, Fault>>;

/// Judges the objects of a text, and says how many documents it has.
fn read_text<R: Send>(
    text: &str,
    json_lines: bool,
    plan: &Plan,
    judge: &JudgeInText<'_, R>,
) -> (usize, Found<R>) {
    let documents: Vec<_> = if json_lines {
        cut::json_lines(text).into_iter().collect()
    } else {
        cut::documents(text).into_iter().map(|document| (document, document.pieces())).collect()
    };
    let pieces: Vec<_> = documents.iter().flat_map(|(_, pieces)| pieces).collect();
    let mut results = parallel::map(&pieces, |piece| piece.read(plan, judge)).into_iter();
    let mut found = Vec::new();
    for (document, pieces) in &documents {
        let results: Vec<_> = results.by_ref().take(pieces.len()).collect();
        // Items that point to one another make sense only together.
        if results.len() > 1
            && results.iter().any(Result::is_err)
            && let [Ok(together)] = &mut *parallel::map(&[document.whole()], |whole| whole.read(plan, judge))
        {
            found.append(together);
            continue;
        }
        for result in results {
            match result {
                Ok(objects) => found.extend(objects),
                Err(fault) => found.push(Err(fault)),
            }
        }
    }
    (documents.len(), found)
}

/// Judges objects as they are read, and writes down what became of each.
struct Taker<'t, R> {
    head: &'t Head<'t>,
    stretch: Stretch<'t>,
    judge: &'t JudgeInText<'t, R>,
    found: Found<R>,
}

impl<'t, R> Taker<'t, R> {
    /// For the objects of a text with this head, or for one of them.
    fn new(head: &'t Head<'t>, text: &'t str, place: Place, judge: &'t JudgeInText<'t, R>) -> Self {
        let way = match place.item {
            Some(_) => Way::Only,
            None if head.is_list() => Way::Items,
            None => Way::Itself,
        };
        let item = place.item.or(head.is_list().then_some(1));
        let stretch = Stretch { text, place: Place { item, ..place }, way };
        Self { head, stretch, judge, found: Vec::new() }
    }

    fn take(&mut self, object: Result<Object<'_>, String>) {
        let place = self.stretch.place;
        let judged = object.and_then(|object| self.judge(&self.head.item(object)));
        self.found.push(judged.map_err(|what| Fault { place, what }));
        self.stretch.place.item = place.item.map(|item| item + 1);
    }

    fn judge(&self, object: &Object<'_>) -> Result<R, String> {
        let missing = match (object.api_version(), object.kind()) {
            ("", "") => "neither apiVersion nor kind",
            ("", _) => "no apiVersion",
            (_, "") => "no kind",
            _ => return Ok((self.judge)(object, self.stretch)),
        };
        Err(format!("it has {missing}, so it is no Kubernetes object"))
    }
}
