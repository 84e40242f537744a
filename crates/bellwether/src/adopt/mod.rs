//! `bellwether adopt`: creates an Application that owns existing objects.
//!
//! All changes are checked, with a dry run on the API server, before the first is made. If one fails, those
//! before it are undone.

mod carry_out;
mod plan;
mod problem;
mod render;
mod request;
mod server;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    io::{IsTerminal as _, Write as _, stderr, stdin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_inspect::{
    observe::{GroupQuery, Notes, Observation, ObservedCluster, crds_not_installed},
    shell::program,
};
use bellwether_model::Object;
use bellwether_terminal::Screen;

use self::{
    carry_out::{AdoptError, carry_out, dry_run},
    plan::{Existing, Metadata, Plan, RequestedObject},
    problem::Problem,
    render::Others,
    request::AdoptRequest,
    server::Server,
};
use crate::{
    cli::{Adopt, ObjectFormat},
    output::{BAD_INPUT, Outcome, as_json, as_yaml, print},
    signals::{INTERRUPTED, Stop},
};

pub(crate) fn run(command: &Adopt, screen: Screen) -> Result<Outcome> {
    if !command.input.location.from.is_empty() && !command.dry_run {
        return Ok(Outcome::bad_input("--from requires --dry-run: files are not changed".to_owned()));
    }
    let query = GroupQuery::All { all_namespaces: false };
    let observation = match Observation::connect(&command.input.location(), command.input.now(), query) {
        Ok(observation) => observation,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let plan = match plan(command, &observation) {
        Ok(plan) => plan,
        Err(problems) => {
            // An object that is not found may be in a file that could not be read.
            let unreadable = observation.notes.problems.into_iter().map(Problem::input);
            return Ok(refused(unreadable.chain(problems).collect()));
        }
    };
    if plan.is_done() {
        return no_changes(&plan, command);
    }
    let server = observation.cluster().map(|cluster| (cluster, server(cluster)));
    if let Some((cluster, server)) = &server {
        let problems = cluster.runtime().block_on(dry_run(server, &plan));
        if !problems.is_empty() {
            return Ok(refused(problems));
        }
    }
    let others = others(&plan, &observation)?;
    let plan_text = plan.text(&others, screen);
    let Some((cluster, server)) = server.filter(|_| !command.dry_run) else {
        let text = manifest(&plan, command)?.unwrap_or(plan_text);
        let Notes { problems, notes, .. } = observation.notes;
        let code = if problems.is_empty() { 0 } else { BAD_INPUT };
        return Ok(Outcome { text, errors: problems, notes, code, ..Outcome::default() });
    };
    if !confirm(&plan_text, command)? {
        return Ok(Outcome { text: "No changes made.\n".to_owned(), code: 1, ..Outcome::default() });
    }
    let ended = cluster.runtime().block_on(async {
        let stop = stop_on_signal()?;
        anyhow::Ok(carry_out(&server, &plan, &stop).await)
    })?;
    match ended {
        Ok(()) => Ok(manifest(&plan, command)?.unwrap_or_else(|| done(&plan, command)).into()),
        Err(error) => Ok(failed(error)),
    }
}

fn server(cluster: &ObservedCluster) -> Server<'_> {
    Server { client: cluster.client(), snapshot: cluster.snapshot() }
}

/// Reads the objects and plans their changes. Returns all problems at once.
fn plan(command: &Adopt, observation: &Observation) -> Result<Plan, Vec<Problem>> {
    let request = AdoptRequest::of(command, observation.namespace());
    let mut problems: Vec<_> = request.as_ref().err().into_iter().flatten().cloned().collect();
    let application = GroupKind::bellwether("Application");
    if let Some(cluster) = observation.cluster()
        && cluster.snapshot().served(&application).is_none()
    {
        problems.push(Problem::refusal(crds_not_installed()));
    }
    let mut objects = Vec::new();
    let mut named = BTreeSet::new();
    for word in &command.objects {
        match read_object(word, observation) {
            Ok(object) if !named.insert((object.kind.clone(), object.name.clone())) => {}
            Ok(object) => objects.push(object),
            Err(error) => problems.push(Problem::input(format!("{error:#}"))),
        }
    }
    let Ok(request) = request else { return Err(problems) };
    let existing = match existing(&application, &request.application, observation) {
        Ok(existing) => existing,
        Err(error) => {
            problems.push(Problem::input(format!("{error:#}")));
            None
        }
    };
    match Plan::make(&request, objects, existing.as_ref(), &observation.whereabouts()) {
        Ok(plan) if problems.is_empty() => Ok(plan),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

fn read_object(word: &str, observation: &Observation) -> Result<RequestedObject> {
    let (kind, mut name) = observation.object_named(word)?;
    // In files, the name may be found in another namespace. Members are in the namespace of the Application.
    if !name.namespace.is_empty() {
        name.namespace = observation.namespace().into();
    }
    // The plan refuses cluster-scoped objects.
    let metadata = if name.namespace.is_empty() {
        None
    } else {
        observation.with(&kind, &name, &Metadata::of)?.flatten()
    };
    Ok(RequestedObject { kind, name, metadata })
}

fn existing(kind: &GroupKind, name: &NamespacedName, observation: &Observation) -> Result<Option<Existing>> {
    let whole = |object: &Object<'_>| serde_json::to_value(object.fields()).unwrap_or_default();
    Ok(observation.with(kind, name, &whole)?.map(Existing::of_json))
}

/// The other objects of the same kinds that match the selector.
fn others(plan: &Plan, observation: &Observation) -> Result<Others> {
    let kinds: Vec<_> = plan.kinds().into_iter().collect();
    let listed = observation.listed(&kinds, false)?;
    let unknown = listed.unreadable.iter().map(|(kind, why)| observation.cannot_list(kind, why, false));
    let mut others = Others { unknown: unknown.collect(), ..Others::default() };
    for object in &listed.objects {
        others.add(plan, object);
    }
    Ok(others)
}

/// Prints the plan and asks for confirmation, if stdin is a terminal.
fn confirm(plan_text: &str, command: &Adopt) -> Result<bool> {
    let asks = !command.yes && stdin().is_terminal();
    let mut stderr = stderr().lock();
    // With -o json and yaml, stdout is for the manifest.
    if command.output == ObjectFormat::Text {
        print(plan_text)?;
    } else {
        stderr.write_all(plan_text.as_bytes())?;
    }
    if !asks {
        return Ok(true);
    }
    write!(stderr, "Apply these changes? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A flag that a signal sets. The process ends when no change is in flight.
fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let mut signals = Stop::listen()?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    tokio::spawn(async move {
        signals.asked().await;
        flag.store(true, Ordering::Relaxed);
        // If stderr is closed, there is nowhere to report that.
        let _ = writeln!(stderr(), "Interrupted: finishing the current change, then undoing all changes.");
    });
    Ok(stop)
}

/// None for text output.
fn manifest(plan: &Plan, command: &Adopt) -> Result<Option<String>> {
    match command.output {
        ObjectFormat::Text => Ok(None),
        ObjectFormat::Json => as_json(&plan.manifest).map(Some),
        ObjectFormat::Yaml => as_yaml(&plan.manifest).map(Some),
    }
}

fn no_changes(plan: &Plan, command: &Adopt) -> Result<Outcome> {
    let text = format!("No changes: Application {} already has these objects.\n", plan.application);
    Ok(manifest(plan, command)?.unwrap_or(text).into())
}

fn done(plan: &Plan, command: &Adopt) -> String {
    let NamespacedName { namespace, name } = &plan.application;
    let count = plan.steps.len();
    let objects = if count == 1 { "object" } else { "objects" };
    let done = if plan.creates {
        format!("Application {namespace}/{name} created with {count} {objects}.")
    } else {
        format!("{count} {objects} added to Application {namespace}/{name}.")
    };
    let flags = command.input.location().flags().own;
    format!("\n{done}\nNext:\n  {} wait {name} -n {namespace}{flags}\n", program())
}

fn failed(error: AdoptError) -> Outcome {
    let AdoptError { why, undone, not_undone, next, interrupted } = error;
    let changes = if undone == 1 { "change" } else { "changes" };
    let result = match (undone, not_undone.len()) {
        (0, 0) => "no changes made".to_owned(),
        (undone, 0) => format!("{undone} {changes} undone"),
        (0, _) => "changes could not be undone".to_owned(),
        (undone, _) => format!("{undone} {changes} undone, others could not be undone"),
    };
    let errors = [format!("{why}; {result}")].into_iter().chain(not_undone).collect();
    Outcome { errors, next, code: if interrupted { INTERRUPTED } else { 1 }, ..Outcome::default() }
}

fn refused(problems: Vec<Problem>) -> Outcome {
    let code = if problems.iter().any(|problem| problem.is_input) { BAD_INPUT } else { 1 };
    let errors = problems.into_iter().map(|problem| problem.text).collect();
    Outcome { errors, code, ..Outcome::default() }
}
