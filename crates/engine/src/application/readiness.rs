//! `status.state`, `status.reason` and the condition Ready.

use std::{borrow::Cow, rc::Rc};

use bellwether_api::{ConditionStatus, State};
use bellwether_conditions::message;
use bellwether_model::text::with_reason;

use crate::{
    below::Below,
    feeds::Feeds,
    group_state,
    id::GroupKind,
    lazy_statement::LazyStatement,
    members::{MemberEntry, MemberId},
    reasons::application as reasons,
    selector,
    stored_condition::MESSAGE_BUDGET,
};

use super::{
    application_state::ApplicationState,
    health_check_state::Validity,
    objects::why,
    unresolved::{Unresolved, unresolved},
};

/// `status.state`.
pub(super) fn state(app: &ApplicationState, feeds: &Feeds) -> State {
    Readiness::of(app, unresolved(app, feeds).len()).state()
}

/// What decides the condition Ready and `status.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    /// The Application is being deleted.
    Terminating,
    /// The worst state of a member, or `InProgress` for the health check and for suspended members of which
    /// too little runs.
    Blocked(State),
    /// A member, a kind or the health check is unknown.
    Unknown,
    NoMembers,
}

impl Readiness {
    /// Worst first.
    const BLOCKING: [State; 4] = [State::Failed, State::Missing, State::InProgress, State::Terminating];

    /// `unresolved` is the number of kinds that cannot be read.
    pub(super) fn of(app: &ApplicationState, unresolved: usize) -> Self {
        if app.deleting {
            return Self::Terminating;
        }
        let check = health_check_readiness(app).map(|(status, _)| status);
        let is_blocked_by = |state: &State| {
            let blocks_otherwise =
                check == Some(ConditionStatus::False) || app.members.blocking_suspended() > 0;
            app.members.count(*state) > 0 || *state == State::InProgress && blocks_otherwise
        };
        if let Some(state) = Self::BLOCKING.into_iter().find(is_blocked_by) {
            return Self::Blocked(state);
        }
        let has_unknown = app.members.count(State::Unknown) + unresolved > 0;
        if has_unknown || check == Some(ConditionStatus::Unknown) {
            return Self::Unknown;
        }
        let asks_for_members = app.kind_uses.values().any(|kind_use| kind_use.allows_members);
        if app.members.total() == 0 && (asks_for_members || app.spec.health_check.is_none()) {
            return Self::NoMembers;
        }
        Self::Ready
    }

    pub(super) fn state(self) -> State {
        match self {
            Self::Ready => State::Ready,
            Self::Terminating => State::Terminating,
            Self::Blocked(state) => state,
            Self::Unknown | Self::NoMembers => State::Unknown,
        }
    }

    /// Of the condition Ready.
    fn reason(self) -> &'static str {
        match self {
            Self::Ready => reasons::COMPONENTS_READY,
            Self::Terminating => reasons::TERMINATING,
            Self::Blocked(State::Failed) => reasons::COMPONENTS_FAILED,
            Self::Blocked(State::Missing) => reasons::COMPONENTS_MISSING,
            Self::Blocked(State::Terminating) => reasons::COMPONENTS_TERMINATING,
            Self::Blocked(_) => reasons::COMPONENTS_IN_PROGRESS,
            Self::Unknown => reasons::COMPONENTS_UNKNOWN,
            Self::NoMembers => reasons::NO_COMPONENTS,
        }
    }
}

/// `status.reason`: that of the worst member, or of a kind that cannot be read; `None` if ready.
pub(super) fn deciding_reason(app: &ApplicationState, feeds: &Feeds, readiness: Readiness) -> Option<String> {
    match readiness {
        Readiness::Ready => return None,
        Readiness::Terminating => return Some(readiness.reason().to_owned()),
        Readiness::Blocked(_) | Readiness::Unknown | Readiness::NoMembers => {}
    }
    let suspended = || app.members.in_state(State::Suspended).find(|(_, entry)| entry.blocks);
    let mut members = app.members.in_state(readiness.state()).peekable();
    let first = members.peek().copied();
    // A Service without endpoints is a symptom: its workload has the cause.
    let is_cause = |entry: &MemberEntry| entry.below != Some(Below::NoReadyEndpoints);
    let member = members.find(|(_, entry)| is_cause(entry)).or(first);
    let member =
        member.or_else(|| suspended().filter(|_| readiness == Readiness::Blocked(State::InProgress)));
    let of_member = member.map(|(member_id, _)| why(app, feeds, member_id).0.into_owned());
    let of_kind = || {
        let unresolved = unresolved(app, feeds);
        let (_, why) = unresolved.first().filter(|_| readiness == Readiness::Unknown)?;
        Some(why.reason().to_owned())
    };
    Some(of_member.or_else(of_kind).unwrap_or_else(|| readiness.reason().to_owned()))
}

