//! Evaluates the CEL rules of a schema.

use bellwether_expr::{Absence, Fuel, Program, Scope, Val, Variables};
use bellwether_model::Value;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps as Schema;

use super::Check;

impl Check {
    /// Evaluates the rules for a value. Transition rules (`oldSelf`) are skipped: they need the stored
    /// object.
    pub(super) fn rules(&mut self, schema: &Schema, value: &Value<'_>, field: &str) {
        let scope = Scope::variables(["self"], Absence::AsInCel);
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            let Ok(program) = Program::cel(&with_patterns(&rule.rule), &scope) else { continue };
            let input = Variables(vec![Some(Val::from(value))]);
            if let Ok(Val::Bool(false)) = program.evaluate(&input, &mut Fuel::default()) {
                let message = rule.message.clone().unwrap_or_else(|| format!("failed rule: {}", rule.rule));
                self.error(field, with_value(&message, value));
            }
        }
    }
}

/// Adds a string value to a message such as `invalid duration: …`. The API server prints the value before the
/// message.
fn with_value(message: &str, value: &Value<'_>) -> String {
    match (message.split_once(": "), value) {
        (Some((what, way_out)), Value::Text(text)) if what.starts_with("invalid ") => {
            format!("{what} {text:?}: {way_out}")
        }
        _ => message.to_owned(),
    }
}

/// The named formats of the API server and their patterns.
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

/// The CEL for a URL in our rules, and its replacement: `expr` has no URL functions.
const URL: (&str, &str) = (
    "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",
    r"self.matches('^[Hh][Tt][Tt][Pp][Ss]?://([^/?#@]*@)?([^][/?#@:\\s]+|\\[[^]]+\\])(:[0-9]*)?([/?#]\\S*)?$')",
);

/// Replaces the functions that only the API server has, formats and URLs, by patterns.
pub(super) fn with_patterns(rule: &str) -> String {
    FORMATS.iter().fold(rule.replace(URL.0, URL.1), |rule, (name, pattern)| {
        let call = format!("!format.{name}().validate(");
        let mut replaced = String::new();
        let mut rest = rule.as_str();
        while let Some((before, after)) = rest.split_once(&call) {
            let Some((argument, after)) = after.split_once(").hasValue()") else { break };
            replaced = format!("{replaced}{before}{argument}.matches('{pattern}')");
            rest = after;
        }
        replaced + rest
    })
}
