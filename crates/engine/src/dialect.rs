//! The two APIs of Applications: `bellwether.dev` and `app.k8s.io`.

use crate::id::GroupKind;

/// The API in which an Application is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    Bellwether,
    /// `app.k8s.io/v1beta1`, supported so that its users need not migrate.
    AppK8sIo,
}

impl Dialect {
    pub const fn group(self) -> &'static str {
        match self {
            Self::Bellwether => bellwether_api::GROUP,
            Self::AppK8sIo => "app.k8s.io",
        }
    }

    pub const fn version(self) -> &'static str {
        match self {
            Self::Bellwether => bellwether_api::VERSION,
            Self::AppK8sIo => "v1beta1",
        }
    }

    pub fn api_version(self) -> String {
        format!("{}/{}", self.group(), self.version())
    }

    pub fn kind(self) -> GroupKind {
        GroupKind::new(self.group(), "Application")
    }

    /// `None` for kinds other than Applications.
    pub(crate) fn of(kind: &GroupKind) -> Option<Self> {
        let has_group = |dialect: &Self| *kind.kind == *"Application" && *kind.group == *dialect.group();
        [Self::Bellwether, Self::AppK8sIo].into_iter().find(has_group)
    }
}
