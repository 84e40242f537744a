//! The exec plugins that may obtain credentials for ClusterProfiles.
//!
//! A ClusterProfile chooses among these by name. The file is the one that cluster-inventory-api defines.

use std::{collections::BTreeMap, fs, path::Path};

use bellwether_wire::error_text::bounded_line;
use kube::config::{AuthInfo, Cluster, ExecConfig};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::kubeconfig::{AccessError, Selected, check_cluster};

const ARGUMENTS_EXTENSION: &str = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args";
const ENVIRONMENT_EXTENSION: &str = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs";

/// The content of `--cluster-profile-providers`.
#[derive(Clone, Debug, Deserialize)]
pub struct AccessProviders {
    providers: Vec<Provider>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provider {
    name: String,
    exec_config: ExecConfig,
    #[serde(default, rename = "profileSourcedCLIArgsPolicy")]
    arguments: ArgumentsPolicy,
    #[serde(default, rename = "profileSourcedEnvVarsPolicy")]
    environment: EnvironmentPolicy,
}

/// What happens to the arguments in a ClusterProfile.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum ArgumentsPolicy {
    #[default]
    Ignore,
    Append,
}

/// What happens to the environment variables in a ClusterProfile.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum EnvironmentPolicy {
    #[default]
    Ignore,
    AppendIfNotExists,
    Replace,
}

#[derive(Debug, Error)]
#[error("cannot read {file}: {why}. Check --cluster-profile-providers")]
pub struct ProvidersError {
    file: String,
    why: String,
}

/// An entry of `status.accessProviders`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AccessProvider {
    pub(super) name: String,
    #[serde(default)]
    pub(super) cluster: Cluster,
}

impl AccessProviders {
    pub fn read(file: &Path) -> Result<Self, ProvidersError> {
        let failed =
            |why: String| ProvidersError { file: file.display().to_string(), why: bounded_line(&why) };
        let text = fs::read(file).map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
    }

    /// The first of these providers that the ClusterProfile offers, too.
    pub(super) fn select(
        &self,
        offered: Vec<AccessProvider>,
        allow_insecure: bool,
    ) -> Result<Selected, AccessError> {
        let find = |provider: &Provider| offered.iter().position(|it| it.name == provider.name);
        let found = self.providers.iter().find_map(|provider| Some((provider, find(provider)?)));
        let Some((provider, index)) = found else {
            let names =
                |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(AccessError::NoProvider(
                bounded_line(&names(offered.iter().map(|it| &*it.name).collect())),
                names(self.providers.iter().map(|it| &*it.name).collect()),
            ));
        };
        let Some(AccessProvider { cluster, .. }) = offered.into_iter().nth(index) else {
            return Err(AccessError::NoServer);
        };
        check_cluster(&cluster, allow_insecure)?;
        // A copy: what one ClusterProfile adds must not reach the next.
        let mut exec = provider.exec_config.clone();
        for extension in cluster.extensions.iter().flatten() {
            match &*extension.name {
                ARGUMENTS_EXTENSION => provider.arguments.apply(&extension.extension, &mut exec)?,
                ENVIRONMENT_EXTENSION => provider.environment.apply(&extension.extension, &mut exec)?,
                _ => {}
            }
        }
        Ok(Selected { cluster, user: AuthInfo { exec: Some(exec), ..AuthInfo::default() } })
    }
}

impl ArgumentsPolicy {
    fn apply(self, value: &Value, exec: &mut ExecConfig) -> Result<(), AccessError> {
        match self {
            Self::Ignore => {}
            Self::Append => {
                let more = Vec::<String>::deserialize(value)
                    .map_err(|_| AccessError::InvalidExtension(ARGUMENTS_EXTENSION, "a list of strings"))?;
                exec.args.get_or_insert_default().extend(more);
            }
        }
        Ok(())
    }
}

