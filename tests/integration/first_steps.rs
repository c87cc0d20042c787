//! What somebody sees who has just installed Sprag.

use crate::action_file::write_program;
use crate::support::has;
use crate::support::project::Project;
use std::fs;

const MANIFEST: &str = "[package]\nname = \"new\"\n";

#[test]
fn init_names_the_steps_that_follow_and_they_work() {
    let project = Project::new(&[("Cargo.toml", MANIFEST)]);
    let run = project.sprag(&["init"]).expect(0);
    assert_eq!(
        run.stdout,
        "checks, which decide whether a task is done:\n  \
           build: cargo build    (Cargo.toml)\n  \
           test: cargo test    (Cargo.toml)\n\
         not found:\n  \
           a workflow in .github/workflows that runs for a push or a pull request\n  \
           a linter that its setup installs\n\
         nothing was run: `sprag init --try` runs each command once and prints the results\n\
         wrote .sprag/config.yaml\n\
         wrote .sprag/plans/example.yaml\n\
         wrote .github/workflows/sprag.yml\n\
         left to do, so that a comment with `/sprag fix the flaky test` starts work:\n  \
           1. gh secret set OPENAI_API_KEY\n  \
           2. the repository's page, Settings > Actions > General: tick \"Allow GitHub Actions to create and approve pull requests\"\n  \
           3. git add .sprag/config.yaml .sprag/plans/example.yaml .github/workflows/sprag.yml && git commit -m 'Add Sprag' && git push\n\
         on this machine, once that is committed: sprag doctor --agent NAME, then sprag run 'fix the flaky test' --agent NAME\n"
    );
    let configured = format!(
        "agent_command: 'true'\n{}",
        project.read(".sprag/config.yaml")
    );
    project.write(".sprag/config.yaml", &configured);
    project.commit_all("sprag init");

    let run = project
        .sprag(&["check", ".sprag/plans/example.yaml"])
        .expect(0);
    has(&run.stdout, "test (test, at most 10m): cargo test");
    // As `sprag run` has it.
    let flag = ["check", "--plan", ".sprag/plans/example.yaml"];
    assert_eq!(project.sprag(&flag).expect(0).stdout, run.stdout);
    let plan = ["run", "--plan", ".sprag/plans/example.yaml", "--dry-run"];
    project.sprag(&plan).expect(0);
}

/// The command that is printed for the files works where it is typed.
#[test]
fn init_in_a_directory_below_the_root_names_the_root() {
    let project = Project::new(&[("Cargo.toml", MANIFEST), ("src/lib.rs", "")]);
    let shown = project.sprag(&["init", "-C", "src"]).expect(0).stdout;
    let root = project.repo().canonicalize().unwrap();
    let root = root.display();
    has(&shown, format!("wrote {root}/.sprag/config.yaml\n"));
    has(
        &shown,
        format!("3. cd {root} && git add .sprag/config.yaml "),
    );
}

