//! The policy for other authors' commits before they are kept unchanged: those of another job, and the
//! agent's own. Pure decisions from the facts about a commit.

use crate::domain::commit_message::{compose, reviewed, suggested_by_commit};
use crate::domain::plan::without_owned_keys;
use crate::domain::protected_paths::ProtectedPaths;
use crate::domain::snapshot::RevId;
use crate::git::{
    ChangedPath, CommitFacts, CommitLine, GITLINK, Identity, Signature, display_path,
};
use crate::secrets::detect::Detector;
use entries::{Contents, Rules, is_protected, judge, judge_text};

pub mod entries;

/// How many violations are listed.
const MAX_LISTED: usize = 20;
/// The longest target of a symbolic link, in bytes, that Linux accepts.
const TARGET_BYTES: usize = 4095;
/// The largest file, in bytes, that GitHub accepts.
const FILE_BYTES: u64 = 100 << 20;

const NO_RUN: &str =
    "names no run of Sprag; with `agent-commits: squash` an agent's own commits become Sprag's";

const SYMLINK: u32 = 0o120_000;
const FILES: [u32; 3] = [0, 0o100_644, 0o100_755];
/// The headers of Sprag's commits. Other headers name an encoding, or contain something that cannot be
/// verified here, such as a signature.
const HEADERS: [&str; 4] = ["tree", "parent", "author", "committer"];

/// The rules, as the job that keeps the commits knows them.
pub struct Policy<'a> {
    /// Paths that no commit may change.
    pub protected: &'a ProtectedPaths,
    /// The plan that this job was given, from the root of the tree. Sprag writes the states of tasks
    /// into it, wherever it lies.
    pub plan: Option<&'a str>,
    /// The allowed authors and committers.
    pub identities: &'a [Identity],
    /// The requirements for messages.
    pub messages: Messages<'a>,
    /// Secrets that no commit may contain, and a function that tells whether a commit contains a line of
    /// a text.
    pub secrets: Option<(&'a Detector, LineLookup<'a>)>,
}

/// The requirements for messages.
#[derive(Clone, Copy)]
pub enum Messages<'a> {
    /// Each names this run in `Sprag-Run`.
    OfRun(&'a str),
    /// Each names one run in `Sprag-Run`.
    OfAnyRun,
    /// Each is as Sprag would write it from an agent's suggestion.
    Harmless,
}

/// Reads a path in a commit.
pub type Reader<'a> = &'a dyn Fn(&RevId, &[u8]) -> Option<Vec<u8>>;

/// Whether a file of a commit contains a line of a text.
pub type LineLookup<'a> = &'a dyn Fn(&RevId, &str) -> bool;

/// A commit and the functions to read it.
struct OfCommit<'a> {
    commit: &'a CommitFacts,
    read: Reader<'a>,
    held: Option<LineLookup<'a>>,
}

impl Contents for OfCommit<'_> {
    fn read(&self, entry: &ChangedPath, sink: &mut dyn FnMut(&[u8])) -> bool {
        let content = (self.read)(&self.commit.id, &entry.path);
        content.is_some_and(|content| {
            sink(&content);
            true
        })
    }

    fn before(&self, path: &[u8]) -> Option<Vec<u8>> {
        (self.read)(self.commit.parents.first()?, path)
    }

    fn contained_before(&self, text: &str) -> bool {
        let asked = self.held.zip(self.commit.parents.first());
        asked.is_some_and(|(held, parent)| held(parent, text))
    }
}

