//! Makes the changes of a plan: all of them, or none.
//!
//! The Application is created last. Until then, no controller acts on the labels and annotations, so that
//! they can be removed again.

use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_engine::NamespacedName;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::{
    plan::{APPLICATIONS, Metadata, MetadataChange, MetadataField, ObjectChange, Plan},
    problem::Problem,
    server::{Mode, Server, ServerFailure, backoff},
};

/// Attempts at a change, because of conflicts and short outages.
const ATTEMPTS: u32 = 5;

#[derive(Debug)]
pub(super) struct AdoptError {
    pub(super) why: String,
    /// The number of changes that were undone.
    pub(super) undone: usize,
    /// A sentence for each change that could not be undone.
    pub(super) not_undone: Vec<String>,
    /// The commands that undo the creation of the Application.
    pub(super) next: Vec<String>,
    /// A signal ended it.
    pub(super) interrupted: bool,
}

struct FailedChange {
    why: String,
    /// The change may have been made: no response came.
    in_doubt: bool,
}

impl FailedChange {
    fn certainly(why: impl Into<String>) -> Self {
        Self { why: why.into(), in_doubt: false }
    }
}

/// Sends all changes to the API server as dry runs.
pub(super) async fn dry_run(server: &Server<'_>, plan: &Plan) -> Vec<Problem> {
    let mut problems = Vec::new();
    for step in plan.steps.iter().filter(|step| !step.changes.is_empty()) {
        // The resourceVersion may change until the real patch, the UID may not.
        let patch = step.patch(&json!({ "uid": step.metadata.uid }));
        let result = server.patch(&step.object, &patch, Mode::DryRun).await;
        problems.extend(dry_run_problem(result, &format!("change {}", step.object)));
    }
    if plan.creates {
        let result = server.create(&plan.application, &plan.manifest, Mode::DryRun).await;
        problems
            .extend(dry_run_problem(result, &format!("create Application {:?}", &*plan.application.name)));
    }
    problems
}

fn dry_run_problem(result: Result<(), ServerFailure>, change: &str) -> Option<Problem> {
    let why = match result.err()? {
        // If the webhook refuses the real change, all changes are undone.
        ServerFailure::DryRunUnsupported => return None,
        ServerFailure::Absent => "not found. Try again".to_owned(),
        ServerFailure::Exists => "another client has created it. Try again".to_owned(),
        ServerFailure::Conflict => "another client is changing it. Try again".to_owned(),
        ServerFailure::Refused(why) | ServerFailure::Unclear(why) => why,
    };
    Some(Problem::refusal(format!("cannot {change}: {why}")))
}

/// Makes all changes. After a failure or a signal, undoes those that were made.
pub(super) async fn carry_out(server: &Server<'_>, plan: &Plan, stop: &AtomicBool) -> Result<(), AdoptError> {
    let mut done = Vec::new();
    let mut failed = None;
    for step in plan.steps.iter().filter(|step| !step.changes.is_empty()) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match step.make(server).await {
            Ok(()) => done.push(step),
            Err(error) => {
                if error.in_doubt {
                    done.push(step);
                }
                let why = format!("cannot change {}: {}", step.object, error.why);
                failed = Some(FailedChange { why, ..error });
                break;
            }
        }
    }
    let interrupted = stop.load(Ordering::Relaxed) && failed.is_none();
    let mut created_in_doubt = false;
    if failed.is_none() && !interrupted {
        match create(server, plan).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                created_in_doubt = error.in_doubt;
                let why = format!("cannot create Application {:?}: {}", &*plan.application.name, error.why);
                failed = Some(FailedChange { why, ..error });
            }
        }
    }
    let (undone, mut not_undone) = undo(server, &done, &plan.kubectl_flags).await;
    // After the annotations are removed: deleting an Application deletes the objects that it owns.
    let mut next = Vec::new();
    if created_in_doubt && let Some(error) = delete_created(server, plan).await {
        not_undone.push(error);
        next = deletion(plan);
    }
    let why = failed.map_or_else(|| "interrupted".to_owned(), |failed| failed.why);
    Err(AdoptError { why, undone, not_undone, next, interrupted })
}

