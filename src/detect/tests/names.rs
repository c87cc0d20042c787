use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #[test]
    fn names_are_unique_and_builds_come_first(
        files in proptest::collection::vec((any_name(), any_text()), 0..12)
    ) {
        let mut root = Listing::new();
        for (name, text) in files {
            root.text(name, text);
        }
        let checks: Vec<_> = propose(&root).checks.into_iter().map(|it| it.what).collect();
        let names: BTreeSet<_> = checks.iter().map(|check| &check.name).collect();
        prop_assert_eq!(names.len(), checks.len());
        prop_assert!(checks.is_sorted_by_key(|check| check.kind));
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(
            super::super::MANIFESTS
                .split_whitespace()
                .collect::<Vec<_>>()
        )
        .prop_map(str::to_owned),
        proptest::sample::select(&["go.mod", "a.sln", "mix.exs", "tests", "uv.lock"][..])
            .prop_map(str::to_owned),
        "\\PC{0,8}",
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{"scripts":{"test":"x","lint":"y","typecheck":"z","build":"w"}}"#.to_owned()),
        Just("test:\nbuild:\nlint:\n".to_owned()),
        "\\PC{0,40}",
    ]
}
