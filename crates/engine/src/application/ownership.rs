//! Who owns an object: Applications own the members that were handed over to them, and let go of the others.

use bellwether_api::{GROUP, VERSION};

use crate::{
    effect::{Adopter, Change, Part, Slot},
    facts::{Facts, Owner},
    id::{Cluster, Kind, ObjectKey},
};

use super::app::App;

/// The reference from an object to the Application that owns it.
fn reference(app: &App) -> Owner {
    Owner {
        api_version: format!("{GROUP}/{VERSION}").into(),
        kind: "Application".into(),
        name: (*app.name.name).into(),
        uid: app.uid.clone(),
        controller: Some(false),
        block_owner_deletion: Some(true),
    }
}

/// Whether an owner is an Application of ours.
pub(super) fn is_application(owner: &Owner) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    &*owner.kind == "Application" && group == Some(GROUP)
}

/// What is to be done about the owners of an object, given the Application that is to own it and those that it must not
/// be owned by. Owners that are no business of ours stay as they are.
pub(super) fn change(facts: &Facts, owner: Option<&App>, strangers: &[&App]) -> Option<Change> {
    let is_stranger = |owner: &&Owner| strangers.iter().any(|app| app.uid == owner.uid);
    let mut owners: Vec<_> = facts.owners.iter().filter(|owner| !is_stranger(owner)).cloned().collect();
    let mut adopter = None;
    if let Some(app) = owner {
        let wanted = reference(app);
        match owners.iter_mut().find(|owner| owner.uid == app.uid) {
            // Whoever made it the manager, or asked not to wait, had a reason.
            Some(present) if present.name == wanted.name => {}
            Some(present) => *present = wanted,
            None => {
                owners.push(wanted);
                adopter = Some(Adopter { application: app.name.clone(), uid: app.uid.clone() });
            }
        }
    }
    (*owners != *facts.owners).then(|| Change::Owners {
        uid: facts.uid.clone(),
        version: facts.version.clone(),
        owners: owners.into(),
        adopter,
    })
}

/// Where the owners of an object are written.
pub(super) fn slot(cluster: &Cluster, kind: &Kind, name: &crate::id::Name) -> Slot {
    let object = ObjectKey { cluster: cluster.clone(), kind: kind.clone(), name: name.clone() };
    Slot { object, part: Part::Owners }
}

/// The uids of the Applications that own an object.
pub(super) fn applications(facts: &Facts) -> impl Iterator<Item = &Box<str>> {
    facts.owners.iter().filter(|owner| is_application(owner)).map(|owner| &owner.uid)
}
