//! Simple predicates do not allocate: there are many objects, and they change often.

use bellwether_expr::{Absence, Facts, Fuel, Program, Scope};
use rstest::rstest;

use crate::sample::{WIDGET, object};

#[rstest]
#[case("status.phase == 'Up'")]
#[case("status.ready >= spec.replicas")]
#[case("status.ready == 5 && !spec.paused || status.phase != 'Down'")]
#[case("status.phase in ['Up', 'Running']")]
#[case("!(status.phase in ['Down', 'Failed'])")]
#[case("has(status.phase)")]
#[case("has(status.absent.deeper)")]
#[case("status.absent == 'x'")]
#[case("status.absent == 'x' || status.phase == 'Up'")]
#[case("spec.replicas - status.ready == 0")]
#[case("status.conditions[0].status == 'True'")]
#[case("metadata.labels['app.kubernetes.io/name'] == 'wheel'")]
#[case("status.phase.startsWith('U')")]
#[case("size(status.conditions) == 2")]
#[case("spec.paused ? 'Paused' : status.phase")]
#[case("status.ready * 2 > 5 ? true : false")]
fn nothing_is_allocated(#[case] text: &str) {
    for absence in [Absence::NotYet, Absence::Null] {
        let program = Program::cel(text, &Scope::object(absence)).expect(text);
        let widget = object(WIDGET);
        let facts: Vec<_> =
            program.paths().iter().map(|path| path.find(widget.fields(), &mut 0).ok().cloned()).collect();
        // The first evaluation may initialize statics.
        let _ = program.evaluate(&widget, &mut Fuel::default());
        let of_object = allocation_counter::measure(|| {
            let _ = program.evaluate(&widget, &mut Fuel::default());
        });
        let of_facts = allocation_counter::measure(|| {
            let _ = program.evaluate(&Facts(&facts), &mut Fuel::default());
        });
        assert_eq!((of_object.count_total, of_facts.count_total), (0, 0), "{text} with {absence:?}");
    }
}

/// A loop allocates once, for its variables, and not per entry.
#[test]
fn a_loop_allocates_once() {
    let text = "status.conditions.exists(c, c.type == 'Stalled' && c.status == 'False')";
    let program = Program::cel(text, &Scope::object(Absence::NotYet)).expect(text);
    let widget = object(WIDGET);
    let counted = allocation_counter::measure(|| {
        let _ = program.evaluate(&widget, &mut Fuel::default());
    });
    assert_eq!(counted.count_total, 1);
}