/// The violations in the commits, one per line.
pub fn violations(line: &CommitLine, policy: &Policy<'_>, read: Reader<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for commit in &line.commits {
        let short: String = commit.id.0.chars().take(7).collect();
        for what in of_headers(commit, policy)
            .into_iter()
            .chain(of_message(commit, policy))
        {
            found.push(format!("commit {short} {what}"));
        }
        let rules = Rules {
            protected: policy.protected,
            plan: None,
            secrets: policy.secrets.map(|(detector, _)| detector),
        };
        let held = policy.secrets.map(|(_, held)| held);
        let contents = OfCommit { commit, read, held };
        if let Some((detector, _)) = policy.secrets {
            let mut secrets = judge(&commit.changed, &rules, &contents);
            let mut text = Vec::new();
            for who in [&commit.author, &commit.committer] {
                text.extend(format!("{} {}\n", who.name, who.email).into_bytes());
            }
            text.extend_from_slice(&commit.message);
            secrets.extend(judge_text(&text, "its message", detector, &contents));
            for what in secrets.secret_lines() {
                found.push(format!("commit {short}: {what}"));
            }
        }
        for change in &commit.changed {
            let path = display_path(&change.path);
            if let Some(what) = of_change(commit, change, policy, &rules, read) {
                found.push(format!("commit {short}: {path} {what}"));
            }
            let size = line.sizes.get(&change.oid).copied().unwrap_or_default();
            if size > FILE_BYTES {
                let (is, most) = (size >> 20, FILE_BYTES >> 20);
                found.push(format!(
                    "commit {short}: {path} has {is} MiB, more than {most}"
                ));
            }
        }
    }
    let more = found.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        found.truncate(MAX_LISTED);
        found.push(format!("and {more} more"));
    }
    found
}

/// A person on one line.
fn shown(name: &str, email: &str) -> String {
    format!("{} <{}>", name.escape_debug(), email.escape_debug())
}

fn of_headers(commit: &CommitFacts, policy: &Policy<'_>) -> Vec<String> {
    let is_known = |who: &Signature| {
        let same = |known: &Identity| {
            as_git_writes(&known.name) == who.name && as_git_writes(&known.email) == who.email
        };
        policy.identities.iter().any(same)
    };
    let own = policy.identities.iter();
    let own: Vec<String> = own.map(|it| shown(&it.name, &it.email)).collect();
    let people = [("author", &commit.author), ("committer", &commit.committer)];
    let mut found: Vec<String> = people
        .into_iter()
        .filter(|(_, who)| !is_known(who))
        .map(|(role, who)| {
            let (who, own) = (shown(&who.name, &who.email), own.join(" or "));
            format!("has the {role} {who}, and Sprag's commits here have {own}")
        })
        .collect();
    if commit.headers != HEADERS {
        let foreign = commit
            .headers
            .iter()
            .filter(|name| !HEADERS.contains(&name.as_str()));
        let foreign = foreign.map(|name| name.escape_debug().to_string());
        let foreign: Vec<String> = foreign.collect();
        found.push(if foreign.is_empty() {
            "has the same header twice".to_owned()
        } else {
            let foreign = foreign.join(", ");
            format!("has the header {foreign}, which Sprag's commits do not have")
        });
    }
    found
}

/// A name or an address without the characters that git removes.
fn as_git_writes(text: &str) -> String {
    let is_edge = |c: char| c <= ' ' || ".,:;<>\"\\'".contains(c);
    let inner = text.trim_matches(is_edge).chars();
    inner.filter(|c| !"\n<>".contains(*c)).collect()
}

fn of_message(commit: &CommitFacts, policy: &Policy<'_>) -> Option<String> {
    let Ok(message) = std::str::from_utf8(&commit.message) else {
        return Some("has a message that is not UTF-8".to_owned());
    };
    match policy.messages {
        Messages::OfRun(_) | Messages::OfAnyRun => {
            let runs = reviewed(message).map(|read| read.runs).unwrap_or_default();
            match (&policy.messages, runs.as_slice()) {
                (_, []) => Some(NO_RUN.to_owned()),
                (Messages::OfRun(run), [only]) if only == run => None,
                (Messages::OfRun(run), _) => Some(format!("does not name the run {run}")),
                (_, [_]) => None,
                (_, _) => Some("names more than one run of Sprag".to_owned()),
            }
        }
        Messages::Harmless => {
            let clean = suggested_by_commit(message);
            let clean = clean.map(|clean| compose(Some(&clean), "", "", &[]));
            let is_same = clean.is_some_and(|clean| clean.trim_end() == message.trim_end());
            (!is_same).then(|| {
                "has a message with trailers or references that no agent may set".to_owned()
            })
        }
    }
}

