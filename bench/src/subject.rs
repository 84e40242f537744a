//! The input of the health benchmark: an object from a file, decoded and assessed as in a watch.

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

    pub fn decode(&self) -> Result<Object<'_>, DecodeError> {
        Object::from_json(&self.json, &self.plan)
    }

    pub fn assess(&self, object: &Object<'_>) -> Verdict {
        assess(object, &self.context)
    }

    pub fn decode_and_assess(&self) -> Result<Verdict, DecodeError> {
        Ok(self.assess(&self.decode()?))
    }
}

/// Calls `measure` for each file on the command line, and prints a line of JSON with its result and the file
/// name.
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
