//! Who is below whom, if each is below one other at most. Nothing here goes deeper as the forest does.

/// One of those that are to be put in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Whose child it is. Nobody forbids circles.
    pub(super) parent: Option<usize>,
    /// Whether it has to be told of. All others are told of only below those that have to be.
    pub(super) must: bool,
    /// Whether somebody has to look at it.
    pub(super) bad: bool,
}

/// All of them, in order.
#[derive(Debug)]
pub(super) struct OwnerForest {
    /// Those below nobody, in their order.
    pub(super) tops: Vec<usize>,
    children: Vec<Vec<usize>>,
}

/// What is known of a plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Unseen,
    /// The way up leads through it, and is not done yet.
    OnTheWay,
    /// Nobody above it has to be told of.
    Outside,
    /// It is below a top, or is one; and whether it is bad, and all are up to that top.
    Inside {
        bad: bool,
    },
}

impl OwnerForest {
    /// What is bad and has to be told of is a top of its own unless all above it are bad, too: nobody looks below what is
    /// fine.
    pub(super) fn of(mut plants: Vec<Candidate>) -> Self {
        let mut spots = vec![Placement::Unseen; plants.len()];
        let mut tops = Vec::new();
        for start in 0..plants.len() {
            for at in way_up(start, &mut plants, &mut spots).into_iter().rev() {
                let Some(plant) = plants.get(at).copied() else { continue };
                let above = plant.parent.and_then(|parent| spots.get(parent).copied());
                let spot = match above {
                    Some(Placement::Inside { bad }) if bad || !(plant.must && plant.bad) => {
                        Placement::Inside { bad: bad && plant.bad }
                    }
                    _ if plant.must => {
                        tops.push(at);
                        Placement::Inside { bad: plant.bad }
                    }
                    _ => Placement::Outside,
                };
                if let Some(known) = spots.get_mut(at) {
                    *known = spot;
                }
            }
        }
        tops.sort_unstable();
        let mut children = vec![Vec::new(); plants.len()];
        for (at, plant) in plants.iter().enumerate() {
            let is_below =
                tops.binary_search(&at).is_err() && matches!(spots.get(at), Some(Placement::Inside { .. }));
            if let Some(siblings) =
                plant.parent.filter(|_| is_below).and_then(|parent| children.get_mut(parent))
            {
                siblings.push(at);
            }
        }
        Self { tops, children }
    }

    /// Those right below one.
    pub(super) fn children(&self, of: usize) -> &[usize] {
        self.children.get(of).map_or(&[], Vec::as_slice)
    }

    /// How many are below one.
    pub(super) fn count_below(&self, of: usize) -> usize {
        let (mut count, mut waiting) = (0, vec![of]);
        while let Some(at) = waiting.pop() {
            waiting.extend(self.children(at));
            count += self.children(at).len();
        }
        count
    }
}

