//! Comprehensions: macros that evaluate an expression for each entry of a list or each field of a map.

use crate::{
    eval::Run,
    functions,
    node::{Loop, LoopKind, Node},
    stop::{Outcome, Stop},
    value::Val,
};

struct Round<'v> {
    /// The entry of a list, or the key of a map.
    entry: Val<'v>,
    /// With two variables: index and entry of a list, or key and value of a map.
    pair: Option<(Val<'v>, Val<'v>)>,
}

impl<'v> Run<'v> {
    pub(crate) fn iterate(&mut self, at: u32, the_loop: &'v Loop) -> Outcome<'v> {
        match self.eval(&the_loop.range)? {
            Val::List(list) => {
                let rounds = list.iter().enumerate().map(|(index, entry)| Round {
                    pair: the_loop
                        .pairs
                        .then(|| (Val::Int(i64::try_from(index).unwrap_or(i64::MAX)), entry.clone())),
                    entry,
                });
                self.rounds(at, the_loop, rounds)
            }
            Val::Map(fields) => {
                let rounds = fields.iter().map(|(key, value)| Round {
                    pair: the_loop.pairs.then(|| (key.clone(), value)),
                    entry: key,
                });
                self.rounds(at, the_loop, rounds)
            }
            other => Err(Stop::error(format!("cannot iterate over {}", other.type_of())).at(at)),
        }
    }

    fn rounds(
        &mut self,
        at: u32,
        the_loop: &'v Loop,
        rounds: impl Iterator<Item = Round<'v>>,
    ) -> Outcome<'v> {
        match the_loop.kind {
            LoopKind::All => self.quantified(the_loop, rounds, false),
            LoopKind::Exists => self.quantified(the_loop, rounds, true),
            LoopKind::ExistsOne => {
                let mut found = 0;
                for round in rounds {
                    found += usize::from(self.is_true(&round, &the_loop.body)?);
                }
                Ok(Val::Bool(found == 1))
            }
            LoopKind::Filter => {
                let mut kept = Vec::new();
                for round in rounds {
                    if self.is_true(&round, &the_loop.body)? {
                        self.fuel.burn(1)?;
                        kept.push(round.entry);
                    }
                }
                Ok(Val::list(kept))
            }
            LoopKind::List => {
                let mut made = Vec::new();
                for round in rounds {
                    if self.passes(the_loop, &round)? {
                        self.fuel.burn(1)?;
                        made.push(self.round(&round, &the_loop.body)?);
                    }
                }
                Ok(Val::list(made))
            }
            LoopKind::Map | LoopKind::MapEntries => self.made_map(at, the_loop, rounds),
            LoopKind::Sort => {
                let mut keyed = Vec::new();
                for round in rounds {
                    self.fuel.burn(2)?;
                    keyed.push((self.round(&round, &the_loop.body)?, round.entry));
                }
                functions::sort_by(&mut self.fuel, keyed).map_err(|stop| stop.at(at))
            }
        }
    }

    fn made_map(
        &mut self,
        at: u32,
        the_loop: &'v Loop,
        rounds: impl Iterator<Item = Round<'v>>,
    ) -> Outcome<'v> {
        let mut made = Vec::new();
        for round in rounds {
            if !self.passes(the_loop, &round)? {
                continue;
            }
            let result = self.round(&round, &the_loop.body)?;
            if the_loop.kind == LoopKind::Map {
                let key = round.pair.map_or(round.entry, |(key, _)| key);
                self.add_field(&mut made, key, result).map_err(|stop| stop.at(at))?;
                continue;
            }
            let Val::Map(fields) = result else {
                return Err(functions::no_such_overload("transformMapEntry", &[result]).at(at));
            };
            for (key, value) in fields.iter() {
                self.add_field(&mut made, key, value).map_err(|stop| stop.at(at))?;
            }
        }
        Ok(Val::map(made))
    }

    /// A decisive round wins over missing fields and errors of the others, as in CEL.
    fn quantified(
        &mut self,
        the_loop: &'v Loop,
        rounds: impl Iterator<Item = Round<'v>>,
        decisive: bool,
    ) -> Outcome<'v> {
        let mut stop: Option<Stop<'v>> = None;
        for round in rounds {
            match self.is_true(&round, &the_loop.body) {
                Ok(truth) if truth == decisive => return Ok(Val::Bool(decisive)),
                Ok(_) => {}
                Err(Stop::TooExpensive) => return Err(Stop::TooExpensive),
                Err(failed) => stop = Some(failed.or_worse(stop)),
            }
        }
        stop.map_or(Ok(Val::Bool(!decisive)), Err)
    }

    fn passes(&mut self, the_loop: &'v Loop, round: &Round<'v>) -> Result<bool, Stop<'v>> {
        match &the_loop.filter {
            Some(filter) => self.is_true(round, filter),
            None => Ok(true),
        }
    }

    fn is_true(&mut self, round: &Round<'v>, predicate: &'v Node) -> Result<bool, Stop<'v>> {
        let outside = self.enter(round);
        let truth = self.truth(predicate, "predicate", predicate.at);
        self.locals.truncate(outside);
        truth
    }

    fn round(&mut self, round: &Round<'v>, body: &'v Node) -> Outcome<'v> {
        let outside = self.enter(round);
        let value = self.eval(body);
        self.locals.truncate(outside);
        value
    }

    /// Binds the variables of the loop, and returns how many variables there were before.
    fn enter(&mut self, round: &Round<'v>) -> usize {
        let outside = self.locals.len();
        match &round.pair {
            Some((first, second)) => self.locals.extend([first.clone(), second.clone()]),
            None => self.locals.push(round.entry.clone()),
        }
        outside
    }
}
