//! The base's rules, moved to one list, have the same meaning as in their own places.

use super::support::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const DIRECTORIES: [&str; 4] = ["", "p/", "p/q/", "a[1]*/"];
const NAMES: [&str; 6] = ["a", "b", "x.o", "!x", "#y", "z "];

fn rules() -> impl Strategy<Value = String> {
    let rule = prop::sample::select(vec![
        "*.o", "/a", "a/", "!b", "q/b", "p/", "**/a", "q/**", "p/*", "\\!x", "\\#y", "# y", "z ",
        "z\\ ", "!/a", "!x.o", "[ab]", "?", "!q/", "/*", "!/p", "", "b\r", "/", "**/q/a", "!*/",
    ]);
    prop::collection::vec(rule, 0..5).prop_map(|rules| rules.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn base_rules_ignore_what_git_ignores(rules in prop::collection::vec(rules(), 4)) {
        let g = Worktree::new();
        for (directory, rules) in DIRECTORIES.iter().zip(&rules) {
            g.write(format!("{directory}.gitignore"), rules);
        }
        g.git(&["add", "-f", "."]);
        g.git(&["commit", "-qm", "rules"]);
        let f = g.start();
        for directory in DIRECTORIES {
            NAMES.iter().for_each(|name| f.write(format!("{directory}{name}"), "x"));
        }
        let listed = f.git(&["ls-files", "-z", "--others", "--exclude-standard"]);
        let expected: BTreeSet<String> =
            listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        let layout = f.repo.layout().unwrap();
        let found = f.repo.untracked_by_base_rules(&layout).unwrap();
        let found: BTreeSet<String> =
            found.into_iter().map(|path| String::from_utf8(path).unwrap()).collect();
        prop_assert_eq!(found, expected);
    }
}
