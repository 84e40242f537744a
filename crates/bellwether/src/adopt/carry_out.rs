//! A plan, carried out: all of it, or nothing.
//!
//! The Application comes last. Whatever fails before it, nothing owns anything yet, and what was done to objects can be
//! undone without anybody having acted on it.

use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_engine::NamespacedName;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::{
    plan::{Mark, MarkTarget, Marks, ObjectChange, Plan},
    problem::Problem,
    server::{Mode, Server, ServerFailure, pause},
};

/// How often a change is tried: others may write to the same object at the same moment, and servers be away for one.
const TRIES: u32 = 5;

/// How it ended, if not well.
#[derive(Debug)]
pub(super) struct AdoptError {
    /// What failed.
    pub(super) why: String,
    /// How many changes were undone.
    pub(super) count: usize,
    /// What could not be undone, and how to do it by hand.
    pub(super) left: Vec<String>,
    /// Whether it was somebody's wish.
    pub(super) interrupted: bool,
}

/// A change that was not made.
struct FailedChange {
    why: String,
    /// Whether it may have been made all the same.
    in_doubt: bool,
}

impl FailedChange {
    fn certainly(why: impl Into<String>) -> Self {
        Self { why: why.into(), in_doubt: false }
    }
}

/// Asks the API server whether it would do all of it, without doing it.
pub(super) async fn try_out(server: &Server<'_>, plan: &Plan) -> Vec<Problem> {
    let mut problems = Vec::new();
    for step in plan.steps.iter().filter(|step| !step.changes.is_empty()) {
        // The version may be another by the time that it is done for real; the object may not.
        let patch = step.patch(&json!({ "uid": step.marks.uid }));
        let tried = server.patch(&step.object, &patch, Mode::DryRun).await;
        problems.extend(objection(tried, &step.object.to_string(), "changed"));
    }
    if plan.creates {
        let tried = server.create(&plan.application, &plan.manifest, Mode::DryRun).await;
        let what = format!("Application {:?}", &*plan.application.name);
        problems.extend(objection(tried, &what, "created"));
    }
    problems
}

/// What speaks against a change that was tried out.
fn objection(tried: Result<(), ServerFailure>, what: &str, done: &str) -> Option<Problem> {
    let why = match tried.err()? {
        // A webhook that cannot be tried says nothing about the change; if it refuses it for real, all of it is undone.
        ServerFailure::Untried => return None,
        ServerFailure::Absent => "it is not there any more: try again".to_owned(),
        ServerFailure::Exists => "somebody else has created it in the meantime: try again".to_owned(),
        ServerFailure::Conflict => "somebody else changes it at this moment: try again".to_owned(),
        ServerFailure::Refused(why) | ServerFailure::Unclear(why) => why,
    };
    Some(Problem::refusal(format!("{what} cannot be {done}: {why}")))
}

/// Does all of it; if that fails, or somebody wants it to stop, undoes what was done.
pub(super) async fn carry_out(server: &Server<'_>, plan: &Plan, stop: &AtomicBool) -> Result<(), AdoptError> {
    let mut done = Vec::new();
    let mut missed = None;
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
                missed = Some(FailedChange {
                    why: format!("{} was not changed: {}", step.object, error.why),
                    ..error
                });
                break;
            }
        }
    }
    let interrupted = stop.load(Ordering::Relaxed) && missed.is_none();
    let mut created_in_doubt = false;
    if missed.is_none() && !interrupted {
        match create(server, plan).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                created_in_doubt = error.in_doubt;
                let why = format!("Application {:?} was not created: {}", &*plan.application.name, error.why);
                missed = Some(FailedChange { why, ..error });
            }
        }
    }
    let (count, mut left) = undo(server, &done).await;
    // Only now that nothing is annotated for it any more: an Application takes what it owns with it.
    if created_in_doubt {
        left.extend(take_back(server, plan).await);
    }
    let why = missed.map_or_else(|| "it was interrupted".to_owned(), |missed| missed.why);
    Err(AdoptError { why, count, left, interrupted })
}

