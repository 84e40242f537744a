//! What is said of an Application of `app.k8s.io`, in the words that its users and their tools know.

use std::{borrow::Cow, collections::HashMap};

use bellwether_api::{ConditionStatus, State};
use bellwether_conditions::{Statement, message};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    condition_types::{ERROR, READY},
    feeds::Feeds,
    id::GroupKind,
    lazy_statement::{LazyStatement, says},
    members::MemberEntry,
    publication::ConditionSet,
    reasons::app_k8s_io as reasons,
    stored_condition::{ConditionShape, StoredCondition},
};

use super::{
    app::{App, LegacySpec},
    status::{BUDGET, link, unresolved, what_to_do},
};

/// So many components are listed at most,
const MOST_COMPONENTS: usize = 1000;
/// in so many bytes.
const MOST_BYTES: usize = 512 << 10;

pub(super) const MANNER: ConditionSet = ConditionSet {
    own: &[READY, ERROR],
    announced: &[(READY, Some(ConditionStatus::True))],
    form: ConditionShape::UpdateTime,
    conflict_hint: Some("stop the other one, or start Bellwether with --app-k8s-io=false"),
};

/// The status as that API has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AppK8sIoStatus {
    observed_generation: i64,
    conditions: Vec<StoredCondition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<ComponentStatus>,
    components_ready: String,
}

/// A member. What is empty is left out.
#[derive(Debug, Serialize)]
struct ComponentStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    name: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    status: &'static str,
}

/// The conditions as they should be now, Ready before the other.
pub(super) fn conditions<'a>(
    app: &'a App,
    legacy: &'a LegacySpec,
    feeds: &'a Feeds,
) -> Vec<(&'static str, Option<LazyStatement<'a>>)> {
    let unreadable = unresolved(app, feeds);
    let troubles = legacy.mistakes.len() + unreadable.len();
    let ready = ready(app, legacy, troubles > 0);
    let troubles = troubles + app.refused.len();
    let error = if troubles == 0 {
        says(ConditionStatus::False, reasons::NO_ERROR, || "No error seen".to_owned())
    } else {
        says(ConditionStatus::True, reasons::ERROR_SEEN, move || {
            let mistakes = legacy.mistakes.iter().map(|mistake| (Cow::from(mistake), Cow::from("")));
            let kinds = unreadable.iter().map(|(kind, why)| {
                (
                    Cow::from(format!("{}:", in_full(kind))),
                    Cow::from(format!("{why}{}", what_to_do(kind, why))),
                )
            });
            let refused = app.refused.iter();
            let refused = refused.map(|((kind, name), why)| {
                (Cow::from(format!("{}/{name}:", kind.kind)), Cow::from(why.to_string()))
            });
            message(mistakes.chain(kinds).chain(refused), troubles, BUDGET)
        })
    };
    vec![(READY, Some(ready)), (ERROR, Some(error))]
}

/// Where something goes wrong, nobody can tell; nor where nothing was found, though no component is unready then.
fn ready<'a>(app: &'a App, legacy: &'a LegacySpec, has_troubles: bool) -> LazyStatement<'a> {
    let (ready, total) = (ready_ones(app), app.members.total());
    let unknown = app.members.count(State::Unknown);
    let nobody_knows =
        |words: fn() -> String| says(ConditionStatus::Unknown, reasons::COMPONENTS_READY_UNKNOWN, words);
    if has_troubles {
        nobody_knows(|| {
            "failed to aggregate all components' statuses, check the Error condition for details".to_owned()
        })
    } else if total == 0 && !legacy.selects {
        nobody_knows(|| "no components found: spec.selector is missing".to_owned())
    } else if total == 0 && app.needs.is_empty() {
        nobody_knows(|| "no components found: spec.componentKinds is empty".to_owned())
    } else if total == 0 {
        nobody_knows(|| "no components found: no object of these kinds matches the selector".to_owned())
    } else if ready + unknown < total {
        says(ConditionStatus::False, reasons::COMPONENTS_NOT_READY, move || {
            format!("{} components not ready", total - ready)
        })
    } else if unknown > 0 {
        says(ConditionStatus::Unknown, reasons::COMPONENTS_READY_UNKNOWN, move || {
            format!("{unknown} components of unknown readiness")
        })
    } else {
        says(ConditionStatus::True, reasons::COMPONENTS_READY, || "all components ready".to_owned())
    }
}

/// What is suspended blocks nobody.
fn ready_ones(app: &App) -> usize {
    app.members.count(State::Ready) + app.members.count(State::Suspended)
}

/// The status as it should be now.
pub(super) fn render(app: &App, legacy: &LegacySpec, feeds: &Feeds, now: Timestamp) -> AppK8sIoStatus {
    let conditions = conditions(app, legacy, feeds);
    let conditions = conditions.into_iter().map(|(kind, says)| (kind, says.map(Statement::from)));
    AppK8sIoStatus {
        observed_generation: app.publication.generation,
        conditions: app.publication.conditions(conditions, now),
        components: components(app, feeds),
        components_ready: format!("{}/{}", ready_ones(app), app.members.total()),
    }
}

/// In the order in which the spec names the kinds, and then by name.
fn components(app: &App, feeds: &Feeds) -> Vec<ComponentStatus> {
    let mut of_kind: HashMap<&GroupKind, Vec<&MemberEntry>> = HashMap::new();
    for (_, share) in app.members.worst_first() {
        of_kind.entry(&share.kind).or_default().push(share);
    }
    let mut left = MOST_BYTES;
    let kinds = app.spec.component_kinds.iter().map(|kind| GroupKind::new(&kind.group, &kind.kind));
    let shares = kinds.filter_map(|kind| of_kind.remove(&kind)).flat_map(|mut shares| {
        shares.sort_unstable_by(|one, other| one.name.name.cmp(&other.name.name));
        shares
    });
    shares
        .take(MOST_COMPONENTS)
        .map(|share| component(app, share, feeds))
        .take_while(|entry| {
            let size = 100 + entry.name.len() + entry.link.as_ref().map_or(0, String::len);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        })
        .collect()
}

fn component(app: &App, share: &MemberEntry, feeds: &Feeds) -> ComponentStatus {
    let feed = app.needs.get(&share.kind).and_then(|need| feeds.get(need.feed));
    ComponentStatus {
        link: feed.and_then(|feed| link(feed, &app.name.namespace, &share.name.name)),
        name: (*share.name.name).into(),
        kind: (*share.kind.kind).into(),
        group: (*share.kind.group).into(),
        status: match share.state {
            State::Ready | State::Suspended => "Ready",
            State::InProgress | State::Failed | State::Terminating | State::Missing => "InProgress",
            State::Unknown => "Unknown",
        },
    }
}

/// A kind as those who wrote it in a wrong group have to see it.
fn in_full(kind: &GroupKind) -> String {
    if kind.group.is_empty() { format!("{} in the core group", kind.kind) } else { kind.to_string() }
}
