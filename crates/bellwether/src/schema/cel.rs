//! The rules of our schemas that are written in CEL.

use bellwether_expr::{Absence, Fuel, Program, Scope, Val, Variables};
use bellwether_model::Value;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps as Schema;

use super::Check;

impl Check {
    /// The rules about a value. Those that compare it with what was there before need a cluster.
    pub(super) fn rules(&mut self, schema: &Schema, value: &Value<'_>, field: &str) {
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

/// What the address of a page is, as our rules have it, and the pattern that stands for it here.
const PAGE: (&str, &str) = (
    "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",
    r"self.matches('^[Hh][Tt][Tt][Pp][Ss]?://([^/?#@]*@)?([^][/?#@:\\s]+|\\[[^]]+\\])(:[0-9]*)?([/?#]\\S*)?$')",
);

/// A rule in which `!format.NAME().validate(x).hasValue()`, which only the API server has, is the pattern of the format,
/// and so is what is said about addresses.
pub(super) fn spelled_out(rule: &str) -> String {
    FORMATS.iter().fold(rule.replace(PAGE.0, PAGE.1), |rule, (name, pattern)| {
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
