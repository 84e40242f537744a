//! Runs the exec plugins that obtain credentials (`client.authentication.k8s.io`).
//!
//! kube's own client runs them on a thread of the runtime, where a plugin that hangs would hold up other clusters, and
//! keeps open watches when the credentials expire. Here, a credential is part of the [`Access`], so that a new one is a
//! rotation like any other.

use std::{fmt, io::ErrorKind, process::Stdio, sync::Arc, time::Duration};

use bellwether_wire::{
    backoff::{Backoff, BackoffLimits},
    error_text::bounded_line,
};
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    process::Command,
    time::{sleep, timeout},
};
use tracing::warn;

use super::{
    InventoryBuilder,
    declarations::{Declaration, Origin},
    fingerprint,
    kubeconfig::{self, AccessError, Selected},
};
use crate::client_switch::Access;

const RUN_TIMEOUT: Duration = Duration::from_mins(1);

/// In bytes.
const MAX_OUTPUT: u64 = 1 << 20;

/// A credential is renewed this long before it expires, or after nine tenths of its life.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_mins(1);

/// Between two runs, whatever the plugin says about the expiration.
const MIN_LIFE: Duration = Duration::from_secs(10);

const RETRY: BackoffLimits = BackoffLimits { first: Duration::from_secs(1), longest: Duration::from_mins(1) };

/// The key of the extension of a cluster that is passed to the plugin.
const CONFIG_EXTENSION: &str = "client.authentication.k8s.io/exec";

const API_VERSION: &str = "client.authentication.k8s.io/v1";

#[derive(Clone, Deserialize)]
struct ExecCredential {
    status: Option<Credential>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credential {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Without the credential itself.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential until {:?}", self.expiration_timestamp)
    }
}

/// The credential of a cluster, and the access that was made from it.
pub(super) struct Obtained {
    access: Access,
    /// Of what the plugin was given.
    of: u64,
    renew_after: Option<Timestamp>,
}

impl Obtained {
    fn is_due(&self, now: Timestamp) -> bool {
        self.renew_after.is_some_and(|time| time <= now)
    }
}

/// Declares a cluster, and runs its exec plugin whenever the credentials expire or are rejected. `last` is kept
/// between calls: the plugin does not run again because labels have changed.
pub(super) async fn keep_declared(
    origin: &Origin,
    declaration: &Declaration,
    selected: &Selected,
    of: u64,
    last: &mut Option<Obtained>,
    inventory: &InventoryBuilder,
) {
    let (mut backoff, mut is_logged) = (Backoff::new(RETRY), false);
    loop {
        if last.as_ref().is_none_or(|last| last.of != of || last.is_due(Timestamp::now())) {
            match obtain(selected, of).await {
                Ok(obtained) => *last = Some(obtained),
                Err(error) => {
                    if !is_logged {
                        warn!(%origin, cluster = &*declaration.name, %error, "cannot get credentials: retrying");
                    }
                    is_logged = true;
                    inventory.declare(origin.clone(), declaration.clone()).await;
                    let pause = backoff.next_delay(None, &mut rand::rng());
                    sleep(pause).await;
                    continue;
                }
            }
        }
        let Some(obtained) = last.as_mut() else { continue };
        (backoff, is_logged) = (Backoff::new(RETRY), false);
        let access = Some(obtained.access.clone());
        inventory.declare(origin.clone(), Declaration { access, ..declaration.clone() }).await;
        let rejected = Arc::clone(&obtained.access.rejected);
        let expires = async {
            // The wall clock may be set while this sleeps, and a credential may have expired already.
            loop {
                sleep(MIN_LIFE).await;
                if obtained.is_due(Timestamp::now()) {
                    break;
                }
            }
        };
        tokio::select! {
            () = expires => {}
            () = rejected.notified() => {
                obtained.renew_after = Some(Timestamp::now());
                sleep(MIN_LIFE).await;
            }
        }
    }
}

