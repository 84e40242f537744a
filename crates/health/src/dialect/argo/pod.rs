//! Argo CD's check of Pods.

use super::Health;
use crate::dialect::go::{self, Typed};

pub(super) fn pod(o: Typed<'_>) -> go::Result<Health> {
    let conditions = go::conditions(o)?;
    let containers: Vec<_> = o.list("status.containerStatuses")?.collect();
    let message = o.text("status.message")?;
    let restart_policy = o.text("spec.restartPolicy")?;
    let restarts = restart_policy == "Always" || ignores_restart_policy(o)?;

    // Other Pods are often hooks. Argo CD does not fail them for a waiting container.
    if restarts {
        let mut errors = Vec::new();
        for container in &containers {
            let waiting = container.at("state.waiting")?;
            if is_error(waiting.text("reason")?) {
                errors.push(waiting.text("message")?);
            }
        }
        if !errors.is_empty() {
            return Ok(Health::degraded(errors.join(", ")));
        }
    }

    let message = message.to_owned();
    Ok(match o.text("status.phase")? {
        "Pending" => Health::progressing(message),
        "Succeeded" => Health::healthy(message),
        "Failed" if message.is_empty() => Health::degraded(failure_message(o)?),
        "Failed" => Health::degraded(message),
        "Running" if restarts => {
            let ready = conditions.iter().find(|condition| condition.kind == "Ready");
            if ready.is_some_and(go::GoCondition::is_true) {
                Health::healthy(message)
            } else if was_restarted(&containers)? {
                Health::degraded(message)
            } else {
                Health::progressing(message)
            }
        }
        "Running" if matches!(restart_policy, "OnFailure" | "Never") => Health::progressing(message),
        _ => Health::unknown(message),
    })
}

/// Whether a waiting reason counts as an error.
fn is_error(reason: &str) -> bool {
    reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
}

fn was_restarted(containers: &[Typed<'_>]) -> go::Result<bool> {
    for container in containers {
        if container.at("lastState.terminated")?.exists()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The message of the first container that terminated with a message or an error.
fn failure_message(o: Typed<'_>) -> go::Result<String> {
    for container in o.list("status.initContainerStatuses")?.chain(o.list("status.containerStatuses")?) {
        let end = container.at("state.terminated")?;
        let message = end.text("message")?;
        if !message.is_empty() {
            return Ok(message.to_owned());
        }
        if end.text("reason")? == "OOMKilled" {
            return Ok("OOMKilled".to_owned());
        }
        let code = end.count("exitCode")?.unwrap_or(0);
        if code != 0 {
            let name = container.text("name")?;
            return Ok(format!("container {name:?} failed with exit code {code}"));
        }
    }
    Ok(String::new())
}

/// Whether an annotation opts in to the check for `restartPolicy: Always`. Not for hooks.
fn ignores_restart_policy(o: Typed<'_>) -> go::Result<bool> {
    let annotations = o.at("metadata.annotations")?;
    Ok(annotations.entry("argocd.argoproj.io/ignore-restart-policy")? == Some("true")
        && !is_hook(annotations)?)
}

/// Whether these annotations mark a hook of Argo CD or Helm.
fn is_hook(annotations: Typed<'_>) -> go::Result<bool> {
    if let Some(hook) = annotations.entry("argocd.argoproj.io/hook")? {
        // `Skip` excludes a manifest from syncs; it is not a hook.
        return Ok(hook.trim() != "Skip");
    }
    // Helm 2 marks CRDs with `crd-install`; they are not hooks.
    Ok(annotations.entry("helm.sh/hook")?.is_some_and(|hook| hook != "crd-install"))
}
