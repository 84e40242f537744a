//! Argo CD's health scripts, run as they are, in a sandbox.
//!
//! A script is a piece of Lua that reads one Kubernetes object, its global `obj`, and returns a table with
//! `status` and `message`. [`Script::compile`] checks its syntax; [`Script::run`] runs it on an object.
//!
//! A script may come from any user who can write a HealthRule, so it is trusted with nothing: it sees the
//! object and the time it is given, and no file, network, clock or other run. Whatever it does ends within
//! its [`Budget`], and the same script on the same object at the same time gives the same answer, byte for
//! byte.
//!
//! ```
//! use bellwether_lua::{Budget, Script};
//! use bellwether_model::{Map, Value};
//! use jiff::Timestamp;
//!
//! let script = Script::compile(
//!     r#"
//!     if obj.status ~= nil and obj.status.phase == "Running" then
//!       return { status = "Healthy", message = "phase is Running" }
//!     end
//!     return { status = "Progressing", message = "Waiting for the phase Running" }
//!     "#,
//! )?;
//! let status: Map<'_> = [("phase".into(), Value::Text("Running".into()))].into_iter().collect();
//! let object = Value::Map([("status".into(), Value::Map(status))].into_iter().collect());
//! let outcome = script.run(&object, Timestamp::UNIX_EPOCH, Budget::default())?;
//! assert_eq!(outcome.status, "Healthy");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! What a run costs is bounded three ways, because Lua itself bounds none of them:
//!
//! - a hook counts instructions, and also charges for the memory in use: one instruction can compare or copy
//!   as much as there is;
//! - memory has a limit, and the garbage collector is off: a run that would need it has allocated its limit
//!   and ends;
//! - what Lua does outside of instructions (patterns, sorting, joining, parsing numbers) is done here, in
//!   Rust, and charged for what it does.
//!
//! Nothing in a script can catch the end of its budget.

mod compile_error;
mod failure;
mod hint;
mod library;
mod meter;
mod object;
mod pattern;
mod sandbox;
mod script;
mod shared;

pub use compile_error::CompileError;
pub use failure::{Failure, Resource};
pub use meter::Budget;
pub use script::{Outcome, Script};