async fn obtain(selected: &Selected, of: u64) -> Result<Obtained, AccessError> {
    let Some(exec) = &selected.user.exec else { return Err(AccessError::NoExecCommand) };
    let begun = Timestamp::now();
    let credential = run(exec, selected).await?;
    let Credential { expiration_timestamp, token, client_certificate_data, client_key_data } = credential;
    let parts = [&token, &client_certificate_data, &client_key_data];
    let parts = parts.map(|part| part.as_deref().unwrap_or_default().as_bytes());
    let fingerprint = fingerprint([of.to_be_bytes().as_slice()].into_iter().chain(parts));
    let user = json!({
        "token": token,
        "client-certificate-data": client_certificate_data.map(|pem| base64(pem.as_bytes())),
        "client-key-data": client_key_data.map(|pem| base64(pem.as_bytes())),
    });
    let mut user: AuthInfo = serde_json::from_value(user)
        .map_err(|_| AccessError::ExecFailed(command_of(exec), "invalid credentials".to_owned()))?;
    let AuthInfo { impersonate, impersonate_groups, .. } = selected.user.clone();
    (user.impersonate, user.impersonate_groups) = (impersonate, impersonate_groups);
    let selected = Selected { cluster: selected.cluster.clone(), user };
    let access = kubeconfig::access(selected, fingerprint).await?;
    let renew_after = expiration_timestamp.map(|expires| {
        let life = begun.duration_until(expires);
        expires.checked_sub(RENEW_BEFORE.min(life / 10).max(SignedDuration::ZERO)).unwrap_or(expires)
    });
    Ok(Obtained { access, of, renew_after })
}

async fn run(exec: &ExecConfig, selected: &Selected) -> Result<Credential, AccessError> {
    let name = command_of(exec);
    let Some(command) = exec.command.as_deref().filter(|command| !command.is_empty()) else {
        return Err(AccessError::NoExecCommand);
    };
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(AccessError::ExecFailed(name, "it needs a terminal".to_owned()));
    }
    let environment = exec.env.iter().flatten().filter_map(|it| Some((it.get("name")?, it.get("value")?)));
    let mut child = Command::new(command)
        .args(exec.args.iter().flatten())
        .envs(environment)
        .env("KUBERNETES_EXEC_INFO", info(exec, selected).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // What it says belongs to the log of the controller.
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => AccessError::NoExecPlugin(name.clone()),
            _ => AccessError::ExecFailed(name.clone(), bounded_line(&error.to_string())),
        })?;
    let failed = |why: String| AccessError::ExecFailed(name.clone(), why);
    let mut output = Vec::new();
    let finished = async {
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_OUTPUT).read_to_end(&mut output).await?;
        }
        child.wait().await
    };
    let status = timeout(RUN_TIMEOUT, finished).await;
    let status = status.map_err(|_| failed(format!("no result within {RUN_TIMEOUT:?}")))?;
    let status = status.map_err(|error| failed(bounded_line(&error.to_string())))?;
    if !status.success() {
        return Err(failed(status.to_string()));
    }
    // The error would quote the credential.
    let credential: Option<ExecCredential> = serde_json::from_slice(&output).ok();
    let credential = credential.and_then(|credential| credential.status);
    credential
        .filter(|it| {
            it.token.is_some() || (it.client_certificate_data.is_some() && it.client_key_data.is_some())
        })
        .ok_or_else(|| {
            failed("its output is not an ExecCredential with a token or a client certificate".to_owned())
        })
}

fn command_of(exec: &ExecConfig) -> String {
    bounded_line(exec.command.as_deref().unwrap_or_default())
}

/// The input of the plugin.
fn info(exec: &ExecConfig, selected: &Selected) -> Value {
    let cluster = &selected.cluster;
    let mut spec = json!({ "interactive": false });
    if exec.provide_cluster_info {
        let mut extensions = cluster.extensions.iter().flatten();
        let config = extensions.find(|it| it.name == CONFIG_EXTENSION).map(|it| &it.extension);
        let all = json!({
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": cluster.certificate_authority_data,
            "config": config,
        });
        let given = all.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        spec["cluster"] = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    let version = exec.api_version.as_deref().unwrap_or(API_VERSION);
    json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec })
}

