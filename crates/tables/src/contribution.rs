//! What a row contributes to its group. There is one for each row, so they are small, and a change finds the
//! usual ones in the memory of the row itself.

use std::{borrow::Cow, iter};

use crate::{cell::Cell, number::Number};

#[derive(Debug)]
pub(crate) struct Contribution {
    pub(crate) group: usize,
    values: Values,
}

/// One value for each subject.
#[derive(Debug)]
enum Values {
    /// At most two; the rest is null.
    Few([Kept; 2]),
    Many(Box<[Kept]>),
}

/// A value in 16 bytes. Equal values are kept in the same way.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    #[default]
    Null,
    /// Billionths.
    Exact(i64),
    Other(Box<Cell>),
}

impl Contribution {
    pub(crate) fn new(group: usize, values: Vec<Kept>) -> Self {
        let values = if values.len() > 2 {
            Values::Many(values.into())
        } else {
            let mut values = values.into_iter().chain(iter::repeat_with(Kept::default));
            Values::Few([values.next().unwrap_or_default(), values.next().unwrap_or_default()])
        };
        Self { group, values }
    }

    /// One for each subject, and perhaps more.
    pub(crate) fn values(&self) -> &[Kept] {
        match &self.values {
            Values::Few(values) => values,
            Values::Many(values) => values,
        }
    }

    /// One for each subject, and perhaps more.
    pub(crate) fn values_mut(&mut self) -> &mut [Kept] {
        match &mut self.values {
            Values::Few(values) => values,
            Values::Many(values) => values,
        }
    }
}

impl Kept {
    pub(crate) fn new(value: Cow<'_, Cell>) -> Self {
        match &*value {
            Cell::Null => Self::Null,
            Cell::Number(Number::Exact(billionths)) if let Ok(billionths) = i64::try_from(*billionths) => {
                Self::Exact(billionths)
            }
            _ => Self::Other(Box::new(value.into_owned())),
        }
    }

    pub(crate) fn is(&self, value: &Cell) -> bool {
        match (self, value) {
            (Self::Null, Cell::Null) => true,
            (Self::Exact(own), Cell::Number(Number::Exact(billionths))) => i128::from(*own) == *billionths,
            (Self::Other(own), value) => **own == *value,
            _ => false,
        }
    }

    pub(crate) fn cell(&self) -> Cow<'_, Cell> {
        match self {
            Self::Null => Cow::Owned(Cell::Null),
            Self::Exact(billionths) => Cow::Owned(Cell::Number(Number::Exact((*billionths).into()))),
            Self::Other(value) => Cow::Borrowed(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_value_is_the_value() {
        let exact = |billionths| Cell::Number(Number::Exact(billionths));
        let values = [
            Cell::Null,
            Cell::Bool(false),
            exact(0),
            exact(i64::MIN.into()),
            exact(i64::MAX.into()),
            exact(i128::from(i64::MAX) + 1),
            exact(i128::from(i64::MIN) - 1),
            Cell::Number(Number::Double(0.1)),
            Cell::Text("null".into()),
        ];
        for (place, value) in values.iter().enumerate() {
            let kept = Kept::new(Cow::Borrowed(value));
            assert_eq!(*kept.cell(), *value);
            for (other_place, other) in values.iter().enumerate() {
                assert_eq!(kept.is(other), place == other_place, "{value:?} and {other:?}");
            }
        }
    }

    /// A larger row leaves fewer of them in the caches of the CPU.
    #[test]
    fn a_contribution_is_small() {
        assert!(size_of::<Contribution>() <= 40);
    }
}
