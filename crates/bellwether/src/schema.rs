//! What the API server would say of one of our own objects: its fields against the schema of its kind.

use bellwether_api::{VERSION, crds};
use bellwether_expr::{Absence, Fuel, Program, Scope, Val, Variables};
use bellwether_model::{Object, Plan, Value};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps as Schema, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field: `spec.cel[0].state`.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) text: String,
}

/// The schema of one of our kinds.
pub(crate) struct KindSchema(Schema);

impl KindSchema {
    /// The schema of a kind; none if it is not one of ours.
    pub(crate) fn of(kind: &str) -> Option<Self> {
        let is_kind = |crd: &CustomResourceDefinition| crd.spec.names.kind == kind;
        let crd = crds().into_iter().find(is_kind)?;
        let schema = crd.spec.versions.into_iter().next()?.schema?.open_api_v3_schema?;
        Some(Self(schema))
    }

    /// All that is wrong with an object.
    pub(crate) fn check(&self, object: &Value<'_>) -> Vec<Fault> {
        let mut check = Check { faults: Vec::new() };
        check.fields(&self.0, &without_nulls(object), "", &["apiVersion", "kind", "metadata"]);
        check.faults
    }
}

/// What the API server would say of one of our own objects that is about to be created.
pub(crate) fn faults_in(manifest: &serde_json::Value) -> Vec<Fault> {
    let json = manifest.to_string();
    let no_object = |text: String| vec![Fault { field: "kind".to_owned(), text }];
    let object = match Object::from_json(json.as_bytes(), &Plan::whole()) {
        Ok(object) => object,
        Err(error) => return no_object(error.to_string()),
    };
    let Some(schema) = KindSchema::of(object.kind()) else {
        return no_object(format!("there is no kind {:?}", object.kind()));
    };
    let mut faults = schema.check(object.fields());
    faults.extend(wrong_with_head(&object));
    faults
}

/// What the schema of a kind does not speak of.
pub(crate) fn wrong_with_head(object: &Object<'_>) -> Option<Fault> {
    let fault = |field: &str, text: &str| Some(Fault { field: field.to_owned(), text: text.to_owned() });
    match object.at("metadata.name") {
        _ if object.version() != VERSION => fault("apiVersion", "it must be bellwether.dev/v1alpha1"),
        None | Some(Value::Null) => fault("metadata.name", "it is missing"),
        Some(Value::Text(name)) if is_name(name) => None,
        Some(Value::Text(name)) if name.len() > LONGEST_NAME => {
            fault("metadata.name", "a name has at most 253 characters")
        }
        Some(Value::Text(_)) => fault(
            "metadata.name",
            "a name has lower-case letters, digits, '-' and '.', and a letter or digit at its beginning, at its end and \
             around every '.'",
        ),
        Some(_) => fault("metadata.name", "it must be text: write it in quotes"),
    }
}

/// The longest name that an object can have.
const LONGEST_NAME: usize = 253;

/// Whether an object of ours can have this name.
fn is_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(is_legal) && !part.starts_with('-') && !part.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_part)
}

