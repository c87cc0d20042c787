//! Toolchains that work in the sandbox.

use super::*;
use crate::support::user::ORDINARY;

/// Toolchains as a project has them; none of them needs a network here.
#[test]
fn toolchains_work_in_a_sandbox() {
    type Files = &'static [(&'static str, &'static str)];
    let cases: &[(&str, Files, &str)] = &[
        (
            "cargo",
            &[
                (
                    "Cargo.toml",
                    "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
                ),
                (
                    "src/lib.rs",
                    "#[test]\nfn works() { assert!(std::env::temp_dir().join(\"x\").parent().is_some()); }\n",
                ),
                (".gitignore", "target\nnode_modules\nvenv\n"),
            ],
            "cargo build --offline && cargo test --offline",
        ),
        (
            "npm",
            &[
                (
                    "package.json",
                    "{\"name\":\"a\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"},\"dependencies\":{\"b\":\"file:./b\"}}",
                ),
                ("b/package.json", "{\"name\":\"b\",\"version\":\"1.0.0\"}"),
                (
                    "a.test.js",
                    "require('node:test')('works', () => require('fs').mkdtempSync(require('os').tmpdir() + '/a-'));",
                ),
                (".gitignore", "node_modules\npackage-lock.json\n"),
            ],
            "npm install --no-audit --no-fund && npm test",
        ),
        (
            "python3",
            &[
                (
                    "test_a.py",
                    "import tempfile, multiprocessing, unittest\nclass T(unittest.TestCase):\n    def test(self):\n        tempfile.mkdtemp(); multiprocessing.Lock()\n",
                ),
                (".gitignore", "venv\n__pycache__\n"),
            ],
            "python3 -m venv venv && venv/bin/python -m unittest",
        ),
    ];
    everywhere(&[2, 3], |user, level| {
        for (program, files, check) in cases {
            let mut project = project(files);
            project.write(
                "plan.yaml",
                &plan(&format!("{check} && grep -q fixed a.txt")),
            );
            project.commit_all("plan");
            for name in ["CARGO_HOME", "RUSTUP_HOME"] {
                if let (Some(home), User::Own) = (std::env::var_os(name), user) {
                    project.env(name, home);
                }
            }
            let there = user.command(&project, &["--version"]).map(|_| ());
            let mut tried = match user {
                User::Own => project.program(program, &["--version"]),
                User::Ordinary => {
                    let own = [
                        "--reuid",
                        ORDINARY,
                        "--regid",
                        ORDINARY,
                        "--clear-groups",
                        program,
                        "--version",
                    ];
                    project.program("setpriv", &own)
                }
            };
            if there.is_none() || !tried.output().is_ok_and(|it| it.status.success()) {
                eprintln!("SKIPPED: {program} does not work for this user ({user:?})");
                continue;
            }
            let Some(run) = run(user, &project, level, "echo fixed > a.txt", &[]) else {
                return;
            };
            let said = said(&run);
            assert_eq!(
                run.code, 0,
                "{program} at level {level} as {user:?}:\n{said}\n{}",
                run.stdout
            );
        }
    });
}

/// A child starts with no signal blocked: shells wait for `SIGCHLD`, and servers of tests end at `SIGTERM`.
#[test]
fn no_signal_is_blocked_in_what_a_launcher_starts() {
    let check = "sleep 0.1 & wait; exec grep -qx 'SigBlk:\t0*' /proc/self/status";
    everywhere(&[1, 2, 3], |user, level| {
        let project = project(&[("a.txt", "x\n")]);
        project.write(
            "plan.yaml",
            &format!("verify:\n  - run: {check:?}\n    timeout: 240s\ntasks:\n  - title: a\n"),
        );
        project.commit_all("plan");
        let agent = "echo fixed > a.txt; exec grep SigBlk /proc/self/status";
        let Some(run) = run(user, &project, level, agent, &["--max-retries", "0"]) else {
            return;
        };
        let run = run.expect(0);
        assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
        assert!(said(&run).contains("0000000000000000"), "{}", said(&run));
    });
}