impl EnvironmentPolicy {
    fn apply(self, value: &Value, exec: &mut ExecConfig) -> Result<(), AccessError> {
        if matches!(self, Self::Ignore) {
            return Ok(());
        }
        let more = BTreeMap::<String, String>::deserialize(value)
            .map_err(|_| AccessError::InvalidExtension(ENVIRONMENT_EXTENSION, "a map of strings"))?;
        let variables = exec.env.get_or_insert_default();
        for (name, value) in more {
            let before = variables.iter_mut().find(|it| it.get("name") == Some(&name));
            match (before, self) {
                (Some(before), Self::Replace) => _ = before.insert("value".to_owned(), value),
                (Some(_), _) => {}
                (None, _) => {
                    variables.push([("name".to_owned(), name), ("value".to_owned(), value)].into());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn providers(arguments: &str, environment: &str) -> AccessProviders {
        serde_json::from_value(json!({ "providers": [
            {
                "name": "first",
                "execConfig": { "command": "plugin", "args": ["own"], "env": [{ "name": "A", "value": "own" }] },
                "profileSourcedCLIArgsPolicy": arguments,
                "profileSourcedEnvVarsPolicy": environment,
            },
            { "name": "second", "execConfig": { "command": "other" } },
        ] }))
        .unwrap()
    }

    fn offered(names: &[&str], cluster: &Value) -> Vec<AccessProvider> {
        let offered =
            |name: &&str| serde_json::from_value(json!({ "name": name, "cluster": cluster })).unwrap();
        names.iter().map(offered).collect()
    }

    fn extended() -> Value {
        let extension = |name: &str, extension: Value| json!({ "name": name, "extension": extension });
        json!({ "server": "https://a", "extensions": [
            extension(ARGUMENTS_EXTENSION, json!(["more"])),
            extension(ENVIRONMENT_EXTENSION, json!({ "A": "profile", "B": "profile" })),
        ] })
    }

    #[rstest]
    #[case::ignored("Ignore", "Ignore", "own", "A=own")]
    #[case::appended("Append", "AppendIfNotExists", "own more", "A=own B=profile")]
    #[case::replaced("Append", "Replace", "own more", "A=profile B=profile")]
    fn the_policy_decides_about_arguments_of_profiles(
        #[case] arguments: &str,
        #[case] environment: &str,
        #[case] expected_arguments: &str,
        #[case] expected_environment: &str,
    ) {
        let providers = providers(arguments, environment);
        // Twice: nothing of the first call remains.
        for _ in 0..2 {
            let selected = providers.select(offered(&["first"], &extended()), false).unwrap();
            let exec = selected.user.exec.unwrap();
            assert_eq!(exec.args.unwrap().join(" "), expected_arguments);
            let variables = exec.env.unwrap();
            let variables: Vec<_> =
                variables.iter().map(|it| format!("{}={}", it["name"], it["value"])).collect();
            assert_eq!(variables.join(" "), expected_environment);
        }
    }

    #[test]
    fn the_order_of_the_file_counts() {
        let cluster = json!({ "server": "https://a" });
        let command = |names: &[&str]| {
            let selected = providers("Ignore", "Ignore").select(offered(names, &cluster), false);
            selected.map(|selected| selected.user.exec.and_then(|exec| exec.command))
        };
        assert_eq!(command(&["x", "second", "first"]), Ok(Some("plugin".to_owned())));
        assert_eq!(command(&["second"]), Ok(Some("other".to_owned())));
        assert_eq!(
            command(&["x", "y"]).unwrap_err().to_string(),
            "no access provider of the ClusterProfile is in --cluster-profile-providers: it offers x, y, and the file has \
             first, second. Add one to the file"
        );
        assert!(command(&[]).unwrap_err().to_string().contains("it offers none"));
    }

    #[rstest]
    #[case::file(json!({ "server": "https://a", "certificate-authority": "/etc/passwd" }))]
    #[case::insecure(json!({ "server": "https://a", "insecure-skip-tls-verify": true }))]
    #[case::http(json!({ "server": "http://a" }))]
    #[case::no_server(json!({}))]
    #[case::arguments(json!({ "server": "https://a", "extensions": [
        { "name": ARGUMENTS_EXTENSION, "extension": { "not": "a list" } }
    ] }))]
    fn refused(#[case] cluster: Value) {
        assert!(providers("Append", "Replace").select(offered(&["first"], &cluster), false).is_err());
    }
}
