//! Nothing that an agent plants may run as Sprag.

use super::support::*;
use crate::git::{Exempt, Hook, Stage};
use std::fs;

const EVERY_HOOK: [&str; 12] = [
    "pre-commit",
    "commit-msg",
    "prepare-commit-msg",
    "post-commit",
    "post-index-change",
    "reference-transaction",
    "post-checkout",
    "pre-push",
    "post-rewrite",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "post-merge",
];

#[test]
fn nothing_planted_after_the_start_ever_runs() {
    let mut f = Worktree::new().start();
    let mark = f.repo.mark_turn().unwrap();
    let canary = f.root().join("canary");
    let evil = format!("echo \"$0\" >> {}; cat", canary.display());
    let program = f.script("evil.sh", &evil);
    let program = program.to_str().unwrap();
    for hook in EVERY_HOOK {
        f.script(&format!(".git/hooks/{hook}"), &evil);
        f.script(&format!("planted/{hook}"), &evil);
    }
    f.write(".gitattributes", "* filter=evil diff=evil\n");
    f.write(".git/info/attributes", "* filter=evil2 diff=evil\n");
    let settings = [
        (
            "core.hooksPath",
            f.path("planted").to_str().unwrap().to_owned(),
        ),
        ("core.fsmonitor", program.to_owned()),
        ("core.pager", program.to_owned()),
        ("core.editor", program.to_owned()),
        ("core.sshCommand", program.to_owned()),
        ("core.alternateRefsCommand", program.to_owned()),
        ("filter.evil.clean", program.to_owned()),
        ("filter.evil.smudge", program.to_owned()),
        ("filter.evil2.process", program.to_owned()),
        ("diff.evil.textconv", program.to_owned()),
        ("diff.external", program.to_owned()),
        ("gpg.program", program.to_owned()),
        ("commit.gpgSign", "true".to_owned()),
        ("log.showSignature", "true".to_owned()),
        ("extensions.partialClone", "evil".to_owned()),
        ("remote.evil.promisor", "true".to_owned()),
        ("remote.evil.url", format!("ext::{program}")),
        ("protocol.ext.allow", "always".to_owned()),
    ];
    let plant = |f: &Fixture| {
        let mut config = f.read(".git/config");
        for (key, value) in &settings {
            let (section, name) = key.rsplit_once('.').unwrap();
            let section =
                section.replacen('.', " \"", 1) + if section.contains('.') { "\"" } else { "" };
            config.push_str(&format!("[{section}]\n\t{name} = {value}\n"));
        }
        f.write(
            ".git/config",
            config.replace("repositoryformatversion = 0", "repositoryformatversion = 1"),
        );
    };
    f.write("a", "edited\n");
    f.write("new", "new\n");
    plant(&f);
    f.snapshot();
    f.repo.inspect_turn(&mark).unwrap();
    plant(&f);
    let snapshot = f.snapshot();
    f.repo.patch(&snapshot).unwrap();
    let Stage::Ready(staged) = f.stage(None).unwrap() else {
        panic!()
    };
    assert!(
        f.repo
            .prepare_hook(&Hook::PreCommit, &staged)
            .unwrap()
            .is_none()
    );
    let intent = f.repo.commit_tree(staged, "Safe", &identity()).unwrap();
    plant(&f);
    f.repo.land(&intent).unwrap();
    plant(&f);
    assert!(landed(&f.repo, &intent));
    f.write("b", "edited\n");
    f.repo.restore_tree(&Exempt::default()).unwrap();
    plant(&f);
    f.repo.mark_turn().unwrap();
    assert!(
        !canary.exists(),
        "{}",
        fs::read_to_string(&canary).unwrap_or_default()
    );
    try_git(f.root(), &f.path("."), &["status"], b"");
    assert!(
        canary.exists(),
        "the trap works: plain git runs what was planted"
    );
    f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(f.git(&["cat-file", "blob", "HEAD:new"]), "new");
}

#[test]
fn an_index_in_place_of_an_invalid_one_has_the_time_from_which_git_knows_what_may_have_changed() {
    let f = Worktree::new().start();
    let before = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let open = f.repo.unseal().unwrap();
    let own = fs::File::open(f.repo.private.index()).unwrap();
    own.set_modified(before).unwrap();
    drop(open);
    f.write(".git/index", "no index");
    f.snapshot();
    let index = f.path(".git/index").metadata().unwrap();
    assert_eq!(index.modified().unwrap(), before);
}
