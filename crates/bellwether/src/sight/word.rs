//! What people call objects: `deploy/web`.

use anyhow::{Result, bail};

/// The kind and the name in `KIND/NAME`.
pub(super) fn split(word: &str) -> Result<(&str, &str)> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => Ok((kind, name)),
        _ => bail!("{word:?} names no object: write KIND/NAME, such as deploy/web"),
    }
}

/// What kubectl takes for kinds of Kubernetes besides their names. A cluster says so itself; files do not.
const SHORT: &[(&str, &str)] = &[
    ("cj", "cronjob"),
    ("cm", "configmap"),
    ("deploy", "deployment"),
    ("ds", "daemonset"),
    ("ep", "endpoints"),
    ("hpa", "horizontalpodautoscaler"),
    ("ing", "ingress"),
    ("netpol", "networkpolicy"),
    ("no", "node"),
    ("ns", "namespace"),
    ("pdb", "poddisruptionbudget"),
    ("po", "pod"),
    ("pv", "persistentvolume"),
    ("pvc", "persistentvolumeclaim"),
    ("rc", "replicationcontroller"),
    ("rs", "replicaset"),
    ("sa", "serviceaccount"),
    ("sc", "storageclass"),
    ("sts", "statefulset"),
    ("svc", "service"),
];

/// Whether a word means a kind in a group, as far as that can be told without a cluster.
pub(super) fn means(word: &str, kind: &str, group: &str) -> bool {
    let word = word.to_lowercase();
    let (name, of) = word.split_once('.').unwrap_or((&word, ""));
    if !of.is_empty() && of != group {
        return false;
    }
    let kind = kind.to_lowercase();
    let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    name == kind || is_plural_of(name, &kind)
}

fn is_plural_of(plural: &str, one: &str) -> bool {
    plural.strip_suffix('s') == Some(one)
        || plural.strip_suffix("es") == Some(one)
        || plural.strip_suffix("ies").is_some_and(|stem| one.strip_suffix('y') == Some(stem))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("deploy", "Deployment", "apps")]
    #[case("deployments.apps", "Deployment", "apps")]
    #[case("NetworkPolicies", "NetworkPolicy", "networking.k8s.io")]
    #[case("ingresses", "Ingress", "networking.k8s.io")]
    #[case("endpoints", "Endpoints", "")]
    fn kinds_have_many_names(#[case] word: &str, #[case] kind: &str, #[case] group: &str) {
        assert!(means(word, kind, group));
    }

    #[rstest]
    #[case("deployments.extensions", "Deployment", "apps")]
    #[case("pod", "PodDisruptionBudget", "policy")]
    fn and_not_those_of_others(#[case] word: &str, #[case] kind: &str, #[case] group: &str) {
        assert!(!means(word, kind, group));
    }

    #[rstest]
    #[case("web")]
    #[case("/web")]
    #[case("deploy/")]
    #[case("deploy/web/0")]
    fn an_object_has_a_kind_and_a_name(#[case] word: &str) {
        let error = split(word).expect_err("it is no object").to_string();
        assert!(error.ends_with("names no object: write KIND/NAME, such as deploy/web"), "{error}");
    }
}
