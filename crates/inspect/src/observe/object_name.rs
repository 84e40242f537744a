//! What people call objects: `deploy/web`.

use anyhow::{Result, bail};
use bellwether_engine::GroupKind;

use super::{APPLICATIONS, evaluator::rollup};

/// The kind and the name in `KIND/NAME`.
pub(super) fn split(word: &str) -> Result<(&str, &str)> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => Ok((kind, name)),
        _ => bail!("{word:?} names no object: write KIND/NAME, such as deploy/web"),
    }
}

/// The namespace, the word for the kind and the name of a group in `wordpress`, `application/wordpress`, `blog/wordpress`,
/// which is how Applications are written wherever they are listed, or `rollup/platform`.
pub(super) fn group(word: &str) -> (Option<&str>, Option<&str>, &str) {
    let Some((before, name)) = word.split_once('/') else { return (None, None, word) };
    // No namespace has a dot in its name.
    if is_application(before) || is_rollup(before) || before.contains('.') {
        (None, Some(before), name)
    } else {
        (Some(before), None, name)
    }
}

/// Whether a word may mean an Application, and whether it may mean a Rollup.
pub(super) fn may_be(word: &str) -> (bool, bool) {
    match group(word) {
        (None, None, _) => (true, true),
        (None, Some(kind), _) if is_rollup(kind) => (false, true),
        _ => (true, false),
    }
}

fn is_application(word: &str) -> bool {
    APPLICATIONS.iter().any(|dialect| means(word, "Application", dialect.group()))
}

fn is_rollup(word: &str) -> bool {
    let GroupKind { kind, group } = rollup();
    means(word, &kind, &group)
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

/// The same for our own kinds.
const SHORT_OF_OURS: &[(&str, &str)] = &[
    ("bwapp", "application"),
    ("bwbp", "bindingpolicy"),
    ("bwcs", "combinedstatus"),
    ("bwhr", "healthrule"),
    ("bwru", "rollup"),
    ("bwsc", "statuscollector"),
];

/// Whether a word means a kind in a group, as far as that can be told without a cluster.
pub(super) fn means(word: &str, kind: &str, group: &str) -> bool {
    let word = word.to_lowercase();
    let (name, of) = word.split_once('.').unwrap_or((&word, ""));
    if !of.is_empty() && of != group {
        return false;
    }
    let kind = kind.to_lowercase();
    let ours = if group == bellwether_api::GROUP { SHORT_OF_OURS } else { &[] };
    let name = SHORT.iter().chain(ours).find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
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
    #[case("bwapp", "Application", "bellwether.dev")]
    fn kinds_have_many_names(#[case] word: &str, #[case] kind: &str, #[case] group: &str) {
        assert!(means(word, kind, group));
    }

    #[rstest]
    #[case("deployments.extensions", "Deployment", "apps")]
    #[case("pod", "PodDisruptionBudget", "policy")]
    #[case("bwapp", "Application", "app.k8s.io")]
    fn and_not_those_of_others(#[case] word: &str, #[case] kind: &str, #[case] group: &str) {
        assert!(!means(word, kind, group));
    }

    #[rstest]
    #[case("web", None, None)]
    #[case("application/web", None, Some("application"))]
    #[case("Applications/web", None, Some("Applications"))]
    #[case("bwapp/web", None, Some("bwapp"))]
    #[case("application.app.k8s.io/web", None, Some("application.app.k8s.io"))]
    #[case("applications.example.com/web", None, Some("applications.example.com"))]
    #[case("shop/web", Some("shop"), None)]
    #[case("rollup/web", None, Some("rollup"))]
    #[case("Rollups.bellwether.dev/web", None, Some("Rollups.bellwether.dev"))]
    #[case("bwru/web", None, Some("bwru"))]
    fn groups_have_names_too(
        #[case] word: &str,
        #[case] namespace: Option<&str>,
        #[case] kind: Option<&str>,
    ) {
        assert_eq!(group(word), (namespace, kind, "web"));
    }

    #[rstest]
    #[case("web", (true, true))]
    #[case("shop/web", (true, false))]
    #[case("application/web", (true, false))]
    #[case("applications.app.k8s.io/web", (true, false))]
    #[case("rollup/web", (false, true))]
    #[case("bwru/web", (false, true))]
    #[case("rollups.bellwether.dev/web", (false, true))]
    #[case("rollups.example.com/web", (true, false))]
    fn a_word_says_what_is_meant(#[case] word: &str, #[case] expected: (bool, bool)) {
        assert_eq!(may_be(word), expected);
    }

    /// The short names are those of the definitions.
    #[test]
    fn our_kinds_are_called_as_clusters_call_them() {
        for crd in bellwether_api::crds() {
            let names = &crd.spec.names;
            for short in names.short_names.iter().flatten() {
                assert!(means(short, &names.kind, &crd.spec.group), "{short}");
            }
        }
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
