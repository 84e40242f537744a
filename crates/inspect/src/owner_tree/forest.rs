//! A forest of objects by owner reference, with one parent per object. Neither building nor walking it
//! recurses, so that a long chain of owners cannot overflow the stack.

/// An object that may be in the forest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The index of its owner. Owner references may form cycles.
    pub(super) parent: Option<usize>,
    /// A member of the group. Other objects are included only below members.
    pub(super) required: bool,
    pub(super) bad: bool,
}

#[derive(Debug)]
pub(super) struct OwnerForest {
    /// In the order of the candidates.
    pub(super) roots: Vec<usize>,
    children: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Unvisited,
    /// On the path from the current candidate up to its root.
    OnPath,
    /// Below no required candidate.
    Outside,
    /// A root or below one. `bad` if it is bad, and so is every candidate between it and its root.
    Inside {
        bad: bool,
    },
}

impl OwnerForest {
    /// Output folds what is below a healthy object. A required candidate that is bad is therefore a root of
    /// its own, unless all its ancestors are bad, too.
    pub(super) fn of(mut candidates: Vec<Candidate>) -> Self {
        let mut placements = vec![Placement::Unvisited; candidates.len()];
        let mut roots = Vec::new();
        for start in 0..candidates.len() {
            for at in path_to_root(start, &mut candidates, &mut placements).into_iter().rev() {
                let Some(candidate) = candidates.get(at).copied() else { continue };
                let above = candidate.parent.and_then(|parent| placements.get(parent).copied());
                let placement = match above {
                    Some(Placement::Inside { bad }) if bad || !(candidate.required && candidate.bad) => {
                        Placement::Inside { bad: bad && candidate.bad }
                    }
                    _ if candidate.required => {
                        roots.push(at);
                        Placement::Inside { bad: candidate.bad }
                    }
                    _ => Placement::Outside,
                };
                if let Some(known) = placements.get_mut(at) {
                    *known = placement;
                }
            }
        }
        roots.sort_unstable();
        let mut children = vec![Vec::new(); candidates.len()];
        for (at, candidate) in candidates.iter().enumerate() {
            let is_below = roots.binary_search(&at).is_err()
                && matches!(placements.get(at), Some(Placement::Inside { .. }));
            if let Some(siblings) =
                candidate.parent.filter(|_| is_below).and_then(|parent| children.get_mut(parent))
            {
                siblings.push(at);
            }
        }
        Self { roots, children }
    }

    pub(super) fn children(&self, of: usize) -> &[usize] {
        self.children.get(of).map_or(&[], Vec::as_slice)
    }

    pub(super) fn count_descendants(&self, of: usize) -> usize {
        let (mut count, mut pending) = (0, vec![of]);
        while let Some(at) = pending.pop() {
            pending.extend(self.children(at));
            count += self.children(at).len();
        }
        count
    }
}

