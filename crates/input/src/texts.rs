//! The unparsed texts of the inputs.

use std::{
    io,
    path::{Path, PathBuf},
};

use bellwether_model::Plan;

use super::{Entries, InputError, Request, Source, Visit, VisitLocated, files_in, holds_objects, read_input};

pub(super) struct Text {
    pub(super) path: PathBuf,
    pub(super) bytes: Result<Vec<u8>, InputError>,
}

impl Text {
    pub(super) fn at(path: PathBuf) -> Self {
        let bytes = Source::of(&path).read().map_err(|error| cannot_read(&path, &error));
        Self { path, bytes }
    }

    /// The content, without a byte order mark.
    pub(super) fn content(&self) -> Result<&str, InputError> {
        let bytes = self.bytes.as_ref().map_err(Clone::clone)?;
        let text = str::from_utf8(bytes).map_err(|error| {
            let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
            InputError(format!("{}:{line}: not UTF-8", Source::of(&self.path)))
        })?;
        Ok(text.trim_start_matches('\u{feff}'))
    }
}

/// The text of a file, or of every file in a directory. Each file is read when the iterator reaches it.
pub(super) fn of(input: &Path) -> Box<dyn Iterator<Item = Text>> {
    if input == Path::new("-") || !input.is_dir() {
        return Box::new(std::iter::once_with({
            let path = input.to_owned();
            || Text::at(path)
        }));
    }
    match files_in(input, &holds_objects) {
        Ok(files) => Box::new(files.into_iter().map(Text::at)),
        Err(error) => {
            let bytes = Err(cannot_read(input, &error));
            Box::new(std::iter::once(Text { path: input.to_owned(), bytes }))
        }
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> InputError {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => without_os_error(&error.to_string()).to_owned(),
    };
    InputError(format!("cannot read {}: {why}", Source::of(path)))
}

/// Without the ` (os error 5)` that Rust appends.
fn without_os_error(text: &str) -> &str {
    text.split_once(" (os error ").map_or(text, |(text, _)| text)
}

/// The texts of all inputs, to parse them more than once: a pipe can be read only once, and files may change
/// in between.
pub struct Texts(Vec<(PathBuf, Vec<Text>)>);

impl Texts {
    /// Reads each input once.
    pub fn of(inputs: &[PathBuf]) -> Self {
        Self(inputs.iter().map(|input| (input.clone(), of(input).collect())).collect())
    }

    /// Visits every object, decoded with the plan.
    pub fn read<R: Send>(&self, plan: &Plan, visit: &Visit<'_, R>) -> Entries<R> {
        self.read_with_locations(plan, &|object, _| visit(object))
    }

    pub fn read_with_locations<R: Send>(&self, plan: &Plan, visit: &VisitLocated<'_, R>) -> Entries<R> {
        let mut entries = Vec::new();
        for (input, texts) in &self.0 {
            let request = Request { plan, visit, kind_of_bare: None, accepts_duplicate_keys: false };
            read_input(input, texts.iter(), &request, &mut entries);
        }
        entries
    }

    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(input, _)| input.as_path())
    }
}
