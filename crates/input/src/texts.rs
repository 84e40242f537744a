//! The texts of inputs, before anybody looks into them.

use std::{
    io,
    path::{Path, PathBuf},
};

use bellwether_model::Plan;

use super::{Entries, Judge, JudgeOnSpot, Problem, Source, files_in, holds_objects, read_input};

/// A text, or why there is none.
pub(super) struct Text {
    pub(super) path: PathBuf,
    pub(super) bytes: Result<Vec<u8>, Problem>,
}

impl Text {
    fn at(path: PathBuf) -> Self {
        let bytes = Source::of(&path).read().map_err(|error| cannot_read(&path, &error));
        Self { path, bytes }
    }
}

/// The texts of an input: its own, or those of a directory. Each is read when it is its turn.
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

fn cannot_read(path: &Path, error: &io::Error) -> Problem {
    Problem(format!("cannot read {}: {error}", Source::of(path)))
}

/// All texts of some inputs, for who looks into them more than once: a pipe says what it has to say only once, and files may
/// change in between.
pub struct Texts(Vec<(PathBuf, Vec<Text>)>);

impl Texts {
    /// Reads them, each once.
    pub fn of(inputs: &[PathBuf]) -> Self {
        Self(inputs.iter().map(|input| (input.clone(), of(input).collect())).collect())
    }

    /// Reads what the plan keeps of every object, and judges it.
    pub fn read<R: Send>(&self, plan: &Plan, judge: &Judge<'_, R>) -> Entries<R> {
        self.read_with_spots(plan, &|object, _| judge(object))
    }

    /// The same, and says where every object stands.
    pub fn read_with_spots<R: Send>(&self, plan: &Plan, judge: &JudgeOnSpot<'_, R>) -> Entries<R> {
        let mut entries = Vec::new();
        for (input, texts) in &self.0 {
            read_input(input, texts.iter(), plan, judge, &mut entries);
        }
        entries
    }

    /// Where they are from.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(input, _)| input.as_path())
    }
}
