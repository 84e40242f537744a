//! `bellwether adopt`: an Application for objects that exist already.
//!
//! Everything is read and checked, and tried out on the API server, before the first change; the changes are made all or
//! none.

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
use bellwether_inspect::observe::{GroupQuery, Notes, Observation, ObservedCluster};
use bellwether_model::Object;
use bellwether_terminal::Screen;

use self::{
    carry_out::{AdoptError, carry_out, try_out},
    plan::{Existing, Marks, Plan, RequestedObject},
    problem::Problem,
    render::Others,
    request::AdoptRequest,
    server::Server,
};
use crate::{
    cli::{Adopt, ExplainFormat},
    output::{BAD_INPUT, Outcome, as_json, as_yaml, print},
    signals::{INTERRUPTED, Stop},
};

pub(crate) fn run(command: &Adopt, screen: Screen) -> Result<Outcome> {
    if !command.scene.place.from.is_empty() && !command.dry_run {
        let way_out = "files are not changed: add --dry-run, or leave --from out to change a cluster";
        return Ok(Outcome::bad_input(way_out.to_owned()));
    }
    let meant = GroupQuery::All { all_namespaces: false };
    let sight = match Observation::at(&command.scene.place(), command.scene.now(), meant) {
        Ok(sight) => sight,
        Err(error) => return Ok(Outcome::bad_input(format!("{error:#}"))),
    };
    let plan = match plan(command, &sight) {
        Ok(plan) => plan,
        Err(problems) => {
            // What could not be read may be what is missing.
            let unread = sight.remarks.problems.into_iter().map(Problem::input);
            return Ok(refused(unread.chain(problems).collect()));
        }
    };
    if plan.is_done() {
        return nothing_to_do(&plan, command);
    }
    let server = sight.cluster().map(|cluster| (cluster, server(cluster)));
    if let Some((cluster, server)) = &server {
        let problems = cluster.runtime().block_on(try_out(server, &plan));
        if !problems.is_empty() {
            return Ok(refused(problems));
        }
    }
    let others = others(&plan, &sight)?;
    let told = plan.told(&others, screen);
    let Some((cluster, server)) = server.filter(|_| !command.dry_run) else {
        let text = manifest(&plan, command)?.unwrap_or(told);
        let Notes { problems, notes, .. } = sight.remarks;
        let code = if problems.is_empty() { 0 } else { BAD_INPUT };
        return Ok(Outcome { text, errors: problems, notes, code });
    };
    if !goes_on(&told, command)? {
        return Ok(Outcome { text: "Nothing was changed.\n".to_owned(), code: 1, ..Outcome::default() });
    }
    let ended = cluster.runtime().block_on(async {
        let stop = listen()?;
        anyhow::Ok(carry_out(&server, &plan, &stop).await)
    })?;
    match ended {
        Ok(()) => Ok(manifest(&plan, command)?.unwrap_or_else(|| done(&plan, command)).into()),
        Err(undone) => Ok(failed(undone)),
    }
}

fn server(cluster: &ObservedCluster) -> Server<'_> {
    Server { client: cluster.client(), glance: cluster.glance() }
}

