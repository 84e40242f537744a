//! What is measured: an object from a file, judged as a watch judges it.

use std::{
    env, fs,
    io::{Write as _, stdout},
    path::Path,
};

use anyhow::{Context as _, Result};
use bellwether_health::{Context, Verdict, assess, plan};
use bellwether_model::{DecodeError, Object, Plan};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

/// An object as an API server sends it, and what a watch of its kind has at hand.
#[derive(Debug)]
pub struct Subject {
    file: String,
    json: Vec<u8>,
    plan: Plan,
    context: Context<'static>,
}

impl Subject {
    fn read(path: &Path) -> Result<Self> {
        let json = fs::read(path)?;
        let identity = Object::from_json(&json, &Plan::identity())?;
        let plan = plan(identity.group(), identity.kind());
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { file, plan, json, context: Context::at(Timestamp::now()) })
    }

    /// The object, from its bytes.
    pub fn decode(&self) -> Result<Object<'_>, DecodeError> {
        Object::from_json(&self.json, &self.plan)
    }

    /// The verdict on the object.
    pub fn judge(&self, object: &Object<'_>) -> Verdict {
        assess(object, &self.context)
    }

    /// The verdict, from the bytes.
    pub fn decode_and_judge(&self) -> Result<Verdict, DecodeError> {
        Ok(self.judge(&self.decode()?))
    }
}

/// Measures the objects in the files that the command line names, and prints for each a line of JSON: the name of the file,
/// and what `measure` found.
pub fn report(measure: impl Fn(&Subject) -> Result<Json>) -> Result<()> {
    for path in env::args_os().skip(1) {
        let path = Path::new(&path);
        let line = || -> Result<Json> {
            let subject = Subject::read(path)?;
            let mut line = measure(&subject)?;
            line["file"] = json!(subject.file);
            line["size"] = json!(subject.json.len());
            Ok(line)
        };
        let line = line().with_context(|| format!("cannot measure {}", path.display()))?;
        writeln!(stdout(), "{line}")?;
    }
    Ok(())
}
