//! Applies the policy to changed files, in one place for what is staged, the work of a turn, and other
//! people's commits.

use crate::domain::plan::keeps_settings;
use crate::domain::protected_paths::ProtectedPaths;
use crate::git::{ChangedPath, GITLINK, display_path};
use crate::secrets::detect::{DetectedSecret, Detector};
use std::collections::{BTreeMap, BTreeSet};

const SYMLINK: u32 = 0o120_000;

/// The rules for what a commit changes and contains.
pub struct Rules<'a> {
    /// Paths that must not change.
    pub protected: &'a ProtectedPaths,
    /// The plan of the run, which Sprag itself changes.
    pub plan: Option<PlanRule<'a>>,
    /// Secrets that must not be committed.
    pub secrets: Option<&'a Detector>,
}

/// The plan of the run. Its texts may change wherever it lies, but not the settings that decide which
/// programs run.
pub struct PlanRule<'a> {
    /// Its path relative to the root of the tree.
    pub path: &'a [u8],
    /// The file name given to the parser.
    pub name: &'a str,
    /// Its text when the run read it.
    pub text: &'a str,
}

/// Access to the content that is judged.
pub trait Contents {
    /// Passes the new content of an entry to `sink`: of a file, or the target of a link. `false` if it
    /// cannot be read.
    fn read(&self, entry: &ChangedPath, sink: &mut dyn FnMut(&[u8])) -> bool;
    /// The earlier content of a path.
    fn before(&self, path: &[u8]) -> Option<Vec<u8>>;
    /// Whether any file contained a line of this text before.
    fn contained_before(&self, text: &str) -> bool;
}

/// How many files that could not be searched are named.
const NAMED: usize = 20;

/// The largest plan in bytes.
const PLAN_LIMIT: usize = 1 << 20;

/// The violations that were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The locations of secrets, with the names of the variables that hold them.
    secrets: BTreeMap<String, BTreeSet<String>>,
    /// Files that could not be searched for secrets.
    unread: Vec<String>,
    /// The path of the plan, if the settings in it changed.
    plan: Option<String>,
    /// Protected paths that changed.
    protected: Vec<String>,
}

impl Findings {
    /// One line for each kind and location.
    pub fn lines(self) -> Vec<String> {
        let mut lines = self.secret_lines();
        lines.extend(self.plan.map(|path| {
            format!("the plan {path} was changed in what it has run, and only its words may change")
        }));
        if !self.protected.is_empty() {
            let paths = self.protected.join(", ");
            lines.push(format!("protected paths were changed: {paths}"));
        }
        lines
    }

    /// As [`Findings::lines`], for secrets only.
    pub fn secret_lines(&self) -> Vec<String> {
        let told = self.secrets.iter().map(|(place, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("the value of {} is in {place}", names.join(" and of "))
        });
        let unread = self
            .unread
            .iter()
            .take(NAMED)
            .map(|path| format!("{path} could not be searched for secrets"));
        let further = self.unread.len().saturating_sub(NAMED);
        let further = (further > 0)
            .then(|| format!("{further} more files could not be searched for secrets"));
        told.chain(unread).chain(further).collect()
    }

    /// As [`Findings::lines`], for paths only.
    pub fn path_lines(mut self) -> Vec<String> {
        self.secrets.clear();
        self.unread.clear();
        self.lines()
    }

    /// The same findings with one location for all secrets.
    #[must_use]
    pub fn in_place(mut self, place: &str) -> Self {
        let names: BTreeSet<String> = self.secrets.into_values().flatten().collect();
        self.secrets = BTreeMap::new();
        if !names.is_empty() {
            self.secrets.insert(place.to_owned(), names);
        }
        self
    }

    /// Adds other findings.
    pub fn extend(&mut self, other: Self) {
        for (place, names) in other.secrets {
            self.secrets.entry(place).or_default().extend(names);
        }
        self.unread.extend(other.unread);
        self.plan = self.plan.take().or(other.plan);
        self.protected.extend(other.protected);
    }
}

