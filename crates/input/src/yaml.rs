//! YAML, one piece at a time.

use bellwether_model::Plan;
use serde::de::DeserializeSeed;
use serde_saphyr::{
    DuplicateKeyPolicy, Error, MessageFormatter as _, NonFiniteFloatPolicy, Options, UserMessageFormatter,
    alias_limits, budget,
};

use super::{
    Fault, Found, JudgeInText, Place, Taker,
    cut::{Content, Piece},
    json,
    seeds::{Any, Head, Items, Objects, Skim},
};

impl Piece<'_> {
    /// Judges the objects of the piece. The error is for a piece that cannot be parsed.
    pub(super) fn read<R>(&self, plan: &Plan, judge: &JudgeInText<'_, R>) -> Result<Found<R>, Fault> {
        match &self.content {
            Content::Json => Ok(json::read(self.text, self.place, plan, judge)),
            Content::Object => self.read_document(&Head::default(), plan, judge),
            Content::Item(head) => {
                let mut taker = Taker::new(head, self.text, self.place, judge);
                self.parse(Items { plan, take: |item| taker.take(item) })?;
                Ok(taker.found)
            }
            Content::Unclear => match self.parse(Any(Skim))?.map() {
                Ok(head) => self.read_document(&head, plan, judge),
                Err(what) => Ok(vec![Err(Fault { place: self.place, what })]),
            },
        }
    }

    fn read_document<R>(
        &self,
        head: &Head<'_>,
        plan: &Plan,
        judge: &JudgeInText<'_, R>,
    ) -> Result<Found<R>, Fault> {
        let mut taker = Taker::new(head, self.text, self.place, judge);
        let objects = Objects { plan, list: head.is_list(), take: |object| taker.take(object) };
        match self.parse(Any(objects))?.map() {
            Ok(()) => Ok(taker.found),
            Err(what) => Ok(vec![Err(Fault { place: self.place, what })]),
        }
    }

    fn parse<'s, S: DeserializeSeed<'s>>(&'s self, seed: S) -> Result<S::Value, Fault> {
        let options = options(self.text.len());
        serde_saphyr::with_deserializer_from_str_with_options(self.text, options, |deserializer| {
            seed.deserialize(deserializer)
        })
        .map_err(|error| broken(&error, self.place))
    }
}

/// How a text of this length is read.
///
/// The text alone stays within every limit: it is in memory already, and no file is too long to be judged. What its aliases
/// may add to it is limited.
pub(super) fn options(length: usize) -> Options {
    serde_saphyr::options! {
        budget: budget! {
            max_events: 2 * length + REPEATED,
            max_nodes: length + REPEATED,
            max_total_scalar_bytes: 2 * length + REPEATED_BYTES,
            max_depth: DEEPEST,
        },
        alias_limits: alias_limits! { max_total_replayed_events: REPEATED },
        // As in JSON, for the API server.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // A word such as 12e9999 is a number without end, and no reason to refuse an object.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        emit_comments: false,
        with_snippet: false,
    }
}

/// How many values aliases may repeat in one object, and how many bytes of text.
const REPEATED: usize = 100_000;
const REPEATED_BYTES: usize = 16 << 20;

/// How deep values may nest, as in JSON.
const DEEPEST: usize = 128;

fn broken(error: &Error, mut place: Place) -> Fault {
    let error = error.without_snippet();
    if let Some(line) = error.location().and_then(|location| usize::try_from(location.line()).ok()) {
        place.line += line.saturating_sub(1);
    }
    Fault { place, what: format!("it is no valid YAML: {}", UserMessageFormatter.format_message(error)) }
}
