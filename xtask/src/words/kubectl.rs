//! Finds kubectl commands that name a resource without its API group.
//!
//! `applications` alone means those of Argo CD in many clusters, and a short plural such as `rollups` may be
//! served by another group, too.

use super::phrase::Match;

const VERBS: [&str; 16] = [
    "annotate", "apply", "create", "delete", "describe", "edit", "events", "explain", "get", "label", "logs",
    "patch", "replace", "rollout", "scale", "wait",
];

/// Options whose next word is their value.
const WITH_VALUE: [&str; 12] = [
    "-c",
    "-f",
    "-k",
    "-l",
    "-n",
    "-o",
    "-p",
    "--context",
    "--filename",
    "--kubeconfig",
    "--namespace",
    "--selector",
];

const AMBIGUOUS: [&str; 4] = ["application", "applications", "rollup", "rollups"];

/// The groups that may follow an ambiguous name.
const GROUPS: [&str; 3] = ["bellwether.dev", "app.k8s.io", "argoproj.io"];

const HINT: &str = " (use bwapp, bwru or the full resource name)";

/// All such commands, at the offset of `kubectl`.
pub(super) fn find(text: &str) -> Vec<Match> {
    let mut matches = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        for (start, _) in line.match_indices("kubectl ") {
            if let Some(resource) = ambiguous_resource(&line[start..]) {
                matches.push(Match { offset: offset + start, word: resource.to_owned(), hint: HINT });
            }
        }
        offset += line.len();
    }
    matches
}

fn ambiguous_resource(command: &str) -> Option<&str> {
    let end = command.find(['`', '|', ';', '&', '#', '>', '\n']).unwrap_or(command.len());
    let mut words = command[..end].split_whitespace().skip(1);
    let mut positional = Vec::new();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            positional.push(word);
        }
    }
    let (verb, resources) = positional.split_first()?;
    if !VERBS.contains(verb) {
        return None;
    }
    // `get KIND NAME`: only the first word is a resource, unless all of them are KIND/NAME. `rollout` has a
    // verb of its own.
    let resources = if *verb == "rollout" { resources.get(1..)? } else { resources };
    let first = resources.first()?;
    let kinds = if first.contains('/') { resources } else { &resources[..1] };
    kinds.iter().flat_map(|word| word.split(',')).find(|word| is_ambiguous(word))
}

/// Whether a word such as `application/web`, `applications` or `application.spec` names a resource without a
/// group.
fn is_ambiguous(word: &str) -> bool {
    let resource = word.split('/').next().unwrap_or(word).trim_end_matches(['.', ',', ':', ')']);
    match resource.split_once('.') {
        None => AMBIGUOUS.contains(&resource),
        Some((name, rest)) => {
            // `plural.group`, `plural.group.field` or `plural.version.group`.
            let after_version = rest.split_once('.').map_or("", |(_, after)| after);
            let is_given = |group: &str| {
                rest == group || rest.starts_with(&format!("{group}.")) || after_version == group
            };
            AMBIGUOUS.contains(&name) && !GROUPS.into_iter().any(is_given)
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("kubectl get applications", Some("applications"))]
    #[case("$ kubectl -n shop get application web -o yaml", Some("application"))]
    #[case("kubectl wait --for=condition=Ready application/web --timeout=3s", Some("application/web"))]
    #[case("kubectl describe rollup hyperconverged", Some("rollup"))]
    #[case("kubectl get pods,applications -A", Some("applications"))]
    #[case(
        "kubectl explain application.spec --api-version bellwether.dev/v1alpha1",
        Some("application.spec")
    )]
    #[case("Run `kubectl delete rollups --all`.", Some("rollups"))]
    #[case("kubectl rollout status application/web", Some("application/web"))]
    #[case("kubectl get bwapp", None)]
    #[case("kubectl get bwapp application", None)]
    #[case("kubectl get applications.bellwether.dev,bwru", None)]
    #[case("kubectl get applications.app.k8s.io/web", None)]
    #[case("kubectl get applications.v1beta1.app.k8s.io", None)]
    #[case("kubectl explain applications.bellwether.dev.spec", None)]
    #[case("kubectl apply -f application", None)]
    #[case("kubectl get pods | grep application", None)]
    #[case("`kubectl get bwapp` lists applications", None)]
    #[case("kubectl shows the application", None)]
    #[case("kubectl", None)]
    fn a_resource_needs_its_group(#[case] line: &str, #[case] expected: Option<&str>) {
        let found: Vec<_> = find(line).into_iter().map(|found| found.word).collect();
        assert_eq!(found.first().map(String::as_str), expected);
    }

    #[test]
    fn every_line_is_scanned() {
        let offsets: Vec<_> =
            find("a\nkubectl get rollups\nkubectl get rollups\n").iter().map(|it| it.offset).collect();
        assert_eq!(offsets, [2, 22]);
    }
}
