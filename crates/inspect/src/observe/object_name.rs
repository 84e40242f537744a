//! Names of objects and groups as users write them: `deploy/web`, `wordpress`.

use anyhow::{Result, bail};
use bellwether_engine::GroupKind;

use super::{
    APPLICATIONS,
    evaluator::{binding_policy, rollup},
};

/// The kind and the name in `KIND/NAME`.
pub(super) fn split(word: &str) -> Result<(&str, &str)> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => Ok((kind, name)),
        _ => bail!("invalid object {word:?}: give KIND/NAME, e.g. deploy/web"),
    }
}

/// The namespace, kind and name of a group in `wordpress`, `application/wordpress`, `rollup/platform` or
/// `blog/wordpress`, which is how output names Applications.
pub(super) fn group(word: &str) -> (Option<&str>, Option<&str>, &str) {
    let Some((before, name)) = word.split_once('/') else { return (None, None, word) };
    // Names of namespaces have no dot.
    if is_application(before) || is_rollup(before) || is_policy(before) || before.contains('.') {
        (None, Some(before), name)
    } else {
        (Some(before), None, name)
    }
}

/// Whether a word may name an Application, and whether it may name a cluster-scoped group: a Rollup or a BindingPolicy.
pub(super) fn may_be(word: &str) -> (bool, bool) {
    match group(word) {
        (None, None, _) => (true, true),
        (None, Some(kind), _) if is_rollup(kind) || is_policy(kind) => (false, true),
        _ => (true, false),
    }
}

/// Whether a word certainly names a BindingPolicy: `policy/edge`.
pub(super) fn is_of_policy(word: &str) -> bool {
    matches!(group(word), (_, Some(kind), _) if is_policy(kind))
}

/// Whether a word is the kind of a group. `policy` is short for BindingPolicy.
pub(super) fn means_group(word: &str, kind: &GroupKind) -> bool {
    means(word, &kind.kind, &kind.group) || *kind == binding_policy() && is_policy(word)
}

fn is_policy(word: &str) -> bool {
    let GroupKind { kind, group } = binding_policy();
    means(word, &kind, &group) || means(word, "Policy", &group)
}

fn is_application(word: &str) -> bool {
    APPLICATIONS.iter().any(|dialect| means(word, "Application", dialect.group()))
}

fn is_rollup(word: &str) -> bool {
    let GroupKind { kind, group } = rollup();
    means(word, &kind, &group)
}

/// The short names of Kubernetes kinds. A cluster has them in discovery, files do not.
const SHORT_NAMES: &[(&str, &str)] = &[
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

/// The short names of Bellwether's kinds.
const OWN_SHORT_NAMES: &[(&str, &str)] = &[
    ("bwapp", "application"),
    ("bwbp", "bindingpolicy"),
    ("bwcs", "combinedstatus"),
    ("bwhr", "healthrule"),
    ("bwru", "rollup"),
    ("bwsc", "statuscollector"),
];

/// Whether a word is the kind, singular, plural or short name of a kind, optionally with its group.
pub(crate) fn means(word: &str, kind: &str, group: &str) -> bool {
    let word = word.to_lowercase();
    let (name, of) = word.split_once('.').unwrap_or((&word, ""));
    if !of.is_empty() && of != group {
        return false;
    }
    let kind = kind.to_lowercase();
    let own = if group == bellwether_api::GROUP { OWN_SHORT_NAMES } else { &[] };
    let name = SHORT_NAMES.iter().chain(own).find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    name == kind || is_plural_of(name, &kind)
}

/// Whether a word names a kind of Kubernetes that has a short name.
pub(super) fn is_builtin_kind(word: &str) -> bool {
    let word = word.to_lowercase();
    let name = word.split_once('.').map_or(&*word, |(name, _)| name);
    SHORT_NAMES.iter().any(|(short, long)| name == *short || name == *long || is_plural_of(name, long))
}

/// The plural of a kind of Kubernetes, for its singular or its short name.
pub fn plural_of_builtin(word: &str) -> Option<String> {
    let (_, singular) = SHORT_NAMES.iter().find(|(short, long)| word == *short || word == *long)?;
    let is_plural = is_plural_of(word, singular) || word == *singular && singular.ends_with("endpoints");
    (!is_plural).then(|| match singular {
        singular if singular.ends_with("ss") => format!("{singular}es"),
        singular if singular.ends_with('y') => format!("{}ies", singular.trim_end_matches('y')),
        singular => format!("{singular}s"),
    })
}

/// The plural of a kind, as Kubernetes and most CRDs form it.
pub(super) fn plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| singular.ends_with(end));
    match singular.strip_suffix('y') {
        Some(stem) if !ends(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
        _ if singular == "endpoints" => singular,
        _ if ends(&["s", "x", "ch", "sh"]) => format!("{singular}es"),
        _ => format!("{singular}s"),
    }
}

