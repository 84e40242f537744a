//! The flags of the controller by which a Rollup speaks to others than its readers: to the kubelet, and to OLM.

use bellwether_kube_io::write::olm::OperatorCondition;
use clap::Args;

use crate::schema::is_name;

/// The flag with which Rollups are left alone: nobody could tell how they are.
const LOOKS_AT_ONE: &str = "watch_namespace";

/// For whom Rollups speak.
#[derive(Debug, Args)]
pub struct Rollups {
    /// Let /readyz tell whether this Rollup is healthy, instead of whether the controller is ready
    ///
    /// It is off by default, because a Pod that is not ready leaves its Service and is the first to be deleted: what ails
    /// the components would take their only witness away. /readyz/rollups/NAME tells the same without that.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = rollup,
        conflicts_with = LOOKS_AT_ONE,
        env = "BELLWETHER_READINESS_ROLLUP",
        hide_env = true
    )]
    pub readiness_rollup: Option<String>,

    /// Keep the condition Upgradeable of this OperatorCondition of OLM in step with the Rollup that --olm-rollup names
    ///
    /// OLM gives an OperatorCondition the namespace and the name of the operator's ClusterServiceVersion, tells the name to
    /// the operator's Pods as OPERATOR_CONDITION_NAME, and grants them the rights that this takes.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        value_parser = operator_condition,
        requires = "olm_rollup",
        env = "BELLWETHER_OLM_OPERATOR_CONDITION",
        hide_env = true
    )]
    pub olm_operator_condition: Option<OperatorCondition>,

    /// The Rollup whose Upgradeable OLM is told; it needs spec.upgradeable: true
    #[arg(
        long,
        value_name = "NAME",
        value_parser = rollup,
        requires = "olm_operator_condition",
        conflicts_with = LOOKS_AT_ONE,
        env = "BELLWETHER_OLM_ROLLUP",
        hide_env = true
    )]
    pub olm_rollup: Option<String>,
}

impl Rollups {
    /// The OperatorCondition that is kept in step, and the Rollup with which.
    pub(crate) fn olm(&self) -> Option<(&OperatorCondition, &str)> {
        self.olm_operator_condition.as_ref().zip(self.olm_rollup.as_deref())
    }
}

fn rollup(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("no Rollup can have this name: give it as kubectl get rollups shows it".to_owned())
    }
}

fn operator_condition(text: &str) -> Result<OperatorCondition, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && !namespace.contains('.') && is_name(name) => {
            Ok(OperatorCondition { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err(
            "an OperatorCondition is given as NAMESPACE/NAME, such as operators/shop.v1.2.0: it has the namespace and the \
             name of the operator's ClusterServiceVersion"
                .to_owned(),
        ),
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
        let read = operator_condition(text).ok();
        let read = read.as_ref().map(|it| (it.namespace.as_str(), it.name.as_str()));
        assert_eq!(read, expected);
    }

    #[rstest]
    #[case("all", true)]
    #[case("all.of-them.2", true)]
    #[case("", false)]
    #[case("All", false)]
    #[case("shop/all", false)]
    fn rollups(#[case] text: &str, #[case] is_one: bool) {
        assert_eq!(rollup(text).is_ok(), is_one);
    }
}