async fn create(server: &Server<'_>, plan: &Plan) -> Result<(), FailedChange> {
    if !plan.creates {
        return Ok(());
    }
    let mut last = FailedChange::certainly("");
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(backoff(attempt)).await;
        }
        match server.create(&plan.application, &plan.manifest, Mode::Real).await {
            Ok(()) => return Ok(()),
            // An earlier attempt may have created it, and its response was lost.
            Err(ServerFailure::Exists) => match server.application(&plan.application).await {
                Ok(existing)
                    if !existing.is_deleting
                        && existing.spec.as_ref().is_some_and(|spec| plan.equals(spec)) =>
                {
                    return Ok(());
                }
                Ok(_) => {
                    return Err(FailedChange::certainly(
                        "another client created an Application with this name",
                    ));
                }
                Err(ServerFailure::Absent) => {
                    last.why = String::from("another client keeps creating and deleting the Application");
                }
                Err(failure) => last = FailedChange { why: words(failure), in_doubt: true },
            },
            Err(ServerFailure::Unclear(why)) => last = FailedChange { why, in_doubt: true },
            Err(failure) => return Err(FailedChange { why: words(failure), ..last }),
        }
    }
    Err(last)
}

/// Deletes the Application if it was created without a response. Returns a sentence if that fails.
async fn delete_created(server: &Server<'_>, plan: &Plan) -> Option<String> {
    let name = &plan.application.name;
    match server.application(&plan.application).await {
        Err(ServerFailure::Absent) => None,
        Err(failure) => Some(format!(
            "unknown whether Application {name:?} was created: {}. If it exists, delete it",
            words(failure)
        )),
        Ok(existing) if !existing.spec.as_ref().is_some_and(|spec| plan.equals(spec)) => None,
        Ok(existing) => match server.delete_alone(&plan.application, &existing.uid).await {
            Ok(()) | Err(ServerFailure::Absent | ServerFailure::Conflict) => None,
            Err(failure) => Some(format!(
                "Application {name:?} was created and cannot be deleted: {}. Delete it",
                words(failure)
            )),
        },
    }
}

/// The kubectl commands that show and delete an Application, but not the objects that it owns.
fn deletion(plan: &Plan) -> Vec<String> {
    let (NamespacedName { namespace, name }, flags) = (&plan.application, &plan.kubectl_flags);
    vec![
        format!("kubectl get {APPLICATIONS}/{name} -n {namespace}{flags}"),
        format!("kubectl delete {APPLICATIONS}/{name} -n {namespace}{flags} --cascade=orphan"),
    ]
}

/// Undoes changes, the last first. Returns how many, and a sentence for each that could not be undone.
async fn undo(server: &Server<'_>, done: &[&ObjectChange], kubectl_flags: &str) -> (usize, Vec<String>) {
    let mut not_undone = Vec::new();
    let mut undone = 0;
    let mut attempts = ATTEMPTS;
    for step in done.iter().rev() {
        match step.undo(server, attempts).await {
            Ok(()) => undone += 1,
            Err(why) => {
                // The API server is probably down. Do not wait as long for the other objects.
                attempts = 1;
                not_undone.push(format!(
                    "cannot undo the change of {}: {why}. Run: {}",
                    step.object,
                    step.undo_commands(kubectl_flags)
                ));
            }
        }
    }
    (undone, not_undone)
}

fn words(failure: ServerFailure) -> String {
    match failure {
        ServerFailure::Absent => "not found".to_owned(),
        ServerFailure::Exists => "already exists".to_owned(),
        ServerFailure::Conflict => "another client keeps changing it".to_owned(),
        ServerFailure::DryRunUnsupported => "a webhook does not support dry runs".to_owned(),
        ServerFailure::Refused(why) | ServerFailure::Unclear(why) => why,
    }
}

