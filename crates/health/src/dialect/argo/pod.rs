//! What Argo CD knows of Pods.

use super::Health;
use crate::dialect::go::{self, Typed};

pub(super) fn pod(o: Typed<'_>) -> go::Result<Health> {
    let conditions = go::conditions(o)?;
    let containers: Vec<_> = o.list("status.containerStatuses")?.collect();
    let says = o.text("status.message")?;
    let restart_policy = o.text("spec.restartPolicy")?;
    let restarts = restart_policy == "Always" || ignores_restart_policy(o)?;

    // A Pod that ends by itself is often a hook: while its image cannot be pulled, it has not failed.
    if restarts {
        let mut troubles = Vec::new();
        for container in &containers {
            let waiting = container.at("state.waiting")?;
            if is_trouble(waiting.text("reason")?) {
                troubles.push(waiting.text("message")?);
            }
        }
        if !troubles.is_empty() {
            return Ok(Health::degraded(troubles.join(", ")));
        }
    }

    let says = says.to_owned();
    Ok(match o.text("status.phase")? {
        "Pending" => Health::progressing(says),
        "Succeeded" => Health::healthy(says),
        "Failed" if says.is_empty() => Health::degraded(why_failed(o)?),
        "Failed" => Health::degraded(says),
        "Running" if restarts => {
            let ready = conditions.iter().find(|condition| condition.kind == "Ready");
            if ready.is_some_and(go::Condition::is_true) {
                Health::healthy(says)
            } else if has_ended_before(&containers)? {
                Health::degraded(says)
            } else {
                Health::progressing(says)
            }
        }
        "Running" if matches!(restart_policy, "OnFailure" | "Never") => Health::progressing(says),
        _ => Health::unknown(says),
    })
}

/// Whether a container that waits for this reason has a problem.
fn is_trouble(reason: &str) -> bool {
    reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
}

fn has_ended_before(containers: &[Typed<'_>]) -> go::Result<bool> {
    for container in containers {
        if container.at("lastState.terminated")?.is_there()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first container that has something to say about its end.
fn why_failed(o: Typed<'_>) -> go::Result<String> {
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

/// Whether the Pod wants to be judged like one that always restarts. Hooks cannot want that.
fn ignores_restart_policy(o: Typed<'_>) -> go::Result<bool> {
    let annotations = o.at("metadata.annotations")?;
    Ok(annotations.entry("argocd.argoproj.io/ignore-restart-policy")? == Some("true")
        && !is_hook(annotations)?)
}

/// Whether these are the annotations of a hook of Argo CD, or of Helm.
fn is_hook(annotations: Typed<'_>) -> go::Result<bool> {
    if let Some(hook) = annotations.entry("argocd.argoproj.io/hook")? {
        // A manifest that is skipped at every sync is none.
        return Ok(hook.trim() != "Skip");
    }
    // Helm 2 calls the CRDs that it installs first hooks too.
    Ok(annotations.entry("helm.sh/hook")?.is_some_and(|hook| hook != "crd-install"))
}
