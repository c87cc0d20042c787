//! Filters that git starts run through a launcher too: they work at each level, and one that is a file of the work tree
//! is as confined as the agent that can change it.

use super::{by_default, everywhere, project, run, strict};
use crate::repositories::{delta, has};
use crate::support::due;
use crate::support::proc::left_in;
use crate::support::project::{Project, Run, plan};
use crate::support::user::User;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A filter of the work tree, and the settings for it.
const CLEAN: &str = "#!/bin/sh\ntr a-z A-Z\n";
const SMUDGE: &str = "#!/bin/sh\ntr A-Z a-z\n";

/// A project with one filtered file, whose filter is in the work tree.
fn filtered(required: bool) -> Project {
    let project = project(&[("plan.yaml", &plan("grep -q fixed a.up")), ("b.txt", "b\n")]);
    program(&project, "tools/clean.sh", CLEAN);
    program(&project, "tools/smudge.sh", SMUDGE);
    project.git(&["config", "filter.up.clean", "./tools/clean.sh %f"]);
    project.git(&["config", "filter.up.smudge", "./tools/smudge.sh %f"]);
    if required {
        project.git(&["config", "filter.up.required", "true"]);
    }
    project.write(".gitattributes", "*.up filter=up\n");
    project.write("a.up", "broken\n");
    project.commit_all("filtered");
    assert_eq!(project.git(&["show", "HEAD:a.up"]), "BROKEN");
    project
}