/// Nothing is the same as nothing said: the API server drops such fields.
fn without_nulls<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Map(map) => {
            let fields = map.iter().filter(|(_, value)| !matches!(value, Value::Null));
            Value::Map(fields.map(|(name, value)| (name.to_owned().into(), without_nulls(value))).collect())
        }
        Value::List(list) => Value::List(list.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

struct Check {
    faults: Vec<Fault>,
}

impl Check {
    fn fault(&mut self, field: &str, text: String) {
        self.faults.push(Fault { field: field.to_owned(), text });
    }

    fn value(&mut self, schema: &Schema, value: &Value<'_>, field: &str) {
        if schema.x_kubernetes_preserve_unknown_fields == Some(true) && schema.type_.is_none() {
            return;
        }
        if let Some(wanted) = schema.type_.as_deref()
            && !is_a(value, wanted)
        {
            return self.fault(field, format!("it must be {}, not {}", in_words(wanted), kind_of(value)));
        }
        let before = self.faults.len();
        match value {
            Value::Text(text) => self.text(schema, text, field),
            Value::Int(number) => self.number(schema, *number, field),
            Value::List(list) => self.list(schema, list, field),
            Value::Map(_) => self.fields(schema, value, field, &[]),
            Value::Null | Value::Bool(_) | Value::Float(_) => {}
        }
        // What is said of the whole makes sense only where its parts are right.
        if self.faults.len() == before {
            self.rules(schema, value, field);
        }
    }

    fn fields(&mut self, schema: &Schema, value: &Value<'_>, field: &str, also: &[&str]) {
        let Value::Map(map) = value else { return };
        let under = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        for required in schema.required.iter().flatten() {
            if matches!(map.get(required), None | Some(Value::Null)) {
                self.fault(&under(required), "it is missing".to_owned());
            }
        }
        for (name, value) in map.iter() {
            let known = schema.properties.as_ref().and_then(|properties| properties.get(name));
            match (known, &schema.additional_properties) {
                (Some(schema), _) => self.value(schema, value, &under(name)),
                (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => {
                    self.value(schema, value, &under(name));
                }
                (None, Some(JSONSchemaPropsOrBool::Bool(true))) => {}
                (None, _) if schema.x_kubernetes_preserve_unknown_fields == Some(true) => {}
                (None, _) if also.contains(&name) => {}
                (None, _) => {
                    let known = schema.properties.iter().flatten().map(|(name, _)| name.as_str());
                    let known: Vec<_> = known.collect();
                    self.fault(
                        &under(name),
                        format!("there is no such field; there is {}", known.join(", ")),
                    );
                }
            }
        }
    }

    fn list(&mut self, schema: &Schema, list: &[Value<'_>], field: &str) {
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_items.filter(|most| length > *most) {
            self.fault(field, format!("it has {length} entries, more than {most}"));
        }
        if let Some(least) = schema.min_items.filter(|least| length < *least) {
            self.fault(field, format!("it has {length} entries, fewer than {least}"));
        }
        if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
            for (index, entry) in list.iter().enumerate() {
                self.value(schema, entry, &format!("{field}[{index}]"));
            }
        }
    }

    fn text(&mut self, schema: &Schema, text: &str, field: &str) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_length.filter(|most| length > *most) {
            self.fault(field, format!("it has {length} characters, more than {most}"));
        }
        if schema.min_length.is_some_and(|least| length < least) {
            self.fault(field, "it is empty".to_owned());
        }
        if let Some(words) = &schema.enum_ {
            let words: Vec<_> = words.iter().filter_map(|word| word.0.as_str()).collect();
            if !words.contains(&text) {
                self.fault(field, format!("`{text}` is none of {}", words.join(", ")));
            }
        }
        if let Some(pattern) = &schema.pattern
            && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
        {
            self.fault(field, format!("`{text}` does not match {pattern}"));
        }
    }

    // The bounds of our schemas are small whole numbers.
    #[expect(clippy::cast_precision_loss)]
    fn number(&mut self, schema: &Schema, number: i64, field: &str) {
        if let Some(least) = schema.minimum.filter(|least| (number as f64) < *least) {
            self.fault(field, format!("{number} is less than {least}"));
        }
        if let Some(most) = schema.maximum.filter(|most| (number as f64) > *most) {
            self.fault(field, format!("{number} is more than {most}"));
        }
    }

    /// The rules in CEL. Those about URLs are left to the API server.
    fn rules(&mut self, schema: &Schema, value: &Value<'_>, field: &str) {
        let scope = Scope::variables(["self"], Absence::AsInCel);
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            let Ok(program) = Program::cel(&spelled_out(&rule.rule), &scope) else { continue };
            let input = Variables(vec![Some(Val::from(value))]);
            if let Ok(Val::Bool(false)) = program.evaluate(&input, &mut Fuel::default()) {
                let text = rule.message.clone().unwrap_or_else(|| format!("{} is false", rule.rule));
                self.fault(field, text);
            }
        }
    }
}

