//! Looks at Applications and Rollups in a cluster, or in files that stand for one, and says what it finds.
//!
//! [`sight`] shows an engine what it asks for, once or as it changes, and gives back the engine's groups. [`family`] adds
//! what their members own. [`status`], [`tree`], [`wait`] and [`whose`] put that into words, each for the command of that
//! name. Which arguments a command has, when its text is printed and with which code the process ends is not known here.
#![expect(missing_docs, reason = "only the binary uses it, and most names say what there is to say")]

pub mod observe;
pub mod owner_tree;
mod shell;
pub mod status;
pub mod tree;
pub mod wait;
pub mod whose;