fn is_plural_of(plural: &str, singular: &str) -> bool {
    plural.strip_suffix('s') == Some(singular)
        || plural.strip_suffix("es") == Some(singular)
        || plural.strip_suffix("ies").is_some_and(|stem| singular.strip_suffix('y') == Some(stem))
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
    fn kinds_have_plural_and_short_names(#[case] word: &str, #[case] kind: &str, #[case] group: &str) {
        assert!(means(word, kind, group));
    }

    #[rstest]
    #[case("deployments.extensions", "Deployment", "apps")]
    #[case("pod", "PodDisruptionBudget", "policy")]
    #[case("bwapp", "Application", "app.k8s.io")]
    fn other_kinds_do_not_match(#[case] word: &str, #[case] kind: &str, #[case] group: &str) {
        assert!(!means(word, kind, group));
    }

    #[rstest]
    #[case("deploy", true)]
    #[case("Pods", true)]
    #[case("ingresses.networking.k8s.io", true)]
    #[case("shop", false)]
    fn builtin_kinds(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(is_builtin_kind(word), expected);
    }

    #[rstest]
    #[case("Deployment", "deployments")]
    #[case("NetworkPolicy", "networkpolicies")]
    #[case("Ingress", "ingresses")]
    #[case("Gateway", "gateways")]
    #[case("Endpoints", "endpoints")]
    fn plurals_of_kinds(#[case] kind: &str, #[case] expected: &str) {
        assert_eq!(plural(kind), expected);
    }

    #[rstest]
    #[case("deploy", Some("deployments"))]
    #[case("networkpolicy", Some("networkpolicies"))]
    #[case("ingress", Some("ingresses"))]
    #[case("deployments", None)]
    #[case("endpoints", None)]
    #[case("widget", None)]
    fn plurals(#[case] word: &str, #[case] expected: Option<&str>) {
        assert_eq!(plural_of_builtin(word).as_deref(), expected);
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
    #[case("policy/web", None, Some("policy"))]
    #[case("bindingpolicies.bellwether.dev/web", None, Some("bindingpolicies.bellwether.dev"))]
    fn names_of_groups(#[case] word: &str, #[case] namespace: Option<&str>, #[case] kind: Option<&str>) {
        assert_eq!(group(word), (namespace, kind, "web"));
    }

    #[rstest]
    #[case("web", (true, true))]
    #[case("shop/web", (true, false))]
    #[case("application/web", (true, false))]
    #[case("applications.app.k8s.io/web", (true, false))]
    #[case("rollup/web", (false, true))]
    #[case("bwru/web", (false, true))]
    #[case("bwbp/web", (false, true))]
    #[case("rollups.bellwether.dev/web", (false, true))]
    #[case("rollups.example.com/web", (true, false))]
    fn a_word_names_an_application_or_a_rollup(#[case] word: &str, #[case] expected: (bool, bool)) {
        assert_eq!(may_be(word), expected);
    }

    #[test]
    fn own_short_names_are_those_of_the_crds() {
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
    fn an_object_needs_a_kind_and_a_name(#[case] word: &str) {
        let error = split(word).expect_err("an error").to_string();
        assert!(error.ends_with(": give KIND/NAME, e.g. deploy/web"), "{error}");
    }
}
