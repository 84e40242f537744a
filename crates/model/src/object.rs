//! A decoded object.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::value::Value;

/// The fields of a Kubernetes object that its [`Plan`](crate::Plan) keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<'a> {
    pub(crate) fields: Value<'a>,
}

impl<'a> Object<'a> {
    /// All fields, as one map.
    pub fn fields(&self) -> &Value<'a> {
        &self.fields
    }

    /// The value at a path such as `status.loadBalancer.ingress`. See [`Value::at`].
    pub fn at(&self, path: &str) -> Option<&Value<'a>> {
        self.fields.at(path)
    }

    /// The API group and version: `apps/v1`, or `v1` for the core group. Empty if missing.
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The API version without the group; empty if missing.
    pub fn version(&self) -> &str {
        let api_version = self.api_version();
        api_version.split_once('/').map_or(api_version, |(_, version)| version)
    }

    /// The kind; empty if missing.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// Sets apiVersion and kind, which are missing in the items of a typed list such as a `PodList`.
    #[must_use]
    pub fn of_kind(mut self, api_version: impl Into<Cow<'a, str>>, kind: impl Into<Cow<'a, str>>) -> Self {
        if let Value::Map(fields) = &mut self.fields {
            fields.push(Cow::Borrowed("apiVersion"), Value::Text(api_version.into()));
            fields.push(Cow::Borrowed("kind"), Value::Text(kind.into()));
        }
        self
    }

    /// A copy without the fields at these paths.
    #[must_use]
    pub fn without(&self, paths: &[&[&str]]) -> Self {
        Self { fields: paths.iter().fold(self.fields.clone(), |fields, path| without(&fields, path)) }
    }

    /// The namespace; empty for a cluster-scoped object, or if missing.
    pub fn namespace(&self) -> &str {
        self.text("metadata.namespace")
    }

    /// The name; empty if missing.
    pub fn name(&self) -> &str {
        self.text("metadata.name")
    }

    /// The timestamp at a path. `None` if the field is missing or not an RFC 3339 time.
    pub fn time(&self, path: &str) -> Option<Timestamp> {
        self.at(path)?.as_text()?.parse().ok()
    }

    /// A copy that borrows nothing from the input.
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