#[test]
fn init_tries_what_it_proposes_and_says_what_came_of_it() {
    let test = "import unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        open('left.txt', 'w').close()\n        self.assertEqual(1, 2)\n";
    let makefile = "build:\n\ttrue\nlint:\n\tno-such-linter .\n";
    let project = Project::new(&[
        ("app.py", ""),
        ("test_app.py", test),
        ("Makefile", makefile),
    ]);
    let run = project.sprag(&["init", "--try", "--two-jobs"]).expect(0);
    for shown in [
        "test: python3 -m unittest    (test_app.py imports unittest)\n",
        "  check build `make build`: running\n    passed (",
        "    failed with exit code 1: 1 failed, 0 passed (",
        "tasks are judged by it, so fix it first or remove it",
        "      test_app.py:5: ",
        "no-such-linter",
        "left behind by these commands: ",
        "left.txt",
    ] {
        assert!(run.stdout.contains(shown), "{shown}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("nothing was run"), "{}", run.stdout);
    let workflow = project.read(".github/workflows/sprag.yml");
    assert!(workflow.contains("actions/setup-python@") && workflow.contains("publish:"));
}

#[test]
fn init_without_a_check_says_what_to_do_first() {
    let project = Project::new(&[("README.md", "")]);
    let run = project.sprag(&["init", "--try"]).expect(0);
    let told = "first name a check under `verify` in .sprag/config.yaml: without one, work is committed as `unverified`\n";
    assert!(run.stdout.contains(told), "{}", run.stdout);
    assert!(!run.stdout.contains("trying"), "{}", run.stdout);
}

#[test]
fn init_takes_only_directories_that_a_fresh_checkout_has_for_parts_of_the_project() {
    let package = r#"{"scripts":{"test":"node --test"}}"#;
    let project = Project::new(&[(".gitignore", "out/\n"), ("web/package.json", package)]);
    project.write("out/package.json", package);
    project.write("generated/package.json", package);
    let shown = project.sprag(&["init"]).expect(0).stdout;
    assert!(shown.contains("test: cd web && npm test "), "{shown}");
    assert!(
        !shown.contains("cd out") && !shown.contains("cd generated"),
        "{shown}"
    );

    // Before the first commit, everything that is not ignored may become a part of it.
    project.git(&["update-ref", "-d", "HEAD"]);
    project.git(&["rm", "-r", "-q", "--cached", "."]);
    let shown = project.sprag(&["init"]).expect(0).stdout;
    for directory in ["web", "generated"] {
        has(&shown, format!("cd {directory} && npm test "));
    }
    assert!(!shown.contains("cd out"), "{shown}");
}

#[test]
fn a_failed_setup_command_shows_its_error_and_not_its_last_words() {
    let project = Project::new(&[("package.json", "{}"), ("package-lock.json", "")]);
    let says = "#!/bin/sh\necho 'npm error The lock file does not match.' >&2\nfor n in 1 2 3 4 5 6; do echo 'npm help' >&2; done\nexit 1\n";
    let bin = project.outside("bin");
    fs::create_dir_all(&bin).unwrap();
    write_program(&bin.join("npm"), says);
    let run = project
        .command(&["init", "--try"])
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .output()
        .unwrap();
    let stdout = String::from_utf8(run.stdout).unwrap();
    let told = "      npm error The lock file does not match.\n";
    assert!(stdout.contains(told), "{stdout}");
    assert!(!stdout.contains("npm help"), "{stdout}");
}

/// What is left to do after `init --try` is to commit its files, whatever the trial left behind.
#[test]
fn a_run_begins_on_what_a_trial_left_behind() {
    let makefile = "test:\n\tmkdir -p out/deep && touch out/deep/a out/b && grep -q fixed a.txt\n";
    let project = Project::new(&[("Makefile", makefile), ("a.txt", "broken\n")]);
    let tried = project.sprag(&["init", "--try"]).expect(0).stdout;
    for shown in [
        "left behind by these commands: out/\n",
        "first fix the failed commands, or correct or remove them in .sprag/config.yaml: check test\n",
    ] {
        assert!(tried.contains(shown), "{shown}: {tried}");
    }
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    let run = ["run", "fix it", "--agent-command", &agent];
    let refused = project.sprag(&run).expect(2).stderr;
    let files = ".github/\n    .sprag/\n  commit or stash";
    assert!(refused.contains(files), "{refused}");
    project.git(&["add", ".sprag", ".github"]);
    project.git(&["commit", "--quiet", "--message", "Add Sprag"]);
    let doctor = project.sprag(&["doctor", "--agent-command", &agent]);
    has(&doctor.stdout, "work-tree            clean");
    project.sprag(&run).expect(0);
    assert_eq!(project.git(&["show", "--name-only", "--format="]), "a.txt");
    // A file that only the agent made is nobody's leftover.
    project.write("out/mine", "");
    let refused = project.sprag(&run).expect(2).stderr;
    assert!(refused.contains("not clean:\n    out/\n"), "{refused}");
}

#[test]
fn check_prints_the_configuration_that_is_in_force() {
    let project = Project::new(&[]);
    let check = |configuration: &str, code| {
        project.write(".sprag/config.yaml", configuration);
        project.sprag(&["check"]).expect(code)
    };
    assert_eq!(
        check(
            "agent: claude\nmodel: m\nsetup: [npm ci]\nverify: [cargo test]\nmax_retries: 1\n",
            0
        )
        .stdout,
        "the configuration is valid\n  \
         setup: npm ci\n  \
         agent: claude, model m\n  \
         retries: 1, nudges: 3\n  \
         checks:\n    \
         cargo test (test, at most 10m): cargo test\n"
    );
    let without_agent = check("max_retries: 1\n", 0).stdout;
    has(&without_agent, "agent: none (name one: ");
    let no_fallback = check("agent: claude\nfallback: {agent: builtin}\n", 0).stdout;
    let agents =
        "  agent: claude\n  another agent is missing: the built-in agent has no model to ask (set ";
    assert!(no_fallback.contains(agents), "{no_fallback}");
    let refused = check("agent: claude\nspeed: high\n", 2).stderr;
    has(
        &refused,
        ".sprag/config.yaml:2:1: `speed` is not a key of the configuration",
    );
}

#[test]
fn the_demo_shows_a_whole_run_and_what_github_would_show() {
    let project = Project::new(&[]);
    let place = project.beside("demo");
    let run = project
        .sprag(&["demo", "--dir", place.to_str().unwrap()])
        .expect(0);
    for shown in [
        "appears to have planned but not executed",
        "check test failed",
        "retry 1 of 3",
        "2 of 2 tasks done",
        "On a pull request it would write this comment:",
        "| - [x] `dashes` Runs of spaces become one dash",
    ] {
        assert!(run.stdout.contains(shown), "{shown}: {}", run.stdout);
    }
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
    assert!(read("check-run.md").starts_with("# Success, 2 of 2 tasks done\n"));
    assert!(read("comment.md").contains("- [x] `lowercase`"));
    assert!(read("run/report.html").contains("Slugs that can be linked to"));
}

#[test]
fn a_dry_run_needs_no_agent() {
    let project = Project::new(&[("plan.yaml", "tasks: [{title: Mend it}]\n")]);
    for agent in [&[][..], &["--agent", "builtin"]] {
        let args = [&["run", "--plan", "plan.yaml", "--dry-run"], agent].concat();
        let shown = project.sprag(&args).expect(0).stdout;
        assert!(shown.contains("\n  agent: none ("), "{shown}");
        assert!(shown.contains("# Task t1: Mend it"), "{shown}");
    }
    project.sprag(&["run", "--plan", "plan.yaml"]).expect(4);
}

/// The commands that a run would use are tried as a run uses them, whoever wrote the configuration.
#[test]
fn a_trial_takes_the_configuration_and_the_sandbox_of_a_run() {
    let config = "setup:\n  - npm i -fg corepack\n  - touch made.txt\nverify:\n  - name: mine\n    run: test -f made.txt\n  - name: outside\n    run: touch \"$OUTSIDE/x\"\nverify_env: [OUTSIDE]\n";
    let project = Project::new(&[
        ("Makefile", "test:\n\tfalse\n"),
        (".sprag/config.yaml", config),
    ]);
    let outside = project.outside("closed");
    fs::create_dir_all(&outside).unwrap();
    for args in [
        &["init", "--try"][..],
        &["doctor", "--try", "--agent-command", "true"],
    ] {
        let run = project
            .command(args)
            .env("OUTSIDE", &outside)
            .env("SPRAG_SANDBOX", "require:2")
            .output()
            .unwrap();
        let stdout = String::from_utf8(run.stdout).unwrap();
        for shown in [
            "trying the commands of the configuration in the sandbox (level ",
            "setup `npm i -fg corepack`: not run, because it installs outside of the work tree\n",
            "setup `touch made.txt`: running\n    done (",
            "check mine `test -f made.txt`: running\n    passed (",
            "check outside `touch \"$OUTSIDE/x\"`: running\n    failed with exit code 1",
            "x could not be written: the sandbox protects it. Name the directory in `sandbox_write`",
        ] {
            assert!(stdout.contains(shown), "{args:?} {shown}: {stdout}");
        }
        assert!(
            !stdout.contains("check test `make test`: running"),
            "{stdout}"
        );
    }
    assert!(!outside.join("x").exists());
}

/// The agent of the whole machine and the agent that the action has installed are used where nobody names another.
#[test]
fn an_agent_is_named_once_for_a_machine_or_by_its_installation() {
    let mut project = Project::new(&[("a.txt", "a\n")]);
    let config = project.beside("home").join(".config/sprag/config.yaml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "agent_command: my-agent\n").unwrap();
    let shown = project.sprag(&["check"]).expect(0).stdout;
    assert!(shown.contains("agent: command (my-agent)"), "{shown}");

    project.write(".sprag/config.yaml", "agent_command: of-the-project\n");
    let shown = project.sprag(&["check"]).expect(0).stdout;
    assert!(shown.contains("agent: command (of-the-project)"), "{shown}");

    fs::write(&config, "agent: codex\nverify: make\n").unwrap();
    let refused = project.sprag(&["check"]).expect(2).stderr;
    assert!(refused.contains("may have only `agent`, "), "{refused}");
    has(&refused, "move the rest to .sprag/config.yaml");
    fs::remove_file(&config).unwrap();
    fs::remove_file(project.repo().join(".sprag/config.yaml")).unwrap();

    project.env("INPUT_INSTALL_AGENT", "claude-code@2.1.197");
    let shown = project.sprag(&["check"]).expect(0).stdout;
    assert!(shown.contains("agent: claude"), "{shown}");
}

#[test]
fn runs_are_listed_for_programs_and_pages_are_written() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let agent = project.agent("echo b > a.txt");
    let args = ["run", "Change it", "--agent-command", &agent];
    project.sprag(&args).expect(0);
    let listed = project.sprag(&["runs", "--json"]).expect(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let of_run = &listed["runs"][0];
    assert_eq!(of_run["title"], "Change it");
    assert_eq!(of_run["tasks_done"], 1);
    assert_eq!(of_run["running"], false);
    let id = of_run["short_id"].as_str().unwrap();
    project.sprag(&["report", id, "--format", "json"]).expect(0);

    let pages = project.outside("pages");
    fs::create_dir(&pages).unwrap();
    project.sprag(&["man", pages.to_str().unwrap()]).expect(0);
    for page in ["sprag.1", "sprag-run.1", "sprag-doctor.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    let nushell = project.sprag(&["completions", "nushell"]).expect(0).stdout;
    assert!(nushell.contains("export extern \"sprag run\""), "{nushell}");
}
