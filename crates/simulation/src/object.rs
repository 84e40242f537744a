//! An object as an API server stores it, with what the oracles work out of it.

use std::{
    cell::{OnceCell, RefCell},
    ops::Deref,
};

use bellwether_api::{Application, Rollup};
use bellwether_engine::Kind;
use bellwether_health::{Context, Verdict};
use bellwether_memory_cluster as memory;
use bellwether_model::{Object as Read, Plan};
use jiff::Timestamp;
use serde_json::Value;

pub use memory::{identity, merge};

/// An object in one of its versions. It does not change; what is worked out of it is kept.
#[derive(Debug)]
pub struct Object {
    stored: memory::Object,
    application: OnceCell<Option<Box<Application>>>,
    rollup: OnceCell<Option<Box<Rollup>>>,
    verdict: RefCell<Option<(Timestamp, Option<bool>, Verdict)>>,
}

impl memory::Stored for Object {
    fn keep(stored: memory::Object) -> Self {
        let (application, rollup, verdict) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        Self { stored, application, rollup, verdict }
    }

    fn object(&self) -> &memory::Object {
        &self.stored
    }
}

impl Deref for Object {
    type Target = memory::Object;

    fn deref(&self) -> &memory::Object {
        &self.stored
    }
}

impl Object {
    /// The object that is written so.
    pub fn new(value: Value) -> Self {
        memory::Stored::keep(memory::Object::new(value))
    }

    /// What it says, if it is an Application.
    pub fn application(&self) -> Option<&Application> {
        let read = || serde_json::from_value(self.value.clone()).ok();
        self.application
            .get_or_init(|| (self.kind == Kind::own("Application")).then(read).flatten())
            .as_deref()
    }

    /// What it says, if it is a Rollup.
    pub fn rollup(&self) -> Option<&Rollup> {
        let read = || serde_json::from_value(self.value.clone()).ok();
        self.rollup.get_or_init(|| (self.kind == Kind::own("Rollup")).then(read).flatten()).as_deref()
    }

    /// How it is at this time, where its kind has a status or has none.
    pub fn verdict(&self, now: Timestamp, has_status: Option<bool>) -> Verdict {
        if let Some((then, had_status, verdict)) = &*self.verdict.borrow()
            && *then <= now
            && *had_status == has_status
            && verdict.later.as_ref().is_none_or(|later| now < later.at)
        {
            return verdict.clone();
        }
        let context = Context { has_status, ..Context::at(now) };
        let verdict = match Read::from_json(self.text(), &Plan::whole()) {
            Ok(object) => bellwether_health::assess(&object, &context),
            Err(error) => unreachable!("what was written can be read: {error}"),
        };
        *self.verdict.borrow_mut() = Some((now, has_status, verdict.clone()));
        verdict
    }

    /// Whether it is a Pod that checks the health of an Application.
    pub fn is_check(&self) -> bool {
        self.kind == Kind::pod() && !self.metadata()["labels"]["bellwether.dev/health-check"].is_null()
    }
}
