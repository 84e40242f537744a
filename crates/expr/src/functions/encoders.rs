//! Base64.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{Function, no_such_overload};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("base64.encode", &[Types::BYTES], Types::TEXT, encode),
    Function::global("base64.decode", &[Types::TEXT], Types::BYTES, decode),
];

/// Encodes with padding, decodes with or without it. Trailing bits are ignored, as in Go.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn encode<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Bytes(bytes)] = arguments else {
        return Err(no_such_overload("base64.encode", arguments));
    };
    fuel.burn_bytes(bytes.len() / 3 * 4)?;
    Ok(Val::text(BASE64.encode(bytes)))
}

fn decode<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text)] = arguments else {
        return Err(no_such_overload("base64.decode", arguments));
    };
    fuel.burn_bytes(text.len())?;
    // As in Go, line breaks are ignored.
    let unbroken: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    // Padding must be complete or absent.
    let whole = unbroken.len().is_multiple_of(4) || unbroken.last() != Some(&b'=');
    match BASE64.decode(unbroken) {
        Ok(bytes) if whole => Ok(Val::Bytes(bytes.into())),
        _ => Err(Stop::error("invalid base64")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("base64.encode(b'hello')", "'aGVsbG8='")]
    #[case("base64.encode(b'')", "''")]
    #[case("base64.decode('aGVsbG8=')", "b'hello'")]
    #[case("base64.decode('aGVsbG8')", "b'hello'")]
    #[case("base64.decode('aGVs\\nbG8=\\r\\n')", "b'hello'")]
    #[case("base64.decode('aGVsbG9=')", "b'hello'")]
    #[case("base64.decode('a')", "error: invalid base64")]
    #[case("base64.decode('aGVsbA=')", "error: invalid base64")]
    #[case("base64.decode('aGVsbG8==')", "error: invalid base64")]
    #[case("base64.decode('aGV_')", "error: invalid base64")]
    fn base64(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }
}