/// Whether an entry changes a protected path. The plan is judged by its content instead.
pub fn is_protected(entry: &ChangedPath, rules: &Rules<'_>) -> bool {
    let is_plan = rules
        .plan
        .as_ref()
        .is_some_and(|plan| plan.path == entry.path);
    let leads_elsewhere = [GITLINK, SYMLINK].contains(&entry.after);
    (!is_plan || leads_elsewhere) && rules.protected.cover(&entry.path, leads_elsewhere)
}

/// The violations in these entries.
pub fn judge(entries: &[ChangedPath], rules: &Rules<'_>, contents: &dyn Contents) -> Findings {
    let mut findings = Findings::default();
    let mut search = Search {
        contents,
        held: BTreeMap::new(),
    };
    for entry in entries {
        let shown = || display_path(&entry.path);
        if is_protected(entry, rules) {
            findings.protected.push(shown());
        }
        let is_there = ![0, GITLINK].contains(&entry.after);
        let plan = rules
            .plan
            .as_ref()
            .filter(|plan| is_there && plan.path == entry.path);
        if plan.is_some_and(|plan| changes_what_runs(plan, entry, contents)) {
            findings.plan = Some(shown());
        }
        if let Some(detector) = rules.secrets.filter(|_| entry.after != 0) {
            search.names(detector, entry, &mut findings);
            if is_there {
                search.content(detector, entry, &mut findings);
            }
        }
    }
    findings
}

/// The secrets in a text without a path, such as a message.
pub fn judge_text(
    text: &[u8],
    place: &str,
    detector: &Detector,
    contents: &dyn Contents,
) -> Findings {
    let mut search = Search {
        contents,
        held: BTreeMap::new(),
    };
    let seen = detector.find(text).into_iter();
    let seen = seen.filter(|seen| !search.is_held(seen));
    let names: BTreeSet<String> = seen.map(|seen| seen.name).collect();
    let mut findings = Findings::default();
    if !names.is_empty() {
        findings.secrets.insert(place.to_owned(), names);
    }
    findings
}

fn changes_what_runs(plan: &PlanRule<'_>, entry: &ChangedPath, contents: &dyn Contents) -> bool {
    let mut text = Vec::new();
    contents.read(entry, &mut |bytes| {
        let room = (PLAN_LIMIT + 1).saturating_sub(text.len());
        text.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    });
    // A larger file is not read as a plan.
    text.len() <= PLAN_LIMIT && !keeps_settings(plan.name, plan.text, &text)
}

struct Search<'c> {
    contents: &'c dyn Contents,
    /// Whether the earlier state contains a form of a secret, by that form.
    held: BTreeMap<String, bool>,
}