impl ObjectChange {
    /// Patches the object. Fails if another client has changed the labels or annotations since the plan was
    /// made.
    async fn make(&self, server: &Server<'_>) -> Result<(), FailedChange> {
        let mut metadata = self.metadata.clone();
        let mut last = FailedChange::certainly("");
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                sleep(backoff(attempt)).await;
                metadata = match server.metadata(&self.object).await {
                    Ok(metadata) => metadata,
                    Err(ServerFailure::Absent) => {
                        return Err(FailedChange::certainly(words(ServerFailure::Absent)));
                    }
                    Err(failure) => {
                        last.why = words(failure);
                        continue;
                    }
                };
                if metadata.uid != self.metadata.uid {
                    return Err(FailedChange::certainly(words(ServerFailure::Absent)));
                }
                if self.changes.iter().all(|change| change.is_made(&metadata)) {
                    return Ok(());
                }
                let is_stale =
                    |change: &&MetadataChange| change.value_in(&metadata) != change.before.as_deref();
                if let Some(change) = self.changes.iter().find(is_stale) {
                    let why = format!("another client has changed {}", change.key);
                    return Err(FailedChange { why, ..last });
                }
            }
            let patch = self.patch(&preconditions(&metadata));
            match server.patch(&self.object, &patch, Mode::Real).await {
                Ok(()) => return Ok(()),
                Err(ServerFailure::Absent) => {
                    return Err(FailedChange::certainly(words(ServerFailure::Absent)));
                }
                Err(ServerFailure::Unclear(why)) => last = FailedChange { why, in_doubt: true },
                Err(
                    failure @ (ServerFailure::Conflict
                    | ServerFailure::Exists
                    | ServerFailure::DryRunUnsupported),
                ) => {
                    last.why = words(failure);
                }
                Err(ServerFailure::Refused(why)) => return Err(FailedChange { why, ..last }),
            }
        }
        Err(last)
    }

    /// Restores the labels and annotations that no other client has changed since.
    async fn undo(&self, server: &Server<'_>, attempts: u32) -> Result<(), String> {
        let mut last = String::new();
        for attempt in 0..attempts {
            if attempt > 0 {
                sleep(backoff(attempt)).await;
            }
            let metadata = match server.metadata(&self.object).await {
                Ok(metadata) => metadata,
                Err(ServerFailure::Absent) => return Ok(()),
                Err(failure) => {
                    last = words(failure);
                    continue;
                }
            };
            let made: Vec<_> = self.changes.iter().filter(|change| change.is_made(&metadata)).collect();
            if metadata.uid != self.metadata.uid || made.is_empty() {
                return Ok(());
            }
            let restored = made.into_iter().map(|change| (change, change.before.as_deref()));
            let patch = patch(&preconditions(&metadata), restored);
            match server.patch(&self.object, &patch, Mode::Real).await {
                Ok(()) | Err(ServerFailure::Absent) => return Ok(()),
                Err(ServerFailure::Refused(why)) => return Err(why),
                Err(failure) => last = words(failure),
            }
        }
        Err(last)
    }

    fn patch(&self, preconditions: &Value) -> Value {
        patch(preconditions, self.changes.iter().map(|change| (change, Some(change.after.as_str()))))
    }

    /// The kubectl commands that restore the labels and annotations.
    fn undo_commands(&self, flags: &str) -> String {
        let word = |change: &MetadataChange| match &change.before {
            Some(before) => format!(" {}={before} --overwrite", change.key),
            None => format!(" {}-", change.key),
        };
        let command = |verb: &str, field: MetadataField| {
            let words: String =
                self.changes.iter().filter(|change| change.field == field).map(word).collect();
            let (object, namespace) = (self.object.for_kubectl(), &self.object.name.namespace);
            (!words.is_empty()).then(|| format!("kubectl {verb} {object} -n {namespace}{flags}{words}"))
        };
        let commands =
            [command("label", MetadataField::Labels), command("annotate", MetadataField::Annotations)];
        commands.into_iter().flatten().collect::<Vec<_>>().join(" && ")
    }
}

impl MetadataChange {
    fn value_in<'m>(&self, metadata: &'m Metadata) -> Option<&'m str> {
        let values = match self.field {
            MetadataField::Labels => &metadata.labels,
            MetadataField::Annotations => &metadata.annotations,
        };
        values.get(&self.key).map(String::as_str)
    }

    fn is_made(&self, metadata: &Metadata) -> bool {
        self.value_in(metadata) == Some(&self.after)
    }
}

/// UID and resourceVersion in a patch make the API server refuse it for another object or version.
fn preconditions(metadata: &Metadata) -> Value {
    json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version })
}

/// A merge patch that sets labels and annotations, and removes those without a value.
fn patch<'m>(
    preconditions: &Value,
    changes: impl Iterator<Item = (&'m MetadataChange, Option<&'m str>)>,
) -> Value {
    let (mut labels, mut annotations) = (Map::new(), Map::new());
    for (change, value) in changes {
        let values = match change.field {
            MetadataField::Labels => &mut labels,
            MetadataField::Annotations => &mut annotations,
        };
        values.insert(change.key.clone(), json!(value));
    }
    let mut metadata = preconditions.clone();
    for (name, values) in [("labels", labels), ("annotations", annotations)] {
        if !values.is_empty() {
            metadata[name] = Value::Object(values);
        }
    }
    json!({ "metadata": metadata })
}
