//! Events in, effects out: which objects belong together, and how they are as one.

mod app_k8s_io;
mod application;
mod clock;
mod contest;
mod desk;
mod dialect;
mod digest;
mod driver;
mod effect;
mod engine;
mod event;
mod facts;
mod feeds;
mod id;
mod lens;
mod outbox;
mod path;
pub mod planted;
mod publication;
mod rules;
mod said;
mod selector;
mod stored_status;
mod words;

pub use app_k8s_io::AppK8sIoSpec;
pub use clock::Now;
pub use dialect::Dialect;
pub use driver::Driver;
pub use effect::{Adopter, Change, Effect, Haste, Part, Slot, Turn, Warning};
pub use engine::{Census, Engine};
pub use event::{Event, News, Outcome, Unreadable};
pub use facts::{Facts, Labels, Own, Owner, PodFacts, Seen, Served, Version, Written};
pub use id::{Cluster, FeedId, Kind, Name, ObjectKey};
pub use lens::{Lens, Light};
pub use outbox::Outbox;
pub use rules::user_rule;
