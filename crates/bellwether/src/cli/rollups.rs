//! The flags of the controller that report a Rollup to the kubelet and to OLM.

use bellwether_kube_io::write::olm::OperatorCondition;
use clap::Args;

use crate::schema::{NAME_RULE, is_name};

/// A controller of one namespace does not manage Rollups.
const WATCH_NAMESPACE: &str = "watch_namespace";

/// The reports about Rollups.
#[derive(Debug, Args)]
pub struct Rollups {
    /// Report the health of this Rollup on /readyz, instead of the readiness of the controller
    ///
    /// Off by default: an unready Pod is removed from its Service and is deleted first, so that a failing
    /// component would take away the controller that reports it. /readyz/rollups/NAME reports the same
    /// without this effect.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = rollup,
        conflicts_with = WATCH_NAMESPACE,
        env = "BELLWETHER_READINESS_ROLLUP",
        hide_env = true
    )]
    pub readiness_rollup: Option<String>,

    /// Copy the condition Upgradeable of the Rollup in --olm-rollup to this OperatorCondition of OLM
    ///
    /// OLM gives an OperatorCondition the namespace and name of the operator's ClusterServiceVersion, sets
    /// OPERATOR_CONDITION_NAME in the operator's Pods, and grants their service accounts get and patch.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        value_parser = operator_condition,
        requires = "olm_rollup",
        env = "BELLWETHER_OLM_OPERATOR_CONDITION",
        hide_env = true
    )]
    pub olm_operator_condition: Option<OperatorCondition>,

    /// The Rollup whose condition Upgradeable is copied for OLM; requires spec.upgradeable: true
    #[arg(
        long,
        value_name = "NAME",
        value_parser = rollup,
        requires = "olm_operator_condition",
        conflicts_with = WATCH_NAMESPACE,
        env = "BELLWETHER_OLM_ROLLUP",
        hide_env = true
    )]
    pub olm_rollup: Option<String>,
}

impl Rollups {
    /// The OperatorCondition to write, and the Rollup to copy from.
    pub(crate) fn olm(&self) -> Option<(&OperatorCondition, &str)> {
        self.olm_operator_condition.as_ref().zip(self.olm_rollup.as_deref())
    }
}

fn rollup(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err(format!("invalid name: {NAME_RULE}")) }
}

fn operator_condition(text: &str) -> Result<OperatorCondition, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && !namespace.contains('.') && is_name(name) => {
            Ok(OperatorCondition { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("use NAMESPACE/NAME of the operator's ClusterServiceVersion, such as operators/shop.v1.2.0"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("operators/shop.v1.2.0", Some(("operators", "shop.v1.2.0")))]
    #[case("a/b", Some(("a", "b")))]
    #[case("shop.v1.2.0", None)]
    #[case("", None)]
    #[case("/", None)]
    #[case("/shop", None)]
    #[case("operators/", None)]
    #[case("operators/shop/more", None)]
    #[case("op.erators/shop", None)]
    #[case("Operators/shop", None)]
    #[case("operators/shop?", None)]
    #[case("operators/..", None)]
    fn operator_conditions(#[case] text: &str, #[case] expected: Option<(&str, &str)>) {
        let parsed = operator_condition(text).ok();
        let parsed = parsed.as_ref().map(|it| (it.namespace.as_str(), it.name.as_str()));
        assert_eq!(parsed, expected);
    }

    #[rstest]
    #[case("all", true)]
    #[case("all.of-them.2", true)]
    #[case("", false)]
    #[case("All", false)]
    #[case("shop/all", false)]
    fn rollups(#[case] text: &str, #[case] is_valid: bool) {
        assert_eq!(rollup(text).is_ok(), is_valid);
    }
}
