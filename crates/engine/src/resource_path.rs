//! URL paths of objects at the API server.

use std::fmt::{self, Write as _};

use crate::{effect::RequiredOwner, facts::ServedResource};

impl ServedResource {
    /// The path of one object, or of the whole list without a name. The namespace of a cluster-scoped kind is
    /// ignored.
    pub fn path(&self, group: &str, namespace: Option<&str>, name: Option<&str>) -> String {
        path(group, &self.version, &self.plural, namespace.filter(|_| self.namespaced), name)
    }
}

impl RequiredOwner {
    pub fn path(&self) -> String {
        let namespace = Some(&*self.name.namespace).filter(|namespace| !namespace.is_empty());
        path(&self.kind.group, &self.api_version, &self.plural, namespace, Some(&self.name.name))
    }
}

fn path(group: &str, version: &str, plural: &str, namespace: Option<&str>, name: Option<&str>) -> String {
    let mut path =
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    // Writing to a String cannot fail.
    if let Some(namespace) = namespace {
        let _ = write!(path, "/namespaces/{}", Segment(namespace));
    }
    let _ = write!(path, "/{plural}");
    if let Some(name) = name {
        let _ = write!(path, "/{}", Segment(name));
    }
    path
}

/// Percent-encodes a name. Most kinds restrict names to safe characters; some, such as RBAC roles, do not.
struct Segment<'a>(&'a str);

impl fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                    f.write_char(char::from(byte))?;
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one(true, "", Some("shop"), Some("web"), "/api/v1/namespaces/shop/widgets/web")]
    #[case::of_a_namespace(true, "acme.io", Some("shop"), None, "/apis/acme.io/v1/namespaces/shop/widgets")]
    #[case::all(true, "acme.io", None, None, "/apis/acme.io/v1/widgets")]
    #[case::in_no_namespace(false, "acme.io", Some("shop"), Some("web"), "/apis/acme.io/v1/widgets/web")]
    #[case::colons(false, "acme.io", None, Some("system:node"), "/apis/acme.io/v1/widgets/system:node")]
    #[case::anything(false, "acme.io", None, Some("a b?c#é"), "/apis/acme.io/v1/widgets/a%20b%3Fc%23%C3%A9")]
    fn objects_have_their_paths(
        #[case] namespaced: bool,
        #[case] group: &str,
        #[case] namespace: Option<&str>,
        #[case] name: Option<&str>,
        #[case] path: &str,
    ) {
        let (version, plural, versions) = ("v1".into(), "widgets".into(), ["v1".into()].into());
        let served = ServedResource { version, versions, plural, namespaced, has_status: true };
        assert_eq!(served.path(group, namespace, name), path);
    }
}