impl Search<'_> {
    /// A text that was committed before is not a secret.
    fn is_held(&mut self, seen: &DetectedSecret) -> bool {
        let contents = self.contents;
        *self
            .held
            .entry(seen.form.clone())
            .or_insert_with(|| contents.contained_before(&seen.form))
    }

    fn names(&mut self, detector: &Detector, entry: &ChangedPath, findings: &mut Findings) {
        for seen in detector.find(&entry.path) {
            if !self.is_held(&seen) {
                let place = findings.secrets.entry("the name of a file".to_owned());
                place.or_default().insert(seen.name);
            }
        }
    }

    fn content(&mut self, detector: &Detector, entry: &ChangedPath, findings: &mut Findings) {
        let mut found = detector.search();
        if !self.contents.read(entry, &mut |bytes| found.read(bytes)) {
            findings.unread.push(display_path(&entry.path));
        }
        let mut seen = found.end();
        seen.retain(|seen| !self.is_held(seen));
        if seen.is_empty() {
            return;
        }
        // The value may be encoded or escaped, so the search is repeated in the earlier version of the
        // file.
        if let Some(before) = self.contents.before(&entry.path) {
            let known = detector.find(&before);
            seen.retain(|seen| !known.contains(seen));
        }
        if !seen.is_empty() {
            let place = findings.secrets.entry(display_path(&entry.path));
            place
                .or_default()
                .extend(seen.into_iter().map(|seen| seen.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "canary/model+key-7f3a9c";

    /// Files with their new and their earlier content.
    struct Files(Vec<(&'static str, Option<String>, Option<String>)>);

    impl Contents for Files {
        fn read(&self, entry: &ChangedPath, sink: &mut dyn FnMut(&[u8])) -> bool {
            let file = self.0.iter().find(|file| file.0.as_bytes() == entry.path);
            let content = file.and_then(|file| file.1.as_ref());
            content.is_some_and(|content| {
                sink(content.as_bytes());
                true
            })
        }

        fn before(&self, path: &[u8]) -> Option<Vec<u8>> {
            let file = self.0.iter().find(|file| file.0.as_bytes() == path)?;
            file.2.clone().map(String::into_bytes)
        }

        fn contained_before(&self, text: &str) -> bool {
            let before = self.0.iter().filter_map(|file| file.2.as_deref());
            before.into_iter().any(|content| content.contains(text))
        }
    }

    fn found(path: &'static str, mode: u32, after: &str, before: Option<&str>) -> Vec<String> {
        let detector = Detector::new([("A_KEY", KEY)]);
        let text = "verify: [make]\ntasks: [{ id: a, title: A }]\n";
        let rules = Rules {
            protected: &ProtectedPaths::of(&[".github/**", "plans/**"]).unwrap(),
            plan: Some(PlanRule {
                path: b"plans/p.yaml",
                name: "p.yaml",
                text,
            }),
            secrets: Some(&detector),
        };
        let entry = ChangedPath {
            path: path.as_bytes().to_vec(),
            before: 0,
            after: mode,
            oid: String::new(),
        };
        let files = Files(vec![(
            path,
            Some(after.to_owned()),
            before.map(str::to_owned),
        )]);
        judge(&[entry], &rules, &files).lines()
    }

    #[test]
    fn every_kind_of_entry_is_judged_by_its_path() {
        let protected = |path| vec![format!("protected paths were changed: {path}")];
        for mode in [0, 0o100_644, SYMLINK, GITLINK] {
            assert_eq!(found(".GitHub", mode, "", None), protected(".GitHub"));
            assert_eq!(found("src/a", mode, "", None), [""; 0]);
        }
        assert_eq!(found(".github/x", 0, "", None), protected(".github/x"));
    }

    #[test]
    fn the_plan_may_change_in_words_and_be_no_link() {
        let path = "plans/p.yaml";
        let words = "verify: [make]\ntasks: [{ id: a, title: Other, status: done }]\n";
        assert_eq!(found(path, 0o100_644, words, None), [""; 0]);
        let runs = "verify: ['true']\ntasks: [{ id: a, title: A }]\n";
        let told = found(path, 0o100_644, runs, None);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("only its words may change"), "{told:?}");
        assert_eq!(found(path, SYMLINK, "x", None).len(), 1);
    }

    #[test]
    fn a_secret_is_told_by_its_place_unless_it_was_there_before() {
        let told = |place: &str| vec![format!("the value of A_KEY is in {place}")];
        assert_eq!(found("a", 0o100_644, KEY, None), told("a"));
        assert_eq!(found("a", SYMLINK, KEY, None), told("a"));
        assert_eq!(found("a", 0o100_644, KEY, Some(KEY)), [""; 0]);
        let escaped = KEY.replace('-', "\\u002d");
        assert_eq!(found("a", 0o100_644, &escaped, None), told("a"));
        let more = format!("{escaped} and more");
        assert_eq!(found("a", 0o100_644, &more, Some(&escaped)), [""; 0]);
        let name = "canary%2fmodel+key-7f3a9c";
        assert_eq!(found(name, 0o100_644, "", None), told("the name of a file"));
        assert_eq!(found(name, 0, "", None), [""; 0]);
    }
}
