//! Applies the policy to the results of an agent: the work of a turn, its own commits, and what is
//! staged.

use crate::commit_policy::entries::{Contents, Findings, PlanRule, Rules, judge, judge_text};
use crate::domain::protected_paths::ProtectedPaths;
use crate::git::{
    BlobReader, Change, ChangedPath, GITLINK, OwnCommit, RawSnapshot, Repo, Staged, display_path,
};
use crate::run::state::parts::Parts;
use crate::run::state::plan_state::PLAN_LIMIT;
use crate::run::state::work_tree::{WorkTree, head_of};
use crate::secrets::redact::tokens_in;
use std::collections::HashMap;
use std::io::Read as _;

const CHUNK: usize = 64 * 1024;
const FILE: u32 = 0o100_644;
/// How much of a file is searched for tokens, in bytes.
const TOKEN_LIMIT: usize = 1 << 20;
/// How many tokens of a file are looked up in the base.
const TOKENS_LOOKED_UP: usize = 5;

/// The rules of a run.
pub(crate) fn rules<'a>(parts: &'a Parts<'_>, protected: &'a ProtectedPaths) -> Rules<'a> {
    let plan = &parts.tree.plan;
    let file = plan.file.as_ref().zip(plan.in_tree());
    Rules {
        protected,
        plan: file.map(|(file, path)| PlanRule {
            path,
            name: &file.name,
            text: plan.text(),
        }),
        secrets: parts.setup.detector.as_ref(),
    }
}

/// Forbidden changes in the work tree. `nested` are the untracked repositories that existed before. No
/// commit contains a new one, but programs that read a protected directory would find it there.
pub(crate) fn of_work_paths(
    parts: &Parts<'_>,
    protected: &ProtectedPaths,
    nested: &[Vec<u8>],
    raw: &RawSnapshot,
) -> Vec<String> {
    let mut rules = rules(parts, protected);
    rules.secrets = None;
    let since = raw.only(|path| !parts.tree.is_as_started(raw, path));
    let mut found = of_work(&parts.tree, &since, &rules);
    let new = raw.nested.iter().filter(|path| !nested.contains(path));
    let new = new.map(|path| ChangedPath {
        path: path.clone(),
        before: 0,
        after: GITLINK,
        oid: String::new(),
    });
    let objects = Files::stored(&parts.tree.repo);
    found.extend(judge(&new.collect::<Vec<_>>(), &rules, &objects));
    found.path_lines()
}

fn of_work(tree: &WorkTree, raw: &RawSnapshot, rules: &Rules<'_>) -> Findings {
    let all = raw.changes.iter().chain(&raw.uncounted);
    let changes: HashMap<&[u8], &Change> =
        all.map(|change| (change.path.as_slice(), change)).collect();
    let mut entries = raw.changed_paths();
    // Changed comments do not count as a change of the plan, but they are committed and may contain
    // secrets.
    if let Some(plan) = rules.plan.as_ref().filter(|_| rules.secrets.is_some())
        && !changes.contains_key(plan.path)
    {
        entries.push(ChangedPath {
            path: plan.path.to_vec(),
            before: FILE,
            after: FILE,
            oid: String::new(),
        });
    }
    let work = Files {
        work: Some(changes),
        ..Files::stored(&tree.repo)
    };
    judge(&entries, rules, &work)
}

/// Violations in what is staged, read from the staged objects.
pub(crate) fn of_staged(
    parts: &Parts<'_>,
    protected: &ProtectedPaths,
    staged: &Staged,
) -> Findings {
    let objects = Files::stored(&parts.tree.repo);
    judge(staged.changed(), &rules(parts, protected), &objects)
}