/// The plants from one up to the last of which nothing is known yet, each before its parent. A circle is opened above the
/// first in it that has to be told of.
fn way_up(start: usize, plants: &mut [Candidate], spots: &mut [Placement]) -> Vec<usize> {
    let mut way = Vec::new();
    let mut next = Some(start);
    while let Some(at) = next {
        match spots.get_mut(at) {
            Some(spot @ Placement::Unseen) => {
                *spot = Placement::OnTheWay;
                way.push(at);
                next = plants.get(at).and_then(|plant| plant.parent);
            }
            Some(Placement::OnTheWay) => {
                let entry = way.iter().position(|passed| *passed == at).unwrap_or(0);
                let circle = way.get_mut(entry..).unwrap_or_default();
                let must = |at: &usize| plants.get(*at).is_some_and(|plant| plant.must);
                let first = circle.iter().copied().filter(must).min().unwrap_or(at);
                let last = circle.iter().position(|at| *at == first).unwrap_or(0);
                circle.rotate_left(last + 1);
                if let Some(plant) = plants.get_mut(first) {
                    plant.parent = None;
                }
                next = None;
            }
            Some(Placement::Outside | Placement::Inside { .. }) | None => next = None,
        }
    }
    way
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const fn plant(parent: Option<usize>, must: bool, bad: bool) -> Candidate {
        Candidate { parent, must, bad }
    }

    /// The forest in a line: `0(1 2(3)) 4`.
    fn told(plants: &[Candidate]) -> String {
        fn one(forest: &OwnerForest, at: usize) -> String {
            let below: Vec<_> = forest.children(at).iter().map(|child| one(forest, *child)).collect();
            if below.is_empty() { at.to_string() } else { format!("{at}({})", below.join(" ")) }
        }
        let forest = OwnerForest::of(plants.to_vec());
        forest.tops.iter().map(|top| one(&forest, *top)).collect::<Vec<_>>().join(" ")
    }

    #[rstest]
    #[case::alone(&[plant(None, true, false)], "0")]
    #[case::of_no_interest(&[plant(None, false, true)], "")]
    #[case::below(&[plant(None, true, true), plant(Some(0), false, true), plant(Some(1), true, true)], "0(1(2))")]
    #[case::below_what_is_of_no_interest(&[plant(Some(1), true, false), plant(None, false, false)], "0")]
    #[case::fine_below_what_is_fine(&[plant(None, true, false), plant(Some(0), true, false)], "0(1)")]
    #[case::bad_below_what_is_fine(&[plant(None, true, false), plant(Some(0), true, true)], "0 1")]
    #[case::bad_and_of_no_interest_below_what_is_fine(&[plant(None, true, false), plant(Some(0), false, true)], "0(1)")]
    #[case::bad_further_below_what_is_fine(
        &[plant(None, true, true), plant(Some(0), false, false), plant(Some(1), true, true), plant(Some(2), false, true)],
        "0(1) 2(3)"
    )]
    #[case::its_own_parent(&[plant(Some(0), true, true)], "0")]
    #[case::a_circle(&[plant(Some(1), true, true), plant(Some(0), true, true)], "0(1)")]
    #[case::below_a_circle(
        &[plant(Some(2), true, true), plant(Some(2), true, true), plant(Some(3), true, true), plant(Some(1), true, true)],
        "1(3(2(0)))"
    )]
    #[case::a_circle_of_no_interest(&[plant(Some(1), false, true), plant(Some(0), false, true)], "")]
    fn forests(#[case] plants: &[Candidate], #[case] expected: &str) {
        assert_eq!(told(plants), expected);
    }

    #[test]
    fn depth_does_no_harm() {
        let chain = (0..200_000_usize).map(|at| plant(at.checked_sub(1), true, true));
        let forest = OwnerForest::of(chain.collect());
        assert_eq!((&*forest.tops, forest.count_below(0)), (&[0][..], 199_999));
    }

    proptest! {
        /// Whoever is whose child, what has to be told of is told once, and below what is fine nothing that is bad is lost.
        #[test]
        fn all_are_told_once(
            plants in prop::collection::vec((prop::option::of(0..12_usize), any::<bool>(), any::<bool>()), 1..12),
        ) {
            let count = plants.len();
            let plants: Vec<_> = plants
                .into_iter()
                .map(|(parent, must, bad)| plant(parent.filter(|parent| *parent < count), must, bad))
                .collect();
            let forest = OwnerForest::of(plants.clone());
            let mut times = vec![0; count];
            let mut waiting: Vec<_> = forest.tops.iter().map(|top| (*top, true)).collect();
            while let Some((at, open)) = waiting.pop() {
                times[at] += 1;
                prop_assert!(open || !(plants[at].must && plants[at].bad), "{} is hidden: {:?}", at, forest);
                waiting.extend(forest.children(at).iter().map(|child| (*child, open && plants[at].bad)));
            }
            for (plant, times) in plants.iter().zip(times) {
                prop_assert!(times == 1 || (times == 0 && !plant.must), "{:?}", forest);
            }
        }
    }
}