/// The formats that the API server knows by name, as the patterns that they stand for.
const FORMATS: &[(&str, &str)] = &[
    ("dns1123Label", "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
    ("dns1123Subdomain", r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
    ("dns1035Label", "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"),
    (
        "qualifiedName",
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    ),
    ("labelValue", "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"),
];

/// A rule in which `!format.NAME().validate(x).hasValue()`, which only the API server has, is the pattern of the format.
fn spelled_out(rule: &str) -> String {
    FORMATS.iter().fold(rule.to_owned(), |rule, (name, pattern)| {
        let call = format!("!format.{name}().validate(");
        let mut spelled = String::new();
        let mut rest = rule.as_str();
        while let Some((before, after)) = rest.split_once(&call) {
            let Some((argument, after)) = after.split_once(").hasValue()") else { break };
            spelled = format!("{spelled}{before}{argument}.matches('{pattern}')");
            rest = after;
        }
        spelled + rest
    })
}

fn is_a(value: &Value<'_>, wanted: &str) -> bool {
    match value {
        Value::Text(_) => wanted == "string",
        Value::Bool(_) => wanted == "boolean",
        Value::Int(_) => matches!(wanted, "integer" | "number"),
        Value::Float(_) => wanted == "number",
        Value::List(_) => wanted == "array",
        Value::Map(_) => wanted == "object",
        Value::Null => false,
    }
}

fn in_words(wanted: &str) -> &str {
    match wanted {
        "string" => "text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn faults(spec: &str) -> Vec<String> {
        let json = format!(
            r#"{{"apiVersion":"bellwether.dev/v1alpha1","kind":"HealthRule","metadata":{{"name":"a"}},"spec":{spec}}}"#
        );
        let object = Object::from_json(json.as_bytes(), &Plan::whole()).expect("it is an object");
        let schema = KindSchema::of("HealthRule").expect("it is one of ours");
        schema.check(object.fields()).iter().map(|fault| format!("{}: {}", fault.field, fault.text)).collect()
    }

    /// All rules below a schema.
    fn rules_of(schema: &Schema, rules: &mut Vec<String>) {
        rules.extend(schema.x_kubernetes_validations.iter().flatten().map(|rule| rule.rule.clone()));
        for schema in schema.properties.iter().flat_map(|properties| properties.values()) {
            rules_of(schema, rules);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
            rules_of(schema, rules);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(schema)) = &schema.additional_properties {
            rules_of(schema, rules);
        }
    }

    #[test]
    fn every_rule_of_our_kinds_can_be_evaluated_here_but_those_about_urls() {
        let scope = Scope::variables(["self", "oldSelf"], Absence::AsInCel);
        let mut all = Vec::new();
        for crd in crds() {
            let KindSchema(schema) = KindSchema::of(&crd.spec.names.kind).expect("it is one of ours");
            rules_of(&schema, &mut all);
        }
        assert!(all.len() > 20, "{} rules", all.len());
        for rule in all {
            let program = Program::cel(&spelled_out(&rule), &scope);
            assert!(
                program.is_ok() || rule.contains("isURL("),
                "{rule}: {}",
                program.err().map(|mistake| mistake.to_string()).unwrap_or_default()
            );
        }
    }

    #[rstest]
    #[case::fine(r#"{"for":{"group":"acme.io","kind":"Widget"},"lua":"return {}"}"#, &[])]
    #[case::nothing("{}", &["spec.for: it is missing"])]
    #[case::a_text(r#""x""#, &["spec: it must be a map, not text"])]
    #[case::two_forms(r#"{"for":{"kind":"W"},"lua":"x","cel":[{"when":"true","state":"Ready"}]}"#, &["spec: a HealthRule has exactly one form: give one of cel, expressions and lua"])]
    #[case::no_form(r#"{"for":{"kind":"W"}}"#, &["spec: a HealthRule has exactly one form: give one of cel, expressions and lua"])]
    #[case::a_state(r#"{"for":{"kind":"W"},"cel":[{"when":"true","state":"Healthy"}]}"#, &["spec.cel[0].state: `Healthy` is none of Ready, InProgress, Failed, Suspended, Terminating, Unknown"])]
    #[case::a_field(r#"{"for":{"kind":"W"},"cell":[]}"#, &["spec.cell: there is no such field; there is cel, expressions, for, lua"])]
    #[case::a_type(r#"{"for":{"kind":"W"},"lua":3}"#, &["spec.lua: it must be text, not a number"])]
    #[case::empty(r#"{"for":{"kind":"W"},"cel":[]}"#, &["spec.cel: it has 0 entries, fewer than 1"])]
    #[case::a_reason(r#"{"for":{"kind":"W"},"cel":[{"when":"true","state":"Ready","reason":"not a word"}]}"#, &["spec.cel[0].reason: reason must be one word such as WidgetBroken: letters, digits, '_', ',' and ':', beginning with a letter"])]
    #[case::a_kind(r#"{"for":{"kind":"widgets.acme.io"},"lua":"x"}"#, &["spec.for.kind: kind must be a kind such as Widget, or '*' for every kind of the group"])]
    #[case::a_group(r#"{"for":{"group":"acme.io/v1","kind":"W"},"lua":"x"}"#, &["spec.for.group: group must be the name of an API group such as apps or acme.io, without a version; leave it out for the core group"])]
    #[case::a_version(r#"{"for":{"group":"acme.io","version":"*","kind":"W"},"lua":"x"}"#, &["spec.for.version: version must be the version of an API such as v1 or v1beta1, without the group; leave it out for every version"])]
    #[case::a_null(r#"{"for":{"kind":"W"},"lua":"x","cel":null}"#, &[])]
    fn rules(#[case] spec: &str, #[case] expected: &[&str]) {
        assert_eq!(faults(spec), expected);
    }
}
