//! YAML, parsed piece by piece.

use bellwether_model::Plan;
use serde::de::DeserializeSeed;
use serde_saphyr::{
    DuplicateKeyPolicy, Error, MessageFormatter as _, NonFiniteFloatPolicy, Options, UserMessageFormatter,
    alias_limits, budget, budget::BudgetBreach,
};

use super::{
    Collector, Found, LocatedError, Place, VisitInText, json,
    seeds::{Any, DecodeHead, Head, Items, Objects},
    split::{Content, Piece},
};

impl Piece<'_> {
    /// Visits the objects in the piece. Fails if the piece cannot be parsed.
    pub(super) fn read<R>(&self, plan: &Plan, visit: &VisitInText<'_, R>) -> Result<Found<R>, LocatedError> {
        match &self.content {
            Content::Json => Ok(json::read(self.text, self.place, plan, visit)),
            Content::Object => self.read_document(&Head::default(), plan, visit),
            Content::Item(head) => {
                let mut collector = Collector::new(head, self.text, self.place, visit);
                self.parse(Items { plan, take: |item| collector.take(item) })?;
                Ok(collector.found)
            }
            Content::Unclear => match self.parse(Any(DecodeHead))?.map() {
                Ok(head) => self.read_document(&head, plan, visit),
                Err(what) => Ok(vec![Err(LocatedError { place: self.place, what })]),
            },
        }
    }

    fn read_document<R>(
        &self,
        head: &Head<'_>,
        plan: &Plan,
        visit: &VisitInText<'_, R>,
    ) -> Result<Found<R>, LocatedError> {
        let mut collector = Collector::new(head, self.text, self.place, visit);
        let objects = Objects { plan, list: head.is_list(), take: |object| collector.take(object) };
        match self.parse(Any(objects))?.map() {
            Ok(()) => Ok(collector.found),
            Err(what) => Ok(vec![Err(LocatedError { place: self.place, what })]),
        }
    }

    fn parse<'s, S: DeserializeSeed<'s>>(&'s self, seed: S) -> Result<S::Value, LocatedError> {
        let options = options(self.text.len());
        serde_saphyr::with_deserializer_from_str_with_options(self.text, options, |deserializer| {
            seed.deserialize(deserializer)
        })
        .map_err(|error| broken(&error, self.text, self.place))
    }
}

/// Parser options for a text of this length in bytes.
///
/// The limits grow with the text, so a long file does not exceed them. They bound what aliases add to it.
pub(super) fn options(length: usize) -> Options {
    serde_saphyr::options! {
        budget: budget! {
            max_events: 2 * length + REPEATED,
            max_nodes: length + REPEATED,
            max_total_scalar_bytes: 2 * length + REPEATED_BYTES,
            max_depth: DEEPEST,
        },
        alias_limits: alias_limits! { max_total_replayed_events: REPEATED },
        // As on the API server.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // A plain word such as 12e9999 is an infinite number; it must not fail the object.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        emit_comments: false,
        with_snippet: false,
    }
}

/// The maximum number of values that aliases may add to one object.
const REPEATED: usize = 100_000;
/// The maximum size of the strings that aliases may add to one object, in bytes.
const REPEATED_BYTES: usize = 16 << 20;

/// The maximum depth, as in JSON.
const DEEPEST: usize = 128;

fn broken(error: &Error, text: &str, place: Place) -> LocatedError {
    let mut place = Place { item: None, ..place };
    let error = error.without_snippet();
    if let Some(line) = error.location().and_then(|location| usize::try_from(location.line()).ok()) {
        place.line += line.saturating_sub(1);
    }
    let mut cause = error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
        cause = error;
    }
    let why = match cause {
        Error::AliasReplayLimitExceeded { .. } => {
            format!("aliases expand to more than {REPEATED} values").into()
        }
        Error::Budget { breach: BudgetBreach::ScalarBytes { .. }, .. } => {
            format!("aliases expand to more than {} MiB", REPEATED_BYTES >> 20).into()
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("nested deeper than {DEEPEST} levels").into()
        }
        _ => UserMessageFormatter.format_message(error),
    };
    let hint =
        if text.contains("{{") { "; render the template first, for example with helm template" } else { "" };
    LocatedError { place, what: format!("invalid YAML: {why}{hint}") }
}
