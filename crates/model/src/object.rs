//! Objects: what was kept of one.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::value::Value;

/// What was kept of a Kubernetes object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<'a> {
    pub(crate) fields: Value<'a>,
}

impl<'a> Object<'a> {
    /// All that was kept, as one map.
    pub fn fields(&self) -> &Value<'a> {
        &self.fields
    }

    /// The value at a path of fields: `status.loadBalancer.ingress`.
    pub fn at(&self, path: &str) -> Option<&Value<'a>> {
        self.fields.at(path)
    }

    /// The group and version: `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The version.
    pub fn version(&self) -> &str {
        let api_version = self.api_version();
        api_version.split_once('/').map_or(api_version, |(_, version)| version)
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// The same object as one of this kind. The items of a typed list, such as a `PodList`, do not say what they are.
    #[must_use]
    pub fn of_kind(mut self, api_version: impl Into<Cow<'a, str>>, kind: impl Into<Cow<'a, str>>) -> Self {
        if let Value::Map(fields) = &mut self.fields {
            fields.push(Cow::Borrowed("apiVersion"), Value::Text(api_version.into()));
            fields.push(Cow::Borrowed("kind"), Value::Text(kind.into()));
        }
        self
    }

    /// The same object without what is at these paths of fields.
    #[must_use]
    pub fn without(&self, paths: &[&[&str]]) -> Self {
        Self { fields: paths.iter().fold(self.fields.clone(), |fields, path| without(&fields, path)) }
    }

    /// The namespace; empty if there is none.
    pub fn namespace(&self) -> &str {
        self.text("metadata.namespace")
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.text("metadata.name")
    }

    /// The time at a path, if there is one.
    pub fn time(&self, path: &str) -> Option<Timestamp> {
        self.at(path)?.as_text()?.parse().ok()
    }

    /// A copy that borrows nothing from the bytes it was read from.
    pub fn to_static(&self) -> Object<'static> {
        Object { fields: self.fields.to_static() }
    }

    fn text(&self, path: &str) -> &str {
        self.at(path).and_then(Value::as_text).unwrap_or_default()
    }
}

fn without<'a>(value: &Value<'a>, path: &[&str]) -> Value<'a> {
    let (Value::Map(map), [first, rest @ ..]) = (value, path) else { return value.clone() };
    let kept = map.iter().filter(|(name, _)| name != first || !rest.is_empty()).map(|(name, value)| {
        let value = if name == *first { without(value, rest) } else { value.clone() };
        (Cow::Owned(name.to_owned()), value)
    });
    Value::Map(kept.collect())
}
