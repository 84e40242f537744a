//! After every event, the table is what an evaluation from scratch gives.

use std::{collections::BTreeMap, env, sync::Arc};

use bellwether_tables::Collector;
use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestRunner},
};

use crate::{
    naive::NaiveCollector,
    random::{Event, events, spec},
    sample::NamedTable,
};

/// The number of random collectors. `TABLES_CASES` sets another one.
const CASES: u32 = 10_000;

#[test]
fn a_table_is_what_an_evaluation_from_scratch_gives() {
    let cases = env::var("TABLES_CASES").ok().map_or(CASES, |cases| cases.parse().expect("a number"));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&(spec(), events()), |(spec, events)| {
        let collector = Collector::compile(&spec).map_err(|errors| {
            TestCaseError::fail(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        })?;
        let naive = NaiveCollector::new(&spec);
        let mut table = NamedTable::new(collector);
        let mut rows = BTreeMap::new();
        let mut before = table.result("any");
        prop_assert_eq!(&before, &naive.result("any", &rows));
        for event in events {
            let changed = match event {
                Event::Upsert(cluster, row) => {
                    let changed = table.upsert(&Arc::from(cluster), &row.row());
                    rows.insert(cluster.to_owned(), row);
                    changed
                }
                Event::Remove(cluster) => {
                    rows.remove(cluster);
                    table.remove(cluster)
                }
            };
            let result = table.result("any");
            prop_assert_eq!(&result, &naive.result("any", &rows));
            prop_assert!(changed || result == before, "the result changed without notice");
            before = result;
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