fn base64(bytes: &[u8]) -> String {
    let encoded = serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap_or_default();
    encoded.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn selected(exec: &Value) -> Selected {
        let cluster = json!({
            "server": "https://a",
            "certificate-authority-data": "QQ==",
            "extensions": [{ "name": CONFIG_EXTENSION, "extension": { "secret": "east" } }],
        });
        Selected {
            cluster: serde_json::from_value(cluster).unwrap(),
            user: serde_json::from_value(json!({ "exec": exec })).unwrap(),
        }
    }

    fn shell(script: &str) -> Value {
        json!({ "command": "sh", "args": ["-c", script], "provideClusterInfo": true, "env": [
            { "name": "OWN", "value": "own" },
        ] })
    }

    async fn run_plugin(exec: Value) -> Result<Credential, AccessError> {
        let selected = selected(&exec);
        run(selected.user.exec.as_ref().unwrap(), &selected).await
    }

    #[tokio::test]
    async fn the_plugin_learns_of_the_cluster() {
        let echo = r#"printf '{"status": {"token": "%s"}}' "$(printf '%s %s' "$OWN" "$KUBERNETES_EXEC_INFO" | tr -d '"')""#;
        let token = run_plugin(shell(echo)).await.unwrap().token.unwrap();
        assert_eq!(
            token,
            "own {apiVersion:client.authentication.k8s.io/v1,kind:ExecCredential,spec:{cluster:\
             {certificate-authority-data:QQ==,config:{secret:east},server:https://a},interactive:false}}"
        );
    }

    #[rstest]
    #[case::not_found(
        json!({ "command": "/no/such/plugin" }),
        r#"exec plugin "/no/such/plugin" not found. Install it where the controller runs, or correct its command"#
    )]
    #[case::no_command(json!({}), "exec plugin without a command. Set command")]
    #[case::fails(shell("exit 3"), r#"exec plugin "sh" failed: exit status: 3. Run it by hand to see why"#)]
    #[case::terminal(
        json!({ "command": "sh", "interactiveMode": "Always" }),
        r#"exec plugin "sh" failed: it needs a terminal. Run it by hand to see why"#
    )]
    #[case::text(
        shell("echo hunter2"),
        r#"exec plugin "sh" failed: its output is not an ExecCredential with a token or a client certificate. Run it by hand to see why"#
    )]
    #[case::nothing(
        shell(r#"echo '{"status": {"clientCertificateData": "hunter2"}}'"#),
        r#"exec plugin "sh" failed: its output is not an ExecCredential with a token or a client certificate. Run it by hand to see why"#
    )]
    #[tokio::test]
    async fn a_plugin_that_fails_is_named(#[case] exec: Value, #[case] expected: &str) {
        assert_eq!(run_plugin(exec).await.unwrap_err().to_string(), expected);
    }

    #[tokio::test]
    async fn a_credential_is_renewed_before_it_expires() {
        let obtained = async |life: i64| {
            let expires = Timestamp::now() + SignedDuration::from_secs(life);
            let echo =
                format!(r#"echo '{{"status": {{"token": "t", "expirationTimestamp": "{expires}"}}}}'"#);
            let mut selected = selected(&shell(&echo));
            selected.cluster.certificate_authority_data = None;
            obtain(&selected, 7).await.unwrap()
        };
        let later = |seconds| Timestamp::now() + SignedDuration::from_secs(seconds);
        let hour = obtained(3600).await;
        assert!(!hour.is_due(later(3500)) && hour.is_due(later(3545)));
        let short = obtained(100).await;
        assert!(!short.is_due(later(80)) && short.is_due(later(95)));
        assert!(obtained(-5).await.is_due(Timestamp::now()));
    }
}