/// Creates the Application.
async fn create(server: &Server<'_>, plan: &Plan) -> Result<(), FailedChange> {
    if !plan.creates {
        return Ok(());
    }
    let mut last = FailedChange::certainly("");
    for again in 0..TRIES {
        if again > 0 {
            sleep(pause(again)).await;
        }
        match server.create(&plan.application, &plan.manifest, Mode::Real).await {
            Ok(()) => return Ok(()),
            // That may have been us, if an answer was lost; and if it was not, it is the same.
            Err(ServerFailure::Exists) => match server.application(&plan.application).await {
                Ok(existing)
                    if !existing.is_deleted
                        && existing.spec.as_ref().is_some_and(|spec| plan.is_named_by(spec)) =>
                {
                    return Ok(());
                }
                Ok(_) => {
                    return Err(FailedChange::certainly(
                        "somebody else has created another one of this name",
                    ));
                }
                Err(ServerFailure::Absent) => {
                    last.why = String::from("somebody else creates and deletes it");
                }
                Err(failure) => last = FailedChange { why: words(failure), in_doubt: true },
            },
            Err(ServerFailure::Unclear(why)) => last = FailedChange { why, in_doubt: true },
            Err(failure) => return Err(FailedChange { why: words(failure), ..last }),
        }
    }
    Err(last)
}

/// Looks whether the Application is there after all, and deletes it, without what it may own. Says what is left to do.
async fn take_back(server: &Server<'_>, plan: &Plan) -> Option<String> {
    let NamespacedName { namespace, name } = &plan.application;
    let by_hand = |what: &str, why: &str| {
        format!(
            "{what} ({why}): look with kubectl get application/{name} -n {namespace}, and delete it with kubectl delete \
             application/{name} -n {namespace} --cascade=orphan"
        )
    };
    let unknown = format!("whether Application {name:?} was created is not known");
    match server.application(&plan.application).await {
        Err(ServerFailure::Absent) => None,
        Err(failure) => Some(by_hand(&unknown, &words(failure))),
        Ok(existing) if !existing.spec.as_ref().is_some_and(|spec| plan.is_named_by(spec)) => None,
        Ok(existing) => match server.delete_alone(&plan.application, &existing.uid).await {
            Ok(()) | Err(ServerFailure::Absent | ServerFailure::Conflict) => None,
            Err(failure) => {
                let there = format!("Application {name:?} was created, and cannot be deleted");
                Some(by_hand(&there, &words(failure)))
            }
        },
    }
}

/// Undoes what was done, the last first. Gives back how much was, and what is left to do by hand.
async fn undo(server: &Server<'_>, done: &[&ObjectChange]) -> (usize, Vec<String>) {
    let mut left = Vec::new();
    let mut count = 0;
    let mut tries = TRIES;
    for step in done.iter().rev() {
        match step.undo(server, tries).await {
            Ok(()) => count += 1,
            Err(why) => {
                // Who does not answer for one is not waited for as long for the others.
                tries = 1;
                left.push(format!(
                    "{} could not be put back ({why}): do it with {}",
                    step.object,
                    step.undone_by_hand()
                ));
            }
        }
    }
    (count, left)
}

fn words(failure: ServerFailure) -> String {
    match failure {
        ServerFailure::Absent => "it is gone".to_owned(),
        ServerFailure::Exists => "there is one of this name".to_owned(),
        ServerFailure::Conflict => "somebody else keeps changing it".to_owned(),
        ServerFailure::Untried => "it was only tried".to_owned(),
        ServerFailure::Refused(why) | ServerFailure::Unclear(why) => why,
    }
}

impl ObjectChange {
    /// Changes the object, if it is still as it was.
    async fn make(&self, server: &Server<'_>) -> Result<(), FailedChange> {
        let mut marks = self.marks.clone();
        let mut last = FailedChange::certainly("");
        for again in 0..TRIES {
            if again > 0 {
                sleep(pause(again)).await;
                marks = match server.marks(&self.object).await {
                    Ok(marks) => marks,
                    Err(ServerFailure::Absent) => {
                        return Err(FailedChange::certainly(words(ServerFailure::Absent)));
                    }
                    Err(failure) => {
                        last.why = words(failure);
                        continue;
                    }
                };
                if marks.uid != self.marks.uid {
                    return Err(FailedChange::certainly(words(ServerFailure::Absent)));
                }
                if self.changes.iter().all(|mark| mark.is_made(&marks)) {
                    return Ok(());
                }
                if let Some(mark) = self.changes.iter().find(|mark| mark.of(&marks) != mark.before.as_deref())
                {
                    let why = format!("somebody else has changed its {} in the meantime", mark.key);
                    return Err(FailedChange { why, ..last });
                }
            }
            let patch = self.patch(&guard(&marks));
            match server.patch(&self.object, &patch, Mode::Real).await {
                Ok(()) => return Ok(()),
                Err(ServerFailure::Absent) => {
                    return Err(FailedChange::certainly(words(ServerFailure::Absent)));
                }
                Err(ServerFailure::Unclear(why)) => last = FailedChange { why, in_doubt: true },
                Err(failure @ (ServerFailure::Conflict | ServerFailure::Exists | ServerFailure::Untried)) => {
                    last.why = words(failure);
                }
                Err(ServerFailure::Refused(why)) => return Err(FailedChange { why, ..last }),
            }
        }
        Err(last)
    }