/// The unvisited candidates from `start` up to its root, children first. A cycle is broken above the first
/// required candidate in it.
fn path_to_root(start: usize, candidates: &mut [Candidate], placements: &mut [Placement]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut next = Some(start);
    while let Some(at) = next {
        match placements.get_mut(at) {
            Some(placement @ Placement::Unvisited) => {
                *placement = Placement::OnPath;
                path.push(at);
                next = candidates.get(at).and_then(|candidate| candidate.parent);
            }
            Some(Placement::OnPath) => {
                let entry = path.iter().position(|passed| *passed == at).unwrap_or(0);
                let cycle = path.get_mut(entry..).unwrap_or_default();
                let is_required =
                    |at: &usize| candidates.get(*at).is_some_and(|candidate| candidate.required);
                let first = cycle.iter().copied().filter(is_required).min().unwrap_or(at);
                let last = cycle.iter().position(|at| *at == first).unwrap_or(0);
                cycle.rotate_left(last + 1);
                if let Some(candidate) = candidates.get_mut(first) {
                    candidate.parent = None;
                }
                next = None;
            }
            Some(Placement::Outside | Placement::Inside { .. }) | None => next = None,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const fn candidate(parent: Option<usize>, required: bool, bad: bool) -> Candidate {
        Candidate { parent, required, bad }
    }

    /// The forest in a line: `0(1 2(3)) 4`.
    fn rendered(candidates: &[Candidate]) -> String {
        fn subtree(forest: &OwnerForest, at: usize) -> String {
            let below: Vec<_> = forest.children(at).iter().map(|child| subtree(forest, *child)).collect();
            if below.is_empty() { at.to_string() } else { format!("{at}({})", below.join(" ")) }
        }
        let forest = OwnerForest::of(candidates.to_vec());
        forest.roots.iter().map(|root| subtree(&forest, *root)).collect::<Vec<_>>().join(" ")
    }

    #[rstest]
    #[case::alone(&[candidate(None, true, false)], "0")]
    #[case::not_required(&[candidate(None, false, true)], "")]
    #[case::below(
        &[candidate(None, true, true), candidate(Some(0), false, true), candidate(Some(1), true, true)],
        "0(1(2))"
    )]
    #[case::below_not_required(&[candidate(Some(1), true, false), candidate(None, false, false)], "0")]
    #[case::healthy_below_healthy(&[candidate(None, true, false), candidate(Some(0), true, false)], "0(1)")]
    #[case::bad_below_healthy(&[candidate(None, true, false), candidate(Some(0), true, true)], "0 1")]
    #[case::bad_and_not_required_below_healthy(
        &[candidate(None, true, false), candidate(Some(0), false, true)],
        "0(1)"
    )]
    #[case::bad_further_below_healthy(
        &[
            candidate(None, true, true), candidate(Some(0), false, false), candidate(Some(1), true, true),
            candidate(Some(2), false, true),
        ],
        "0(1) 2(3)"
    )]
    #[case::its_own_parent(&[candidate(Some(0), true, true)], "0")]
    #[case::cycle(&[candidate(Some(1), true, true), candidate(Some(0), true, true)], "0(1)")]
    #[case::below_a_cycle(
        &[
            candidate(Some(2), true, true), candidate(Some(2), true, true), candidate(Some(3), true, true),
            candidate(Some(1), true, true),
        ],
        "1(3(2(0)))"
    )]
    #[case::cycle_not_required(&[candidate(Some(1), false, true), candidate(Some(0), false, true)], "")]
    fn forests(#[case] candidates: &[Candidate], #[case] expected: &str) {
        assert_eq!(rendered(candidates), expected);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let chain = (0..200_000_usize).map(|at| candidate(at.checked_sub(1), true, true));
        let forest = OwnerForest::of(chain.collect());
        assert_eq!((&*forest.roots, forest.count_descendants(0)), (&[0][..], 199_999));
    }

    proptest! {
        /// Whatever the owners, each required candidate is in the forest once, and no bad one is below a
        /// healthy one.
        #[test]
        fn each_required_candidate_is_placed_once(
            candidates in prop::collection::vec(
                (prop::option::of(0..12_usize), any::<bool>(), any::<bool>()), 1..12,
            ),
        ) {
            let count = candidates.len();
            let candidates: Vec<_> = candidates
                .into_iter()
                .map(|(parent, required, bad)| {
                    candidate(parent.filter(|parent| *parent < count), required, bad)
                })
                .collect();
            let forest = OwnerForest::of(candidates.clone());
            let mut times = vec![0; count];
            let mut pending: Vec<_> = forest.roots.iter().map(|root| (*root, true)).collect();
            while let Some((at, open)) = pending.pop() {
                times[at] += 1;
                let is_hidden = !open && candidates[at].required && candidates[at].bad;
                prop_assert!(!is_hidden, "{} is hidden: {:?}", at, forest);
                pending.extend(forest.children(at).iter().map(|child| (*child, open && candidates[at].bad)));
            }
            for (candidate, times) in candidates.iter().zip(times) {
                prop_assert!(times == 1 || (times == 0 && !candidate.required), "{:?}", forest);
            }
        }
    }
}