fn of_change(
    commit: &CommitFacts,
    change: &ChangedPath,
    policy: &Policy<'_>,
    rules: &Rules<'_>,
    read: Reader<'_>,
) -> Option<&'static str> {
    let path = change.path.as_slice();
    if path.split(|byte| *byte == b'/').any(is_no_name) {
        return Some("is not a name for a file of a project");
    }
    match change.after {
        _ if change.before == GITLINK => return Some("changes a submodule"),
        GITLINK => return Some("is a submodule"),
        SYMLINK => match read(&commit.id, path) {
            Some(target) if !leads_outside(path, &target) => {}
            _ => return Some("is a symbolic link that leads outside"),
        },
        mode if FILES.contains(&mode) => {}
        _ => return Some("is not a file"),
    }
    if policy.plan.is_some_and(|plan| plan.as_bytes() == path) {
        return of_plan(commit, path, read);
    }
    is_protected(change, rules).then_some("is a protected path")
}

/// Only the states of tasks may change in a plan.
fn of_plan(commit: &CommitFacts, path: &[u8], read: Reader<'_>) -> Option<&'static str> {
    let name = String::from_utf8_lossy(path);
    let plan_at = |id: &RevId| without_owned_keys(&name, &read(id, path)?);
    let before = commit.parents.first().and_then(plan_at);
    let is_same = before.is_some() && before == plan_at(&commit.id);
    (!is_same).then_some("is the plan, and more than the states of its tasks changes")
}

fn is_no_name(part: &[u8]) -> bool {
    let is_git = part.eq_ignore_ascii_case(b".git") || part.eq_ignore_ascii_case(b"git~1");
    part.is_empty() || part == b"." || part == b".." || is_git
}

/// Whether a symbolic link's target may lie outside of the tree. A target that goes down and then up
/// again is refused, because it may pass through another link, and tools do not write such targets.
fn leads_outside(path: &[u8], target: &[u8]) -> bool {
    if target.is_empty() || target.len() > TARGET_BYTES || target.contains(&0) {
        return true;
    }
    let above = path.iter().filter(|byte| **byte == b'/').count();
    let (mut up, mut down) = (0, false);
    for part in target.split(|byte| *byte == b'/').enumerate() {
        match part {
            (0, b"") => return true,
            (_, b"" | b".") => {}
            (_, b"..") if down => return true,
            (_, b"..") => up += 1,
            (_, name) if is_no_name(name) => return true,
            _ => down = true,
        }
    }
    up > above
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "https://github.com/o/r/actions/runs/1";
    const KEY: &str = "canary/model+key-7f3a9c";

    fn change(path: &str, before: u32, after: u32) -> ChangedPath {
        let oid = path.to_owned();
        let path = path.as_bytes().to_vec();
        ChangedPath {
            path,
            before,
            after,
            oid,
        }
    }

    fn commit(message: &str, changed: Vec<ChangedPath>) -> CommitLine {
        let who = Signature {
            name: "A".to_owned(),
            email: "a@b".to_owned(),
            when: "1 +0000".to_owned(),
        };
        let id = RevId("c".repeat(40));
        let commit = CommitFacts {
            id: id.clone(),
            parents: vec![RevId("p".repeat(40))],
            author: who.clone(),
            committer: who,
            headers: HEADERS.map(str::to_owned).to_vec(),
            message: message.as_bytes().to_vec(),
            changed,
        };
        CommitLine {
            head: id,
            commits: vec![commit],
            sizes: [("large".to_owned(), FILE_BYTES + 1)].into(),
        }
    }

    fn found_by(facts: &CommitLine, plan: Option<&str>, read: Reader<'_>) -> Vec<String> {
        found_with(facts, plan, Messages::OfRun(RUN), read)
    }

    fn found_with(
        facts: &CommitLine,
        plan: Option<&str>,
        messages: Messages<'_>,
        read: Reader<'_>,
    ) -> Vec<String> {
        let detector = Detector::new([("A_KEY", KEY)]);
        let policy = Policy {
            protected: &ProtectedPaths::of(&[".github/**", "plans/**"]).unwrap(),
            secrets: Some((&detector, &|_, _| false)),
            plan,
            identities: &[Identity {
                name: "A".to_owned(),
                email: "a@b".to_owned(),
            }],
            messages,
        };
        let found = violations(facts, &policy, read);
        found
            .into_iter()
            .map(|line| line.replace("commit ccccccc", "C"))
            .collect()
    }

    fn found(changed: Vec<ChangedPath>, target: &'static [u8]) -> Vec<String> {
        let facts = commit(&format!("Say\n\nSprag-Run: {RUN}\n"), changed);
        found_by(&facts, None, &|_, _| Some(target.to_vec()))
    }

    #[test]
    fn files_and_links_within_the_tree_pass() {
        let changed = vec![
            change("a", 0o100_644, 0o100_755),
            change("b/c", 0o100_644, 0),
            change("docs/link", 0, SYMLINK),
        ];
        assert_eq!(found(changed, b"../README.md"), [""; 0]);
    }

    #[test]
    fn protected_paths_submodules_and_names_of_git_are_refused() {
        let changed = vec![
            change(".github/workflows/ci.yml", 0, 0o100_644),
            change("lib", 0, GITLINK),
            change("old", GITLINK, 0o100_644),
            change("x/.GIT/config", 0, 0o100_644),
            change("odd", 0, 0o100_664),
        ];
        assert_eq!(
            found(changed, b""),
            [
                "C: .github/workflows/ci.yml is a protected path",
                "C: lib is a submodule",
                "C: old changes a submodule",
                "C: x/.GIT/config is not a name for a file of a project",
                "C: odd is not a file",
            ]
        );
        let many = (0..50).map(|n| change(&format!("{n}"), 0, GITLINK));
        let told = found(many.collect(), b"");
        assert_eq!((told.len(), told[20].as_str()), (21, "and 30 more"));
    }

    #[test]
    fn secrets_of_the_job_that_keeps_the_commits_are_refused() {
        let told = |message: &str, path: &str, content: &str| {
            let facts = commit(message, vec![change(path, 0, 0o100_644)]);
            let content = content.as_bytes().to_vec();
            let read = |id: &RevId, _: &[u8]| id.0.starts_with('c').then(|| content.clone());
            found_by(&facts, None, &read)
        };
        let message = format!("Say\n\nSprag-Run: {RUN}\n");
        assert_eq!(told(&message, "a", "nothing"), [""; 0]);
        let utf_16: String = KEY.chars().flat_map(|c| [c, '\0']).collect();
        for content in [KEY, &KEY.replace('-', "%2d"), &utf_16] {
            assert_eq!(
                told(&message, "a", content),
                ["C: the value of A_KEY is in a"]
            );
        }
        let name = KEY.replace('/', "%2f");
        let of_name = ["C: the value of A_KEY is in the name of a file"];
        assert_eq!(told(&message, &name, ""), of_name);
        let secret = format!("Say {KEY}\n\nSprag-Run: {RUN}\n");
        assert_eq!(
            told(&secret, "a", ""),
            ["C: the value of A_KEY is in its message"]
        );
    }

    #[test]
    fn a_link_leads_outside_in_every_way() {
        for target in [
            "/etc/passwd",
            "../x",
            "b/../../x",
            "b/../x",
            ".git/config",
            "a\0b",
            "",
        ] {
            assert!(leads_outside(b"link", target.as_bytes()), "{target}");
        }
        assert!(leads_outside(b"a/link", b"../../x"));
        assert!(leads_outside(b"a/link", &[b'x'; 5000]));
        for target in ["x", "./x", "x//y", "x/"] {
            assert!(!leads_outside(b"link", target.as_bytes()), "{target}");
        }
        assert!(!leads_outside(b"a/b/link", b"../../x"));
    }

    #[test]
    fn only_messages_of_the_run_pass() {
        let told = |message: &str| found_by(&commit(message, Vec::new()), None, &|_, _| None);
        assert_eq!(told(&format!("Say\n\nSprag-Run: {RUN}\n")), [""; 0]);
        for message in ["Say\n", "Say\n\nWhy\n", "[skip ci]\n\nWhy\n"] {
            assert_eq!(told(message), [format!("C {NO_RUN}")]);
        }
        for message in [
            "Say\n\nSprag-Run: 2\n",
            &format!("Say\n\nSprag-Run: {RUN}\nSprag-Run: 2\n"),
            &format!("Say\n\nSprag-Run: {RUN}1\n"),
        ] {
            assert_eq!(told(message), [format!("C does not name the run {RUN}")]);
        }
    }

    #[test]
    fn people_headers_and_sizes_are_sprags_own() {
        let message = format!("Say\n\nSprag-Run: {RUN}\n");
        let told = |forge: fn(&mut CommitFacts)| {
            let mut facts = commit(&message, vec![change("small", 0, 0o100_644)]);
            forge(&mut facts.commits[0]);
            found_by(&facts, None, &|_, _| Some(Vec::new()))
        };
        assert_eq!(told(|_| {}), [""; 0]);
        assert_eq!(
            told(|commit| commit.author.name = "M".to_owned()),
            ["C has the author M <a@b>, and Sprag's commits here have A <a@b>"]
        );
        assert_eq!(
            told(|commit| commit.committer.email = "m@b".to_owned()),
            ["C has the committer A <m@b>, and Sprag's commits here have A <a@b>"]
        );
        assert_eq!(
            told(|commit| commit.headers.push("gpgsig".to_owned())),
            ["C has the header gpgsig, which Sprag's commits do not have"]
        );
        assert_eq!(
            told(|commit| commit.headers.insert(3, "author".to_owned())),
            ["C has the same header twice"]
        );
        assert_eq!(
            told(|commit| commit.message.push(0xff)),
            ["C has a message that is not UTF-8"]
        );
        assert_eq!(
            told(|commit| commit.changed.push(change("large", 0, 0o100_644))),
            ["C: large has 100 MiB, more than 100"]
        );
    }

    #[test]
    fn messages_of_the_agents_own_are_harmless() {
        let told = |message: &str| {
            let facts = commit(message, Vec::new());
            found_with(&facts, None, Messages::Harmless, &|_, _| None).len()
        };
        for message in ["own", "Add\n\nWhy it is so.\n", "Add\n\nRefs: #4\n"] {
            assert_eq!(told(message), 0, "{message}");
        }
        for message in [
            "",
            "Add\n\nFixes #4\n",
            "Add @octocat\n",
            "Add [skip ci]\n",
            "Add\n\nSigned-off-by: A <a@b>\n",
            "Add\n\nSprag-Run: 1\n",
        ] {
            assert_eq!(told(message), 1, "{message}");
        }
    }

    #[test]
    fn of_the_plan_only_states_may_change() {
        let facts = commit(
            &format!("Say\n\nSprag-Run: {RUN}\n"),
            vec![change("plans/p.yaml", 0o100_644, 0o100_644)],
        );
        let plan = |title: &str, status: &str| {
            format!("title: {title}\ntasks:\n  - {{ id: a, title: A, status: {status} }}\n")
        };
        let told = |after: String, known: Option<&str>| {
            let before = plan("T", "pending");
            found_by(&facts, known, &|id, _| {
                let text = if id.0.starts_with('p') {
                    &before
                } else {
                    &after
                };
                Some(text.clone().into_bytes())
            })
        };
        let known = Some("plans/p.yaml");
        assert_eq!(told(plan("T", "done"), known), [""; 0]);
        let refused = "C: plans/p.yaml is the plan, and more than the states of its tasks changes";
        assert_eq!(told(plan("U", "done"), known), [refused]);
        assert_eq!(told("- no plan\n".to_owned(), known), [refused]);
        assert_eq!(
            told(plan("T", "done"), None),
            ["C: plans/p.yaml is a protected path"]
        );
    }
}