/// The staged files with what looks like a token or a private key, and that the base does not contain.
pub(crate) fn new_tokens(tree: &WorkTree, staged: &Staged) -> Vec<String> {
    let objects = Files::stored(&tree.repo);
    let is_file = |entry: &&ChangedPath| ![0, GITLINK].contains(&entry.after);
    let has_one = |entry: &&ChangedPath| {
        let mut content = Vec::new();
        let is_read = objects.read(entry, &mut |bytes| {
            let room = TOKEN_LIMIT.saturating_sub(content.len());
            content.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        });
        let text = String::from_utf8_lossy(&content);
        // Of a private key, the first and the last line are the same in all.
        let longest = |token: &str| {
            let line = token.lines().max_by_key(|line| line.len());
            line.unwrap_or_default().to_owned()
        };
        let found = tokens_in(&text).map(longest).take(TOKENS_LOOKED_UP);
        is_read && found.into_iter().any(|it| !objects.contained_before(&it))
    };
    let entries = staged.changed().iter().filter(is_file).filter(has_one);
    entries.map(|entry| display_path(&entry.path)).collect()
}

/// The locations of secrets in the work tree and, with `has_commits`, in the agent's own commits.
pub(crate) fn secrets_in(parts: &Parts<'_>, raw: &RawSnapshot, has_commits: bool) -> Vec<String> {
    let Some(detector) = &parts.setup.detector else {
        return Vec::new();
    };
    let nothing = ProtectedPaths::default();
    let mut rules = rules(parts, &nothing);
    let mut findings = of_work(&parts.tree, raw, &rules);
    let head = head_of(raw).filter(|_| has_commits);
    // The history keeps what the last commit no longer contains.
    let commits = head.map(|head| parts.tree.repo.commits_after_base(&head));
    let (commits, unread) = match commits.transpose() {
        Ok(commits) => (commits.unwrap_or_default(), None),
        Err(error) => (
            Vec::new(),
            Some(format!("the agent's commits cannot be read: {error}")),
        ),
    };
    rules.plan = None;
    let objects = Files::stored(&parts.tree.repo);
    let place = "a commit by the agent";
    for OwnCommit { text, changed, .. } in &commits {
        findings.extend(judge(changed, &rules, &objects).in_place(place));
        findings.extend(judge_text(text, place, detector, &objects));
    }
    findings.secret_lines().into_iter().chain(unread).collect()
}

/// The protected paths that one of the agent's own commits changes.
pub(crate) fn of_own_commit(
    parts: &Parts<'_>,
    protected: &ProtectedPaths,
    changed: &[ChangedPath],
) -> Vec<String> {
    let mut rules = rules(parts, protected);
    rules.secrets = None;
    judge(changed, &rules, &Files::stored(&parts.tree.repo)).path_lines()
}

/// Files in the object store, of which all together a limited amount is read, or those of the work.
struct Files<'a> {
    repo: &'a Repo,
    objects: BlobReader<'a>,
    /// The changes of the work.
    work: Option<HashMap<&'a [u8], &'a Change>>,
}

impl<'a> Files<'a> {
    fn stored(repo: &'a Repo) -> Self {
        let objects = repo.blob_reader();
        let work = None;
        Self {
            repo,
            objects,
            work,
        }
    }
}

impl Contents for Files<'_> {
    fn read(&self, entry: &ChangedPath, sink: &mut dyn FnMut(&[u8])) -> bool {
        let Some(work) = &self.work else {
            return self.objects.read(&entry.oid, sink).is_ok();
        };
        // An unreadable file counts as read, because it cannot be committed either.
        match work.get(entry.path.as_slice()) {
            None => sink(
                &self
                    .repo
                    .work_file(&entry.path, PLAN_LIMIT)
                    .unwrap_or_default(),
            ),
            Some(change) => {
                let mut chunk = vec![0; CHUNK];
                if let Ok(Some(mut content)) = self.repo.new_content(change) {
                    while let Ok(length @ 1..) = content.read(&mut chunk) {
                        sink(chunk.get(..length).unwrap_or_default());
                    }
                }
            }
        }
        true
    }

    fn before(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.repo.base_file(path).ok().flatten()
    }

    fn contained_before(&self, text: &str) -> bool {
        self.repo.base_holds(text).unwrap_or(false)
    }
}
