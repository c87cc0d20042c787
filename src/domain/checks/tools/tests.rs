use super::{TABLE, is_header, seen_in, set};
use regex::Regex;

#[test]
fn every_pattern_of_the_table_compiles() {
    assert!(set(|tool| tool.signs).is_some());
    for tool in TABLE {
        for pattern in tool.signs.iter().chain(tool.headers) {
            assert!(Regex::new(pattern).is_ok(), "{}: {pattern}", tool.name);
        }
    }
    assert!(is_header("--- FAIL: TestX") && !is_header("PASS"));
    assert_eq!(seen_in("nothing\n").count(), 0);
}
