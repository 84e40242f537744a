//! The values of one expression in one group, kept so that each of them can be retracted.

use std::collections::{BTreeMap, btree_map::Entry};

use bellwether_api::Aggregator;

use crate::{cell::Cell, number::Number, wide::WideSum};

/// What the aggregate functions of one subject need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) sum: bool,
    pub(crate) order: bool,
}

/// All values of a subject in a group that are not null.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    values: u64,
    sum: Sum,
    ordered: Multiset,
}

/// How often there is each value, in order. Exact numbers, by far the most frequent values, are compared at
/// once.
#[derive(Debug, Default)]
struct Multiset {
    exact: BTreeMap<i128, u32>,
    others: BTreeMap<Cell, u32>,
}

/// A sum that is exact, whatever the order of additions and subtractions.
#[derive(Debug, Default)]
struct Sum {
    numbers: u64,
    /// Of the exact numbers. Each is below 10^21, so it takes more than 10^8 of them to overflow.
    billionths: i128,
    doubles: u64,
    /// Of the doubles; `None` if there are none.
    wide: Option<Box<WideSum>>,
}

/// The sum or mean is beyond the range of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl Needs {
    pub(crate) fn include(&mut self, function: Aggregator) {
        match function {
            Aggregator::Count => {}
            Aggregator::Sum | Aggregator::Avg => self.sum = true,
            Aggregator::Min | Aggregator::Max => self.order = true,
        }
    }

    /// Whether a string that is a number counts as a number.
    pub(crate) fn measures(self) -> bool {
        self.sum || self.order
    }
}

impl Tally {
    pub(crate) fn add(&mut self, value: &Cell, needs: Needs) {
        if value.is_null() {
            return;
        }
        self.values += 1;
        if needs.sum
            && let Cell::Number(number) = value
        {
            self.sum.add(*number);
        }
        if needs.order {
            self.ordered.add(value);
        }
    }

    pub(crate) fn retract(&mut self, value: &Cell, needs: Needs) {
        if value.is_null() {
            return;
        }
        self.values -= 1;
        if needs.sum
            && let Cell::Number(number) = value
        {
            self.sum.retract(*number);
        }
        if needs.order {
            self.ordered.retract(value);
        }
    }

    pub(crate) fn result(&self, function: Aggregator) -> Result<Cell, Overflow> {
        Ok(match function {
            Aggregator::Count => Cell::Number(Number::from(self.values)),
            Aggregator::Sum | Aggregator::Avg if self.sum.numbers == 0 => Cell::Null,
            Aggregator::Sum => Cell::Number(self.sum.total()?),
            Aggregator::Avg => Cell::Number(self.sum.mean()?),
            Aggregator::Min => self.ordered.least(),
            Aggregator::Max => self.ordered.greatest(),
        })
    }
}

impl Multiset {
    fn add(&mut self, value: &Cell) {
        if let Cell::Number(Number::Exact(billionths)) = value {
            *self.exact.entry(*billionths).or_default() += 1;
        } else if let Some(count) = self.others.get_mut(value) {
            *count += 1;
        } else {
            self.others.insert(value.clone(), 1);
        }
    }

    fn retract(&mut self, value: &Cell) {
        if let Cell::Number(Number::Exact(billionths)) = value {
            if let Entry::Occupied(mut entry) = self.exact.entry(*billionths) {
                *entry.get_mut() -= 1;
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        } else if let Some(count) = self.others.get_mut(value) {
            *count -= 1;
            if *count == 0 {
                self.others.remove(value);
            }
        }
    }

    /// Null if there are no values.
    fn least(&self) -> Cell {
        let exact = self.exact.first_key_value().map(|(billionths, _)| exact(*billionths));
        let other = self.others.first_key_value().map(|(value, _)| value.clone());
        exact.into_iter().chain(other).min().unwrap_or_default()
    }

    /// Null if there are no values.
    fn greatest(&self) -> Cell {
        let exact = self.exact.last_key_value().map(|(billionths, _)| exact(*billionths));
        let other = self.others.last_key_value().map(|(value, _)| value.clone());
        exact.into_iter().chain(other).max().unwrap_or_default()
    }
}

fn exact(billionths: i128) -> Cell {
    Cell::Number(Number::Exact(billionths))
}

impl Sum {
    fn add(&mut self, number: Number) {
        self.numbers += 1;
        match number {
            Number::Exact(billionths) => self.billionths += billionths,
            Number::Double(double) => {
                self.doubles += 1;
                self.wide.get_or_insert_with(|| Box::new(WideSum::ZERO)).add(double);
            }
        }
    }

    fn retract(&mut self, number: Number) {
        self.numbers -= 1;
        match number {
            Number::Exact(billionths) => self.billionths -= billionths,
            Number::Double(double) => {
                self.doubles -= 1;
                if self.doubles == 0 {
                    self.wide = None;
                } else if let Some(wide) = &mut self.wide {
                    wide.subtract(double);
                }
            }
        }
    }

    fn total(&self) -> Result<Number, Overflow> {
        match &self.wide {
            None => Ok(Number::Exact(self.billionths)),
            Some(wide) => wide.mean(self.billionths, 1).and_then(Number::from_f64).ok_or(Overflow),
        }
    }

    fn mean(&self) -> Result<Number, Overflow> {
        let count = i128::from(self.numbers);
        match &self.wide {
            None if self.billionths % count == 0 => Ok(Number::Exact(self.billionths / count)),
            None => {
                WideSum::ZERO.mean(self.billionths, self.numbers).and_then(Number::from_f64).ok_or(Overflow)
            }
            Some(wide) => wide.mean(self.billionths, self.numbers).and_then(Number::from_f64).ok_or(Overflow),
        }
    }
}