fn program(project: &Project, name: &str, text: &str) {
    project.write(name, text);
    let path = project.repo().join(name);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn shown(project: &Project, what: &str) -> String {
    project.git(&["-c", "safe.directory=*", "show", what])
}

/// A run as every user at every level, and with the defaults.
fn at_every_level(make: impl Fn() -> Project, agent: &str, show: impl Fn(&Project, Run, u8)) {
    everywhere(&[1, 2, 3], |user, level| {
        let project = make();
        if let Some(run) = run(user, &project, level, agent, &[]) {
            show(&project, run, level);
        }
    });
    for user in User::all() {
        let project = make();
        let agent = project.agent(agent);
        if let Some(run) = by_default(user, &project, &agent) {
            show(&project, run, 2);
        }
    }
}

#[test]
fn an_honest_filter_works_at_every_level() {
    let agent = "echo fixed > a.up; echo new > dir.up; echo c > b.txt";
    at_every_level(
        || filtered(true),
        agent,
        |project, run, level| {
            run.expect(0);
            assert_eq!(shown(project, "HEAD:a.up"), "FIXED", "level {level}");
            assert_eq!(shown(project, "HEAD:dir.up"), "NEW");
            assert_eq!(shown(project, "HEAD:b.txt"), "c");
            assert_eq!(project.read("a.up"), "fixed\n");
        },
    );
}

/// A plan whose first task fails, so that its work is undone before the second one.
const UNDONE: &str = "title: Undone\nverify: ['test -e ok.txt']\ntasks:\n  - { id: one, title: One }\n  - { id: two, title: Two }\n";

#[test]
fn what_is_undone_has_the_contents_that_its_filter_makes() {
    let agent = "if [ $SPRAG_TASK_ID = two ]; then echo ok > ok.txt; exit; fi
        echo wrong > a.up; echo more > b.up; chmod +x a.up; rm b.txt; mkdir b.txt; echo x > b.txt/x";
    everywhere(&[1, 2, 3], |user, level| {
        let project = filtered(true);
        project.write("plan.yaml", UNDONE);
        project.commit_all("two tasks");
        let more = ["--keep-going", "--max-retries", "0"];
        let Some(run) = run(user, &project, level, agent, &more) else {
            return;
        };
        let run = run.expect(1);
        assert_eq!(project.read("a.up"), "broken\n", "{}", run.stdout);
        assert_eq!(project.read("b.txt"), "b\n");
        let mode = fs::metadata(project.repo().join("a.up")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o111, 0);
        assert_eq!(shown(&project, "HEAD:ok.txt"), "ok");
        let status = ["-c", "safe.directory=*", "status", "--porcelain"];
        assert_eq!(project.git(&status), "");
    });
}

/// git takes a file whose size is not the noted one for changed, whatever its filter makes of it.
#[test]
fn what_is_undone_is_unchanged_for_git_whatever_size_its_filter_makes() {
    let agent = "if [ $SPRAG_TASK_ID = two ]; then echo ok > ok.txt; exit; fi
        echo wrong > a.up; rm c.up; echo more > n.up";
    everywhere(&[1, 2, 3], |user, level| {
        let project = filtered(true);
        program(&project, "tools/clean.sh", "#!/bin/sh\ncut -c 1-3\n");
        program(
            &project,
            "tools/smudge.sh",
            "#!/bin/sh\nsed s/$/-smudged/\n",
        );
        for name in ["a.up", "c.up"] {
            project.write(name, "one of an odd size\n");
        }
        project.write("plan.yaml", UNDONE);
        project.commit_all("two tasks");
        let more = ["--keep-going", "--max-retries", "0"];
        let Some(run) = run(user, &project, level, agent, &more) else {
            return;
        };
        run.expect(1);
        assert_eq!(project.read("a.up"), "one-smudged\n");
        assert_eq!(project.read("c.up"), "one-smudged\n");
        let status = ["-c", "safe.directory=*", "status", "--porcelain"];
        assert_eq!(project.git(&status), "", "level {level}");
    });
}

#[test]
fn a_filter_that_the_agent_rewrites_reaches_no_further_than_its_level() {
    let make = || {
        let project = filtered(true);
        fs::create_dir(project.beside("beside")).unwrap();
        fs::write(project.beside("beside/theirs"), "theirs\n").unwrap();
        project
    };
    // `$R` is the directory of the project.
    let agent = r#"R=$(cd ..; pwd)
        cat > tools/clean.sh <<END
#!/bin/sh
for place in $R/home $R/beside $R/state $R/state/sprag/*/* $R/state/sprag/*/*/* $R/state/sprag/*/*/git/git $R/repo $R/repo/.git $R/repo/.git/hooks \
    $R/state/sprag/*/*/git/git/info $R/state/sprag/*/*/git/programs; do
  (: > "\$place/reached") 2>/dev/null
done
for file in $R/beside/theirs $R/state/sprag/*/*/git/git/config $R/state/sprag/*/*/git/git/index $R/repo/.git/config $R/repo/b.txt \
    $R/state/sprag/*/*/git/git/objects/info/alternates $R/state/sprag/*/*/git/programs/*; do
  (echo reached >> "\$file") 2>/dev/null
done
(trap '' TERM HUP; setsid sh -c 'while :; do sleep 0.1; (: > $R/beside/survived) 2>/dev/null; (: > $R/repo/survived) 2>/dev/null; done' </dev/null >/dev/null 2>&1 &)
(while :; do sleep 1; done) >/dev/null &
tr a-z A-Z
END
        echo fixed > a.up"#;
    at_every_level(make, agent, |project, run, level| {
        let root = project.beside(".");
        let left = left_in(project, &[]);
        assert!(left.is_empty(), "level {level}: these are left: {left:?}");
        if level == 1 {
            return;
        }
        let run = run.expect(0);
        assert_eq!(shown(project, "HEAD:a.up"), "FIXED", "{}", run.stdout);
        assert_eq!(shown(project, "HEAD:b.txt"), "b");
        let found = std::process::Command::new("find")
            .arg(&root)
            .args(["(", "-name", "reached", "-o", "-name", "survived", ")"])
            .output();
        assert_eq!(
            String::from_utf8_lossy(&found.unwrap().stdout),
            "",
            "level {level}"
        );
        let theirs = fs::read_to_string(project.beside("beside/theirs")).unwrap();
        assert_eq!(theirs, "theirs\n");
        let written = std::process::Command::new("grep")
            .args([
                "-rl",
                "--include=config",
                "--include=alternates",
                "--include=filters",
                "^reached",
            ])
            .arg(&root)
            .output();
        assert_eq!(String::from_utf8_lossy(&written.unwrap().stdout), "");
    });
}

/// `git status` starts the filter for a file whose size is not the noted one.
#[test]
fn a_filter_is_confined_too_while_a_run_looks_for_uncommitted_changes() {
    for user in User::all() {
        let project = filtered(true);
        let reached = project.beside("home").join("reached");
        let text = format!(
            "#!/bin/sh\n(: > {}) 2>/dev/null\ntr a-z A-Z\n",
            reached.display()
        );
        program(&project, "tools/clean.sh", &text);
        project.commit_all("another filter");
        let _ = fs::remove_file(&reached);
        project.write("a.up", "changed\n");
        let other = filtered(true);
        if by_default(user, &other, &other.agent("echo fixed > a.up")).is_none() {
            continue;
        }
        let args = ["run", "--plan", "plan.yaml", "--agent-command", "true"];
        let run = user.sprag(&project, &args).unwrap().expect(2);
        assert!(
            run.stderr
                .contains("the work tree is not clean:\n    a.up\n"),
            "{}",
            run.stderr
        );
        assert!(!reached.exists());
    }
}

#[test]
fn a_filter_that_fails_commits_nothing_whether_it_is_required_or_not() {
    for required in [true, false] {
        let agent = "printf '#!/bin/sh\\necho no such thing >&2; exit 3\\n' > tools/clean.sh; echo fixed > a.up";
        at_every_level(
            || filtered(required),
            agent,
            |project, run, level| {
                let run = run.expect(1);
                let said = run.task(0)["message"].as_str().unwrap().to_owned();
                assert_eq!(run.task(0)["reason"], "commit_rejected", "{said}");
                assert_eq!(
                    said.matches("no such thing").count(),
                    1,
                    "level {level}: {said}"
                );
                assert!(said.contains("`git config --get-regexp ^filter`"), "{said}");
                assert_eq!(shown(project, "HEAD:a.up"), "BROKEN");
            },
        );
    }
}

#[test]
fn what_a_filter_may_not_write_is_told_with_the_setting_that_allows_it() {
    let make = || {
        let project = filtered(false);
        let cache = project.beside("home").join("of-filter");
        fs::create_dir(&cache).unwrap();
        let clean = format!("#!/bin/sh\nset -e\n: > {}/x\ntr a-z A-Z\n", cache.display());
        let path = project.beside("clean.sh");
        fs::write(&path, clean).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        project.git(&["config", "filter.up.clean", path.to_str().unwrap()]);
        project
    };
    let agent = "echo fixed > a.up";
    everywhere(&[2, 3], |user, level| {
        let project = make();
        let place = project
            .beside("home")
            .join("of-filter")
            .to_str()
            .unwrap()
            .to_owned();
        let script = super::script(&project, agent);
        let args = ["run", "--plan", "plan.yaml", "--agent-command", &script];
        let required = ["--sandbox", &strict(level)];
        if let Some(run) = user.sprag(&project, &[&args[..], &required[..]].concat()) {
            // git runs the filter before the first turn if the times of the file have changed.
            assert!([1, 2].contains(&run.code), "{}", run.stdout);
            let said = format!("{}{}", run.stdout, run.stderr);
            let expected = format!("{place}/x could not be written");
            assert!(
                said.contains(&expected) && said.contains("sandbox_write"),
                "{said}"
            );
        }
        let project = make();
        let place = project
            .beside("home")
            .join("of-filter")
            .to_str()
            .unwrap()
            .to_owned();
        if let Some(run) = run(user, &project, level, agent, &["--sandbox-write", &place]) {
            run.expect(0);
            assert_eq!(shown(&project, "HEAD:a.up"), "FIXED");
        }
    });
}

#[test]
fn the_real_git_lfs_works_at_every_level() {
    if !has("GIT-LFS", &["git-lfs", "version"]) {
        return;
    }
    let make = || {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.bin"))]);
        project.git(&["lfs", "install", "--local", "--skip-repo"]);
        project.git(&["lfs", "track", "*.bin"]);
        project.write("a.bin", "broken\n");
        project.commit_all("tracked");
        project
    };
    let agent = "echo fixed > a.bin; echo new > b.bin";
    at_every_level(make, agent, |project, run, level| {
        let run = run.expect(0);
        let pointer = "version https://git-lfs.github.com/spec/v1";
        assert!(shown(project, "HEAD:a.bin").starts_with(pointer));
        assert!(
            shown(project, "HEAD:b.bin").starts_with(pointer),
            "{}",
            run.stdout
        );
        let checked = project.git(&["-c", "safe.directory=*", "lfs", "fsck"]);
        assert!(checked.contains("OK"), "level {level}: {checked}");
    });
    let agent = "if [ $SPRAG_TASK_ID = two ]; then echo ok > ok.txt; exit; fi; echo wrong > a.bin";
    everywhere(&[1, 2, 3], |user, level| {
        let project = make();
        project.write("plan.yaml", UNDONE);
        project.commit_all("two tasks");
        let more = ["--keep-going", "--max-retries", "0"];
        if let Some(run) = run(user, &project, level, agent, &more) {
            run.expect(1);
            assert_eq!(project.read("a.bin"), "broken\n");
        }
    });
}

/// Earlier versions of git-lfs install another command, and a script can start it.
#[test]
fn git_lfs_keeps_contents_whatever_command_starts_it() {
    if !has("GIT-LFS", &["git-lfs", "version"]) {
        return;
    }
    let commands = [("big", "SCRIPT"), ("lfs", "git lfs"), ("big", "git lfs")];
    for (name, command) in due(&commands, 2) {
        everywhere(&[2, 3], |user, level| {
            let project = project(&[("plan.yaml", &plan("grep -q fixed a.bin"))]);
            program(&project, "../script.sh", "#!/bin/sh\nexec git-lfs \"$@\"\n");
            let script = project.beside("script.sh");
            let command = command.replace("SCRIPT", script.to_str().unwrap());
            for (variable, word) in [("clean", "clean"), ("smudge", "smudge")] {
                let key = format!("filter.{name}.{variable}");
                project.git(&["config", &key, &format!("{command} {word} -- %f")]);
            }
            project.git(&["config", &format!("filter.{name}.required"), "true"]);
            project.write(".gitattributes", &format!("*.bin filter={name}\n"));
            project.write("a.bin", "broken\n");
            project.commit_all("tracked");
            let agent = "echo fixed > a.bin; echo new > b.bin";
            let Some(run) = run(user, &project, level, agent, &[]) else {
                return;
            };
            let run = run.expect(0);
            let pointer = "version https://git-lfs.github.com/spec/v1";
            for file in ["HEAD:a.bin", "HEAD:b.bin"] {
                assert!(shown(&project, file).starts_with(pointer), "{}", run.stdout);
            }
        });
    }
}

#[test]
fn a_repository_without_filters_starts_no_git_through_a_launcher() {
    for (has_filter, expected) in [(false, false), (true, true)] {
        let mut project = if has_filter {
            filtered(true)
        } else {
            project(&[("plan.yaml", &plan("grep -q fixed a.up"))])
        };
        let path = std::env::var_os("PATH").unwrap();
        let mut dirs = std::env::split_paths(&path).map(|dir| dir.join("git"));
        let real = dirs.find(|git| git.is_file()).unwrap();
        let bin = project.beside("bin");
        fs::create_dir(&bin).unwrap();
        let git = format!(
            "#!/bin/sh\n(tr '\\0' ' ' < /proc/$PPID/cmdline | cut -c1-20 >> {}) 2>/dev/null\nexec {} \"$@\"\n",
            project.outside("parents").display(),
            real.display()
        );
        fs::write(bin.join("git"), git).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let dirs = [bin].into_iter().chain(std::env::split_paths(&path));
        project.env("PATH", std::env::join_paths(dirs).unwrap());
        let notes = project.outside("").display().to_string();
        let agent = project.agent("echo fixed > a.up");
        let agent = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
        let places = ["--sandbox", &strict(1), "--sandbox-write", &notes];
        project.sprag(&[&agent[..], &places].concat()).expect(0);
        let parents = project.notes("parents");
        assert!(parents.len() > 5);
        let launched = parents.iter().any(|line| line.starts_with("sprag-sandbox"));
        assert_eq!(launched, expected, "{parents:#?}");
    }
}

#[test]
fn a_run_without_a_sandbox_has_filters_without_one() {
    let mut project = filtered(true);
    project.env("SPRAG_SANDBOX", "off");
    let run = project.by("echo fixed > a.up", &[]).expect(0);
    assert_eq!(run.summary["sandbox"]["level"], json!("off"));
    assert_eq!(shown(&project, "HEAD:a.up"), "FIXED");
    let base = format!("{}~1", project.head());
    assert_eq!(delta(&project, &base), ["M a.up", "M plan.yaml"]);
}

#[test]
fn a_program_of_the_work_tree_signs_no_commit() {
    let sign = "#!/bin/sh\ncat > /dev/null\necho '-----BEGIN PGP SIGNATURE-----'\necho '-----END PGP SIGNATURE-----'\n\
        echo '[GNUPG:] SIG_CREATED ' >&2\n";
    let make = |key: &str, value: &str| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        program(&project, "tools/sign.sh", sign);
        project.commit_all("signer");
        fs::create_dir(project.beside("bin")).unwrap();
        let link = project.beside("bin").join("signer");
        std::os::unix::fs::symlink(project.repo().join("tools/sign.sh"), link).unwrap();
        let outside = project.beside("sign.sh");
        fs::write(&outside, sign).unwrap();
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o755)).unwrap();
        project.git(&["config", "commit.gpgSign", "true"]);
        let value = value.replace("ROOT", project.beside(".").to_str().unwrap());
        project.git(&["config", key, &value]);
        project
    };
    let refused = [
        ("gpg.program", "./tools/sign.sh"),
        ("gpg.program", "ROOT/bin/../repo/tools/sign.sh"),
        ("gpg.openpgp.program", "ROOT/bin/signer"),
        ("gpg.program", "not/there/yet"),
    ];
    for (key, value) in refused {
        let project = make(key, value);
        let agent = project.agent("echo fixed > a.txt");
        let run = project.run(&agent, &[]).expect(2);
        assert!(
            run.stderr.contains("which the agent can change"),
            "{}",
            run.stderr
        );
        assert_eq!(project.calls(), 0);
    }
    for (key, value, sandbox) in [
        ("gpg.program", "ROOT/sign.sh", "auto"),
        ("gpg.program", "./tools/sign.sh", "off"),
    ] {
        let mut project = make(key, value);
        project.env("SPRAG_SANDBOX", sandbox);
        let agent = project.agent("echo fixed > a.txt");
        project.run(&agent, &[]).expect(0);
        let commit = project.git(&["cat-file", "commit", "HEAD"]);
        assert!(commit.contains("gpgsig "), "{commit}");
    }
}

/// A filter that puts something else in the place of what git has written for Sprag.
#[test]
fn what_a_filter_leaves_in_the_place_of_a_file_is_not_followed() {
    let all = [
        "ln -s /proc/self \"$F\"",
        "mkdir \"$F\"; mkfifo \"$F/environ\"",
        "ln -s /etc \"$F\"",
    ];
    for replaced in due(&all, 2) {
        everywhere(&[2, 3], |user, level| {
            let mut project = filtered(true);
            project.env("CANARY", "canary-of-sprag");
            project.write(".gitattributes", "*.up filter=up\ndir/environ filter=up\n");
            project.write("dir/environ", "broken\n");
            project.write("z.up", "broken\n");
            project.write("plan.yaml", UNDONE);
            project.commit_all("filtered");
            let agent = format!(
                "if [ $SPRAG_TASK_ID = two ]; then echo ok > ok.txt; exit; fi
                cat > tools/smudge.sh <<'END'\n#!/bin/sh
F=\"${{TMPDIR%/tmp}}/files/dir\"; [ ! -e \"$F/environ\" ] || {{ rm -rf \"$F\"; {replaced}; }}\ntr A-Z a-z\nEND
                echo x > a.up; echo x > dir/environ; echo x > z.up"
            );
            let more = ["--keep-going", "--max-retries", "0"];
            let Some(run) = run(user, &project, level, &agent, &more) else {
                return;
            };
            let there = fs::read(project.repo().join("dir/environ")).unwrap_or_default();
            let there = String::from_utf8_lossy(&there).into_owned();
            assert!(!there.contains("canary"), "{there}");
            assert!(
                ["broken\n", "BROKEN\n", "BROKEN", "x\n"].contains(&&*there),
                "{there}\n{}",
                run.stdout
            );
            assert_ne!(run.code, 0);
        });
    }
}
