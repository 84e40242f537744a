//! What a cluster remembers: its objects, every change to them in order, and which kinds it serves.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_engine::{Kind, Name, Served};
use serde_json::{Value, json};

use crate::{
    known::Known,
    object::{Object, identity},
    objects,
};

/// A change to an object.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The number of the change.
    pub(crate) revision: u64,
    /// The object as it is since, or as it was when it went.
    pub(crate) object: Rc<Object>,
    pub(crate) gone: bool,
}

/// The memory of a cluster.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) revision: u64,
    /// What came before is forgotten: nobody can watch from there.
    pub(crate) compacted: u64,
    pub(crate) kinds: BTreeMap<Kind, Served>,
    pub(crate) objects: BTreeMap<(Kind, Name), Rc<Object>>,
    pub(crate) log: Vec<Entry>,
    born: u64,
}

impl Store {
    pub(crate) fn new() -> Self {
        let kinds = objects::kinds();
        let (objects, log) = (BTreeMap::new(), Vec::new());
        Self { revision: 1, compacted: 0, kinds, objects, log, born: 0 }
    }

    pub(crate) fn get(&self, kind: &Kind, name: &Name) -> Option<&Rc<Object>> {
        self.objects.get(&(kind.clone(), name.clone()))
    }

    pub(crate) fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = &Rc<Object>> {
        self.objects.iter().filter(move |((other, _), _)| other == kind).map(|(_, object)| object)
    }

    /// Stores an object as it is given, under a new version. Another spec is another generation; what is new gets an
    /// identity.
    pub(crate) fn put(&mut self, mut value: Value) -> Rc<Object> {
        let (kind, name) = identity(&value);
        self.revision += 1;
        let before = self.get(&kind, &name);
        let generation = before.map_or(1, |before| {
            let generation = before.metadata()["generation"].as_i64().unwrap_or(1);
            generation + i64::from(value["spec"] != before.value["spec"])
        });
        let uid = before.map(|before| before.uid().to_owned());
        let metadata = &mut value["metadata"];
        metadata["uid"] = json!(uid.unwrap_or_else(|| {
            self.born += 1;
            format!("u{}", self.born)
        }));
        metadata["generation"] = json!(generation);
        metadata["resourceVersion"] = json!(self.revision.to_string());
        let object = Rc::new(Object::new(value));
        self.log.push(Entry { revision: self.revision, object: Rc::clone(&object), gone: false });
        self.objects.insert((kind, name), Rc::clone(&object));
        object
    }

    /// Removes an object. The last that is told of it has a version of its own.
    pub(crate) fn remove(&mut self, kind: &Kind, name: &Name) -> bool {
        let Some(object) = self.objects.remove(&(kind.clone(), name.clone())) else { return false };
        self.revision += 1;
        let mut value = object.value.clone();
        value["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Rc::new(Object::new(value));
        self.log.push(Entry { revision: self.revision, object, gone: true });
        true
    }

    /// What there was of a kind after this change.
    pub(crate) fn at(&self, kind: &Kind, revision: u64) -> BTreeMap<Name, Rc<Object>> {
        let mut objects = BTreeMap::new();
        for entry in self.log.iter().take_while(|entry| entry.revision <= revision) {
            if entry.object.kind != *kind {
                continue;
            }
            if entry.gone {
                objects.remove(&entry.object.name);
            } else {
                objects.insert(entry.object.name.clone(), Rc::clone(&entry.object));
            }
        }
        objects
    }

    /// The object of this name after this change, if there was one.
    pub(crate) fn get_at(&self, kind: &Kind, name: &Name, revision: u64) -> Option<&Rc<Object>> {
        let is_it =
            |it: &&Entry| it.revision <= revision && it.object.kind == *kind && it.object.name == *name;
        self.log.iter().rfind(is_it).filter(|entry| !entry.gone).map(|entry| &entry.object)
    }

    /// All that was so of an object of this name at some moment from this change on; none where it was not there.
    pub(crate) fn since(&self, kind: &Kind, name: &Name, revision: u64) -> Vec<Option<&Rc<Object>>> {
        let mut states = vec![None];
        for entry in self.log.iter().filter(|entry| entry.object.kind == *kind && entry.object.name == *name)
        {
            if entry.revision <= revision {
                states.clear();
            }
            states.push((!entry.gone).then_some(&entry.object));
        }
        states
    }

    /// All that there is of a kind now.
    pub(crate) fn known(&self, kind: &Kind) -> Known {
        let served = self.kinds.get(kind).cloned();
        let objects = self.of_kind(kind).map(|object| (object.name.clone(), Rc::clone(object)));
        Known { served, listed: true, objects: objects.collect(), ..Known::default() }
    }

    /// Serves a kind no longer: its objects go with it.
    pub(crate) fn unserve(&mut self, kind: &Kind) -> Option<Served> {
        let names: Vec<_> = self.of_kind(kind).map(|object| object.name.clone()).collect();
        for name in names {
            self.remove(kind, &name);
        }
        self.kinds.remove(kind)
    }
}
