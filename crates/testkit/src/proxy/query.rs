use anyhow::{Context, Result};
use http::Uri;

/// The query parameters of a URL, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        Self(form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value of a parameter; `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a boolean parameter is true. API servers take everything but `false` and `0` for true,
    /// including the bare name.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .is_some_and(|(_, value)| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    /// The value of `metadata.name` in the field selector.
    pub(super) fn selected_name(&self) -> Option<&str> {
        self.get("fieldSelector")?.split(',').find_map(|term| {
            let name = term.strip_prefix("metadata.name=")?;
            Some(name.strip_prefix('=').unwrap_or(name)).filter(|name| !name.is_empty())
        })
    }

    #[must_use]
    pub(super) fn with(self, name: &str, value: impl Into<String>) -> Self {
        let mut query = self.without(&[name]);
        query.0.push((name.to_owned(), value.into()));
        query
    }

    #[must_use]
    pub(super) fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|(key, _)| !names.contains(&key.as_str()));
        self
    }

    pub(super) fn to_uri(&self, path: &str) -> Result<Uri> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish();
        format!("{path}?{query}").parse().context("cannot rewrite the URL of a request")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/api/v1/pods?{text}").parse().unwrap())
    }

    #[test]
    fn booleans_are_parsed_as_api_servers_parse_them() {
        for (text, expected) in [
            ("watch=true", true),
            ("watch=1", true),
            ("watch", true),
            ("watch=", true),
            ("watch=false", false),
            ("watch=False", false),
            ("watch=0", false),
            ("limit=5", false),
            ("", false),
        ] {
            assert_eq!(query(text).is_true("watch"), expected, "{text}");
        }
    }

    #[test]
    fn a_field_selector_may_select_one_name() {
        for (text, expected) in [
            ("fieldSelector=metadata.name%3Dweb", Some("web")),
            ("fieldSelector=metadata.name==web", Some("web")),
            ("fieldSelector=status.phase%3DRunning,metadata.name%3Dweb", Some("web")),
            ("fieldSelector=metadata.name!%3Dweb", None),
            ("fieldSelector=metadata.namespace%3Dweb", None),
            ("", None),
        ] {
            assert_eq!(query(text).selected_name(), expected, "{text}");
        }
    }

    #[test]
    fn a_rewritten_query_keeps_the_other_parameters() {
        let query = query("labelSelector=a%3Db%2Cc&limit=5&resourceVersion=0");
        let uri = query.without(&["limit"]).with("resourceVersion", "7").to_uri("/api/v1/pods").unwrap();
        assert_eq!(uri, "/api/v1/pods?labelSelector=a%3Db%2Cc&resourceVersion=7");
    }
}