    /// Puts back what is still as it was left.
    async fn undo(&self, server: &Server<'_>, tries: u32) -> Result<(), String> {
        let mut last = String::new();
        for again in 0..tries {
            if again > 0 {
                sleep(pause(again)).await;
            }
            let marks = match server.marks(&self.object).await {
                Ok(marks) => marks,
                Err(ServerFailure::Absent) => return Ok(()),
                Err(failure) => {
                    last = words(failure);
                    continue;
                }
            };
            let still: Vec<_> = self.changes.iter().filter(|mark| mark.is_made(&marks)).collect();
            if marks.uid != self.marks.uid || still.is_empty() {
                return Ok(());
            }
            let back = still.into_iter().map(|mark| (mark, mark.before.as_deref()));
            match server.patch(&self.object, &patch(&guard(&marks), back), Mode::Real).await {
                Ok(()) | Err(ServerFailure::Absent) => return Ok(()),
                Err(ServerFailure::Refused(why)) => return Err(why),
                Err(failure) => last = words(failure),
            }
        }
        Err(last)
    }

    /// The patch that makes the changes, if these metadata are the object's.
    fn patch(&self, guard: &Value) -> Value {
        patch(guard, self.changes.iter().map(|mark| (mark, Some(mark.after.as_str()))))
    }

    /// The command that puts back what was there before.
    fn undone_by_hand(&self) -> String {
        let word = |mark: &Mark| match &mark.before {
            Some(before) => format!(" {}={before} --overwrite", mark.key),
            None => format!(" {}-", mark.key),
        };
        let command = |verb: &str, place: MarkTarget| {
            let words: String = self.changes.iter().filter(|mark| mark.place == place).map(word).collect();
            let (object, namespace) = (self.object.for_kubectl(), &self.object.name.namespace);
            (!words.is_empty()).then(|| format!("kubectl {verb} {object} -n {namespace}{words}"))
        };
        let commands = [command("label", MarkTarget::Labels), command("annotate", MarkTarget::Annotations)];
        commands.into_iter().flatten().collect::<Vec<_>>().join(" && ")
    }
}

impl Mark {
    /// What the object has in its place.
    fn of<'m>(&self, marks: &'m Marks) -> Option<&'m str> {
        let all = match self.place {
            MarkTarget::Labels => &marks.labels,
            MarkTarget::Annotations => &marks.annotations,
        };
        all.get(&self.key).map(String::as_str)
    }

    fn is_made(&self, marks: &Marks) -> bool {
        self.of(marks) == Some(&self.after)
    }
}

/// What must be so for a patch to be made.
fn guard(marks: &Marks) -> Value {
    json!({ "uid": marks.uid, "resourceVersion": marks.resource_version })
}

/// A patch that sets marks, or takes them away where there shall be none.
fn patch<'m>(guard: &Value, marks: impl Iterator<Item = (&'m Mark, Option<&'m str>)>) -> Value {
    let (mut labels, mut annotations) = (Map::new(), Map::new());
    for (mark, value) in marks {
        let all = match mark.place {
            MarkTarget::Labels => &mut labels,
            MarkTarget::Annotations => &mut annotations,
        };
        all.insert(mark.key.clone(), json!(value));
    }
    let mut metadata = guard.clone();
    for (name, marks) in [("labels", labels), ("annotations", annotations)] {
        if !marks.is_empty() {
            metadata[name] = Value::Object(marks);
        }
    }
    json!({ "metadata": metadata })
}
