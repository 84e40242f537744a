//! In whose words an Application is written.

use crate::id::GroupKind;

/// The API that an Application is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Our own.
    Bellwether,
    /// `app.k8s.io/v1beta1`, whose users may stay as they are.
    AppK8sIo,
}

impl Dialect {
    /// Its API group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Bellwether => bellwether_api::GROUP,
            Self::AppK8sIo => "app.k8s.io",
        }
    }

    /// The version of that group.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Bellwether => bellwether_api::VERSION,
            Self::AppK8sIo => "v1beta1",
        }
    }

    /// Both, as objects have them.
    pub fn api_version(self) -> String {
        format!("{}/{}", self.group(), self.version())
    }

    /// The kind of Applications that are written so.
    pub fn kind(self) -> GroupKind {
        GroupKind::new(self.group(), "Application")
    }

    /// The dialect that objects of a kind are written in, if they are Applications.
    pub(crate) fn of(kind: &GroupKind) -> Option<Self> {
        let has_group = |dialect: &Self| *kind.kind == *"Application" && *kind.group == *dialect.group();
        [Self::Bellwether, Self::AppK8sIo].into_iter().find(has_group)
    }
}
