//! Input that is not an object: the error is one sentence with a place.

use bellwether_model::{Object, Plan};
use rstest::rstest;

#[rstest]
#[case::nothing("", "EOF while parsing a value at line 1 column 0")]
#[case::truncated(r#"{"kind":"Pod","status":{"#, "EOF while parsing an object at line 1 column 24")]
#[case::truncated_where_dropped(
    r#"{"kind":"Pod","dropped":[{"#,
    "EOF while parsing an object at line 1 column 26"
)]
#[case::truncated_text(r#"{"kind":"Po"#, "EOF while parsing a string at line 1 column 11")]
#[case::truncated_escape(r#"{"kind":"Po\"#, "EOF while parsing a string at line 1 column 12")]
#[case::trailing(r#"{"kind":"Pod"} {"#, "trailing characters at line 1 column 16")]
#[case::comma(r#"{"kind":"Pod",}"#, "trailing comma at line 1 column 15")]
#[case::no_comma("{\"kind\":\"Pod\"\n\"status\":1}", "expected `,` or `}` at line 2 column 1")]
#[case::no_colon(r#"{"kind" "Pod"}"#, "expected `:` at line 1 column 9")]
#[case::bare_name("{kind:1}", "key must be a string at line 1 column 2")]
#[case::bare_word(r#"{"kind":Pod}"#, "expected value at line 1 column 9")]
#[case::half_a_word(r#"{"status":tru}"#, "expected ident at line 1 column 14")]
#[case::zeros(r#"{"status":007}"#, "invalid number at line 1 column 12")]
#[case::two_numbers(r#"{"status":1-2}"#, "expected `,` or `}` at line 1 column 12")]
#[case::no_comma_in_a_list(r#"{"status":[1 22]}"#, "expected `,` or `]` at line 1 column 14")]
#[case::huge(r#"{"status":1e999}"#, "number out of range at line 1 column 15")]
#[case::control(
    "{\"kind\":\"a\nb\"}",
    "control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0"
)]
#[case::surrogate(r#"{"kind":"\ud800"}"#, "unexpected end of hex escape at line 1 column 16")]
#[case::list("[1,2]", "expected a map, found a list")]
#[case::text("\"{}\"", "expected a map, found a string")]
#[case::number("12", "expected a map, found a number")]
#[case::truth("true", "expected a map, found a boolean")]
#[case::null("null", "expected a map, found null")]
fn the_error_has_a_reason_and_a_place(#[case] json: &str, #[case] what: &str) {
    let error = Object::from_json(json.as_bytes(), &Plan::identity().with("status")).unwrap_err().to_string();
    assert_eq!(error, format!("not a Kubernetes object: {what}"));
}

#[rstest]
#[case::where_it_is_kept(b"{\"kind\":\"\xff\"}".as_slice())]
#[case::in_a_name(b"{\"\xc3\":1}")]
#[case::cut_in_a_character(b"{\"kind\":\"\xe2\x82\"}")]
#[case::outside_of_text(b"{\"kind\":1\xa0}")]
#[case::utf_16(b"\xff\xfe{\0}\0")]
fn invalid_utf_8(#[case] json: &[u8]) {
    let error = Object::from_json(json, &Plan::identity()).unwrap_err().to_string();
    assert!(error.starts_with("not a Kubernetes object: ") && error.lines().count() == 1, "{error}");
}
