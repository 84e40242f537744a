//! YAML, parsed piece by piece.

use serde::de::DeserializeSeed;
use serde_json::Value as Json;
use serde_saphyr::{
    DuplicateKeyPolicy, Error, MessageFormatter as _, NonFiniteFloatPolicy, Options, UserMessageFormatter,
    alias_limits, budget, budget::BudgetBreach,
};

use super::{
    Collector, Found, LocatedError, Place, Reading, json,
    quoted::indented,
    seeds::{Any, DecodeHead, Head, Items, Objects},
    split::{Content, Piece},
};

/// Any value, from a text of one document.
pub(super) fn value(text: &str) -> Result<Json, LocatedError> {
    let parse = |text: &str| {
        let options = options(text.len(), DuplicateKeyPolicy::Error);
        serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| broken(&error, text, Place { item: None, line: 1 }))
    };
    parse(text).or_else(|error| indented(text).map_or(Err(error), |text| parse(&text)))
}

impl Piece<'_> {
    /// Visits the objects in the piece. Fails if the piece cannot be parsed.
    pub(super) fn read<R>(&self, reading: &Reading<'_, R>) -> Result<Found<R>, LocatedError> {
        if let Content::Json = self.content {
            return Ok(json::read(self.text, self.place, reading));
        }
        self.read_yaml(reading).or_else(|error| match indented(self.text) {
            Some(text) => Piece { text: &text, ..self.clone() }.read_yaml(reading),
            None => Err(error),
        })
    }

    fn read_yaml<R>(&self, reading: &Reading<'_, R>) -> Result<Found<R>, LocatedError> {
        let parser = Parser { piece: self, reading, duplicate_keys: DuplicateKeyPolicy::Error };
        let read = match parser.read() {
            Err(error) if reading.accepts_duplicate_keys && is_about_duplicate_keys(&error) => {
                Parser { duplicate_keys: DuplicateKeyPolicy::LastWins, ..parser }.read()
            }
            read => read,
        };
        read.map_err(|error| broken(&error, self.text, self.place))
    }
}

struct Parser<'p, R> {
    piece: &'p Piece<'p>,
    reading: &'p Reading<'p, R>,
    duplicate_keys: DuplicateKeyPolicy,
}

impl<'p, R> Parser<'p, R> {
    fn read(&self) -> Result<Found<R>, Error> {
        match &self.piece.content {
            // The caller reads JSON by another parser.
            Content::Json | Content::Object => self.document(&Head::default()),
            Content::Item(head) => {
                let mut collector = self.collector(head);
                self.parse(Items { plan: self.reading.plan, take: |item| collector.take(item) })?;
                Ok(collector.found)
            }
            Content::Unclear => match self.parse(Any(DecodeHead))?.map() {
                Ok(head) => self.document(&head),
                Err(what) => Ok(vec![Err(LocatedError { place: self.piece.place, what })]),
            },
        }
    }

    fn document(&self, head: &Head<'_>) -> Result<Found<R>, Error> {
        let mut collector = self.collector(head);
        let take = |object: Result<_, _>| collector.take(object);
        match self.parse(Any(Objects { plan: self.reading.plan, list: head.is_list(), take }))?.map() {
            Ok(()) => Ok(collector.found),
            Err(what) => Ok(vec![Err(LocatedError { place: self.piece.place, what })]),
        }
    }

    fn collector<'c>(&'c self, head: &'c Head<'c>) -> Collector<'c, R> {
        let duplicate_keys = matches!(self.duplicate_keys, DuplicateKeyPolicy::LastWins);
        Collector::new(head, self.piece.text, self.piece.place, duplicate_keys, self.reading)
    }

    fn parse<S: DeserializeSeed<'p>>(&self, seed: S) -> Result<S::Value, Error> {
        let options = options(self.piece.text.len(), self.duplicate_keys);
        serde_saphyr::with_deserializer_from_str_with_options(self.piece.text, options, |deserializer| {
            seed.deserialize(deserializer)
        })
    }
}

/// Parser options for a text of this length in bytes.
///
/// The limits grow with the text, so a long file does not exceed them. They bound what aliases add to it.
pub(super) fn options(length: usize, duplicate_keys: DuplicateKeyPolicy) -> Options {
    serde_saphyr::options! {
        budget: budget! {
            max_events: 2 * length + REPEATED,
            max_nodes: length + REPEATED,
            max_total_scalar_bytes: 2 * length + REPEATED_BYTES,
            max_depth: DEEPEST,
        },
        alias_limits: alias_limits! { max_total_replayed_events: REPEATED },
        duplicate_keys: duplicate_keys,
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
    let why = match cause(error) {
        Error::AliasReplayLimitExceeded { .. } => {
            format!("aliases expand to more than {REPEATED} values").into()
        }
        Error::Budget { breach: BudgetBreach::ScalarBytes { .. }, .. } => {
            format!("aliases expand to more than {} MiB", REPEATED_BYTES >> 20).into()
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("nested deeper than {DEEPEST} levels").into()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => duplicate_key(key).into(),
        _ => UserMessageFormatter.format_message(error),
    };
    let hint =
        if text.contains("{{") { "; render the template first, for example with helm template" } else { "" };
    LocatedError { place, what: format!("invalid YAML: {why}{hint}") }
}

/// The reason to refuse a text with this key twice in a map.
pub(super) fn duplicate_key(key: &str) -> String {
    // Usually the head of the next object, which a parser would merge into this one.
    let hint =
        if matches!(key, "apiVersion" | "kind") { "; separate objects with a line of ---" } else { "" };
    format!("duplicate key {key:?}{hint}")
}

/// The error without the places that led to it.
fn cause(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => cause(error),
        other => other,
    }
}

fn is_about_duplicate_keys(error: &Error) -> bool {
    matches!(cause(error), Error::DuplicateMappingKey { .. })
}