/// Reads all that is needed, and says what is to be done, or all that speaks against it.
fn plan(command: &Adopt, sight: &Observation) -> Result<Plan, Vec<Problem>> {
    let wish = AdoptRequest::of(command, sight.namespace());
    let mut problems: Vec<_> = wish.as_ref().err().into_iter().flatten().cloned().collect();
    let application = GroupKind::own("Application");
    if let Some(cluster) = sight.cluster()
        && cluster.glance().served(&application).is_none()
    {
        problems.push(Problem::refusal(
            "the cluster does not know Applications yet: install them with bellwether crds | kubectl apply --server-side \
             -f -"
                .to_owned(),
        ));
    }
    let mut sought = Vec::new();
    let mut named = BTreeSet::new();
    for word in &command.objects {
        match seek(word, sight) {
            Ok(object) if !named.insert((object.kind.clone(), object.name.clone())) => {}
            Ok(object) => sought.push(object),
            Err(error) => problems.push(Problem::input(format!("{error:#}"))),
        }
    }
    let Ok(wish) = wish else { return Err(problems) };
    let existing = match existing(&application, &wish.application, sight) {
        Ok(existing) => existing,
        Err(error) => {
            problems.push(Problem::input(format!("{error:#}")));
            None
        }
    };
    match Plan::make(&wish, sought, existing.as_ref(), &sight.whereabouts()) {
        Ok(plan) if problems.is_empty() => Ok(plan),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// The object that a person means, as it is.
fn seek(word: &str, sight: &Observation) -> Result<RequestedObject> {
    let (kind, mut name) = sight.object_named(word)?;
    // Files may have one of that name elsewhere: members are where their Application is.
    if !name.namespace.is_empty() {
        name.namespace = sight.namespace().into();
    }
    // What is in no namespace is refused anyway.
    let marks =
        if name.namespace.is_empty() { None } else { sight.with(&kind, &name, &Marks::of)?.flatten() };
    Ok(RequestedObject { kind, name, marks })
}

fn existing(kind: &GroupKind, name: &NamespacedName, sight: &Observation) -> Result<Option<Existing>> {
    let whole = |object: &Object<'_>| serde_json::to_value(object.fields()).unwrap_or_default();
    Ok(sight.with(kind, name, &whole)?.map(Existing::of_json))
}

/// The objects that will be counted besides.
fn others(plan: &Plan, sight: &Observation) -> Result<Others> {
    let kinds: Vec<_> = plan.kinds().into_iter().collect();
    let listed = sight.listed(&kinds, false)?;
    let unknown = listed.unreadable.into_iter().map(|(kind, why)| format!("{kind} cannot be listed, {why}"));
    let mut others = Others { unknown: unknown.collect(), ..Others::default() };
    for object in &listed.objects {
        others.see(plan, object);
    }
    Ok(others)
}

/// Shows what is to be done, and asks whether it shall be, where there is somebody to ask.
fn goes_on(told: &str, command: &Adopt) -> Result<bool> {
    let asks = !command.yes && stdin().is_terminal();
    let mut stderr = stderr().lock();
    // Where data is wanted, the plan is beside it.
    if command.output == ExplainFormat::Text {
        print(told)?;
    } else {
        stderr.write_all(told.as_bytes())?;
    }
    if !asks {
        return Ok(true);
    }
    write!(stderr, "Go on? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// From now on, whoever wants the process to end is heard, and waits until it can.
fn listen() -> Result<Arc<AtomicBool>> {
    let mut asked = Stop::listen()?;
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    tokio::spawn(async move {
        asked.asked().await;
        heard.store(true, Ordering::Relaxed);
        // They wait, and want to know that they were heard. Nobody is left to tell when standard error is closed.
        let _ = writeln!(stderr(), "Interrupted: what is under way is finished or undone first.");
    });
    Ok(stop)
}

/// The Application for programs, if that is wanted.
fn manifest(plan: &Plan, command: &Adopt) -> Result<Option<String>> {
    match command.output {
        ExplainFormat::Text => Ok(None),
        ExplainFormat::Json => as_json(&plan.manifest).map(Some),
        ExplainFormat::Yaml => as_yaml(&plan.manifest).map(Some),
    }
}

fn nothing_to_do(plan: &Plan, command: &Adopt) -> Result<Outcome> {
    let said = format!("Nothing to do: Application {} has these objects already.\n", plan.application);
    Ok(manifest(plan, command)?.unwrap_or(said).into())
}

fn done(plan: &Plan, command: &Adopt) -> String {
    let NamespacedName { namespace, name } = &plan.application;
    let objects = if plan.steps.len() == 1 { "object" } else { "objects" };
    let verb = if plan.creates { "was created and has" } else { "has" };
    format!(
        "\nApplication {namespace}/{name} {verb} {} {objects}.\nNext: bellwether wait {name} -n {namespace}{}\n",
        plan.steps.len(),
        command.scene.place().flags().own,
    )
}

fn failed(undone: AdoptError) -> Outcome {
    let AdoptError { why, count, left, interrupted } = undone;
    let changes = if count == 1 { "change" } else { "changes" };
    let then = match (count, left.len()) {
        (0, 0) => "nothing had been changed".to_owned(),
        (count, 0) => format!("all that was done, {count} {changes}, was undone"),
        (0, _) => "what was done could not be undone".to_owned(),
        (count, _) => format!("of what was done, {count} {changes} could be undone, and others could not"),
    };
    let errors = [format!("{why}; {then}")].into_iter().chain(left).collect();
    Outcome { errors, code: if interrupted { INTERRUPTED } else { 1 }, ..Outcome::default() }
}

fn refused(problems: Vec<Problem>) -> Outcome {
    let code = if problems.iter().any(|problem| problem.is_input) { BAD_INPUT } else { 1 };
    let errors = problems.into_iter().map(|problem| problem.text).collect();
    Outcome { errors, code, ..Outcome::default() }
}
