//! Quantities of Kubernetes: `quantity('250Mi')`.

use std::{cmp::Ordering, rc::Rc};

use super::{Function, invalid_text, no_such_overload};
use crate::{
    quantity::Quantity,
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

const Q: Types = Types::QUANTITY;
const I: Types = Types::INT;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("quantity", &[Types::TEXT], Q, quantity),
    Function::global("isQuantity", &[Types::TEXT], Types::BOOL, is_quantity),
    Function::method("isInteger", &[Q], Types::BOOL, is_integer),
    Function::method("asInteger", &[Q], I, as_integer),
    Function::method("asApproximateFloat", &[Q], Types::DOUBLE, as_approximate_float),
    Function::method("sign", &[Q], I, sign),
    Function::global("sign", &[Q], I, sign),
    Function::method("add", &[Q, Q.or(I)], Q, add),
    Function::method("sub", &[Q, Q.or(I)], Q, sub),
    Function::method("isLessThan", &[Q, Q], Types::BOOL, is_less_than),
    Function::method("isGreaterThan", &[Q, Q], Types::BOOL, is_greater_than),
    Function::method("compareTo", &[Q, Q], I, compare_to),
];

fn quantity<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("quantity", arguments));
    };
    fuel.burn_bytes(text.len())?;
    match text.parse() {
        Ok(quantity) => Ok(Val::Quantity(Rc::new(quantity))),
        Err(error) => Err(invalid_text(text, &format!("a quantity: {error}"))),
    }
}

fn is_quantity<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("isQuantity", arguments));
    };
    fuel.burn_bytes(text.len())?;
    Ok(Val::Bool(text.parse::<Quantity>().is_ok()))
}

fn is_integer<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Quantity(quantity)] => Ok(Val::Bool(quantity.to_i64().is_some())),
        _ => Err(no_such_overload("isInteger", arguments)),
    }
}

fn as_integer<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Quantity(quantity)] => {
            quantity.to_i64().map(Val::Int).ok_or_else(|| Stop::error("cannot convert value to integer"))
        }
        _ => Err(no_such_overload("asInteger", arguments)),
    }
}

fn as_approximate_float<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Quantity(quantity)] => Ok(Val::Double(quantity.to_f64())),
        _ => Err(no_such_overload("asApproximateFloat", arguments)),
    }
}

fn sign<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Quantity(quantity)] => Ok(Val::Int(quantity.signum())),
        _ => Err(no_such_overload("sign", arguments)),
    }
}

fn add<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    calculate("add", arguments, Quantity::checked_add)
}

fn sub<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    calculate("sub", arguments, Quantity::checked_sub)
}

fn calculate<'v>(
    name: &str,
    arguments: &[Val<'v>],
    operation: fn(&Quantity, &Quantity) -> Option<Quantity>,
) -> Outcome<'v> {
    let result = match arguments {
        [Val::Quantity(left), Val::Quantity(right)] => operation(left, right),
        [Val::Quantity(left), Val::Int(right)] => operation(left, &Quantity::from(*right)),
        _ => return Err(no_such_overload(name, arguments)),
    };
    result.map(|quantity| Val::Quantity(Rc::new(quantity))).ok_or_else(|| Stop::error("quantity overflow"))
}

fn is_less_than<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    compare("isLessThan", arguments).map(|ordering| Val::Bool(ordering == Ordering::Less))
}

fn is_greater_than<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    compare("isGreaterThan", arguments).map(|ordering| Val::Bool(ordering == Ordering::Greater))
}

fn compare_to<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    compare("compareTo", arguments).map(|ordering| Val::Int(ordering as i64))
}

fn compare<'v>(name: &str, arguments: &[Val<'v>]) -> Result<Ordering, Stop<'v>> {
    match arguments {
        [Val::Quantity(left), Val::Quantity(right)] => Ok(left.cmp(right)),
        _ => Err(no_such_overload(name, arguments)),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("quantity('1.5G')", "1500M")]
    #[case(
        "quantity('200K')",
        "error: '200K' is not a quantity: the unit must be one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3"
    )]
    #[case("isQuantity('1.3Gi')", "true")]
    #[case("isQuantity('1,3G')", "false")]
    #[case("isQuantity('Mi')", "false")]
    #[case("quantity('50k').isInteger()", "true")]
    #[case("quantity('1.5').isInteger()", "false")]
    #[case("quantity('50k').asInteger()", "50000")]
    #[case("quantity('9999999999999999999999999999999999999G').isInteger()", "false")]
    #[case(
        "quantity('9999999999999999999999999999999999999G').asInteger()",
        "error: cannot convert value to integer"
    )]
    #[case("quantity('50k').sub(20000).asApproximateFloat()", "30000.0")]
    #[case("quantity('100m').asApproximateFloat()", "0.1")]
    #[case("quantity('-1').sign()", "-1")]
    #[case("sign(quantity('0'))", "0")]
    #[case("quantity('50k').add(quantity('20k')) == quantity('70k')", "true")]
    #[case("quantity('50k').add(20)", "50020")]
    #[case("quantity('50k').add(20).sub(quantity('100k')).sub(-50000)", "20")]
    #[case("quantity('200M').compareTo(quantity('0.2G'))", "0")]
    #[case("quantity('50M').compareTo(quantity('50Mi'))", "-1")]
    #[case("quantity('50Mi').compareTo(quantity('50M'))", "1")]
    #[case("quantity('150Mi').isGreaterThan(quantity('100Mi'))", "true")]
    #[case("quantity('50M').isLessThan(quantity('100M'))", "true")]
    #[case("quantity('100M').isLessThan(quantity('50M'))", "false")]
    #[case("quantity('1e1000').add(quantity('1'))", "error: quantity overflow")]
    fn functions(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }
}
