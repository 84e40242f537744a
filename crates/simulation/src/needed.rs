//! The kinds that a controller must follow, according to the oracle.

use std::collections::BTreeSet;

use bellwether_engine::{Dialect, GroupKind};

use crate::{
    app_k8s_io_oracle,
    below_oracle::kinds_below,
    oracle::{Oracle, is_counted},
    rollup_oracle,
};

/// The kinds that Applications of `bellwether.dev` use.
pub fn application_kinds(oracle: &Oracle<'_>) -> BTreeSet<GroupKind> {
    oracle.applications().flat_map(|(_, app)| Oracle::kinds_of_spec(&app.spec).into_keys()).collect()
}

/// The kinds below the members of Applications.
fn kinds_below_members(oracle: &Oracle<'_>) -> BTreeSet<GroupKind> {
    let members = oracle.applications().flat_map(|(_, app)| {
        Oracle::kinds_of_spec(&app.spec).into_keys().filter(|kind| is_counted(app, kind))
    });
    let old =
        app_k8s_io_oracle::applications(oracle).flat_map(|(_, app)| app_k8s_io_oracle::kinds_of_spec(app));
    kinds_below(members.chain(old)).collect()
}

/// The own kinds, and the kinds that Applications and Rollups use.
pub fn needed(oracle: &Oracle<'_>) -> impl Iterator<Item = GroupKind> {
    let own = ["Application", "HealthRule", "Rollup"].map(GroupKind::bellwether);
    let own = own.into_iter().chain([Dialect::AppK8sIo.kind()]);
    let rollups =
        rollup_oracle::rollups(oracle).flat_map(|(_, rollup)| rollup_oracle::kinds_of_spec(&rollup.spec));
    let old =
        app_k8s_io_oracle::applications(oracle).flat_map(|(_, app)| app_k8s_io_oracle::kinds_of_spec(app));
    application_kinds(oracle)
        .into_iter()
        .chain(kinds_below_members(oracle))
        .chain(own)
        .chain(old)
        .chain(rollups)
        .collect::<BTreeSet<_>>()
        .into_iter()
}
