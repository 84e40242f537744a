//! StatusCollectors in files: what their authors mean, and what is wrong with them.

mod check;
mod kubestellar;
mod manifest;
mod slips;

pub(crate) use self::{
    check::{Checked, check},
    kubestellar::of_kubestellar,
    manifest::manifest,
    slips::{KIND, Written, kind_of_bare},
};