/// The readiness of the health-check Pod, and why; `None` without a health check, and while Pods cannot be
/// read.
pub(super) fn health_check_readiness(app: &ApplicationState) -> Option<(ConditionStatus, Cow<'_, str>)> {
    app.spec.health_check.as_ref().and(app.check.pod.as_ref())?;
    match &app.check.ready {
        Some((status, message)) => Some((*status, Cow::Borrowed(message))),
        None => Some((ConditionStatus::Unknown, no_health_check_pod(app))),
    }
}

pub(super) fn ready<'a>(
    app: &'a ApplicationState,
    feeds: &'a Feeds,
    unresolved: Rc<[(GroupKind, Unresolved)]>,
) -> LazyStatement<'a> {
    let applications = GroupKind::bellwether("Application");
    let text = move |(member_id, entry): (MemberId, &MemberEntry)| {
        let (reason, message) = why(app, feeds, member_id);
        // Two Applications that contain each other must not quote each other's messages endlessly.
        let is_quoted = entry.kind != applications || matches!(member_id, MemberId::Placeholder(_));
        let text = match entry.state {
            _ if !is_quoted => format!("{} ({reason})", entry.state.name()),
            State::Failed => with_reason(&reason, &message).into_owned(),
            _ => message.into_owned(),
        };
        (format!("{}/{}:", entry.kind.kind, entry.name.name), text)
    };
    let check = move |wanted: ConditionStatus| {
        health_check_readiness(app)
            .filter(|(status, _)| *status == wanted)
            .map(|(_, message)| ("health check:".to_owned(), message.into_owned()))
    };
    let readiness = Readiness::of(app, unresolved.len());
    let reason = readiness.reason();
    match readiness {
        Readiness::Terminating => terminating(app, feeds),
        Readiness::Blocked(_) => LazyStatement::new(ConditionStatus::False, reason, move || {
            let blocking = || Readiness::BLOCKING.iter();
            let check = check(ConditionStatus::False);
            let count = blocking().map(|state| app.members.count(*state)).sum::<usize>()
                + app.members.blocking_suspended();
            let suspended = app.members.in_state(State::Suspended).filter(|(_, entry)| entry.blocks);
            let members =
                blocking().flat_map(|state| app.members.in_state(*state)).chain(suspended).map(text);
            let total = count + usize::from(check.is_some());
            message(check.into_iter().chain(members), total, MESSAGE_BUDGET)
        }),
        Readiness::Unknown => LazyStatement::new(ConditionStatus::Unknown, reason, move || {
            let check = check(ConditionStatus::Unknown);
            let total = app.members.count(State::Unknown) + unresolved.len() + usize::from(check.is_some());
            let kinds = unresolved.iter().map(|(kind, why)| (format!("{kind}:"), why.to_string()));
            let members = app.members.in_state(State::Unknown).map(text);
            message(kinds.chain(check).chain(members), total, MESSAGE_BUDGET)
        }),
        Readiness::NoMembers => LazyStatement::new(ConditionStatus::Unknown, reason, || no_members(app)),
        Readiness::Ready => {
            LazyStatement::new(ConditionStatus::True, reason, || match app.members.count(State::Suspended) {
                0 => "All components ready".to_owned(),
                suspended => format!("All components ready, {suspended} suspended"),
            })
        }
    }
}

fn no_health_check_pod(app: &ApplicationState) -> Cow<'static, str> {
    match app.check.validity {
        Validity::Denied(reason, _) => format!("Pod not created: {reason}").into(),
        Validity::Unknown | Validity::Valid | Validity::Invalid(_) => "Pod not found".into(),
    }
}

fn terminating<'a>(app: &'a ApplicationState, feeds: &'a Feeds) -> LazyStatement<'a> {
    LazyStatement::new(ConditionStatus::False, reasons::TERMINATING, || {
        group_state::deletion_message(feeds, &app.dialect().kind(), &app.name)
    })
}

fn no_members(app: &ApplicationState) -> String {
    let kinds: Vec<_> = app
        .kind_uses
        .iter()
        .filter(|(_, kind_use)| kind_use.allows_members)
        .map(|(kind, _)| kind.to_string())
        .collect();
    if kinds.is_empty() {
        return "no members: spec.componentKinds is empty".to_owned();
    }
    let which = format!(
        "in namespace {} matches selector {}",
        app.name.namespace,
        selector::text_of(&app.spec.selector)
    );
    message([(format!("no {}", kinds.join(" or ")), which)], 1, MESSAGE_BUDGET)
}
