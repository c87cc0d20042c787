//! A repository, a home and a clean environment in which the built `sprag` is run as its user would.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A throw-away project.
pub struct Project {
    root: TempDir,
    env: Vec<(String, String)>,
}

/// What a finished `sprag` left.
pub struct Run {
    /// The exit code; signals are negative.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// `summary.json` of the newest run; `null` when there is none.
    pub summary: Value,
    /// Every public event of the newest run.
    pub events: Vec<Value>,
    /// The run directory.
    pub dir: Option<PathBuf>,
}

/// The variables that keep git from starting its maintenance, of which repositories of a test have no need.
pub const NO_MAINTENANCE: [(&str, &str); 5] = [
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "maintenance.auto"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "receive.autogc"),
    ("GIT_CONFIG_VALUE_1", "false"),
];

/// Adds lines to a configuration of git, which costs less than a `git config` for each of them.
pub fn configure(config: &Path, lines: &str) {
    let text = fs::read_to_string(config).unwrap();
    fs::write(config, text + lines).unwrap();
}

impl Project {
    /// A git repository on `main` with one commit of the given files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for dir in ["repo", "home", "tmp", "state", "agent"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        let project = Self {
            root,
            env: Vec::new(),
        };
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        let user = "[user]\n\tname = Tester\n\temail = tester@example.invalid\n";
        configure(&project.repo().join(".git/config"), user);
        for (path, text) in files {
            project.write(path, text);
        }
        project.git(&["add", "--all"]);
        project.git(&["commit", "--quiet", "--allow-empty", "--message", "base"]);
        project
    }

    /// The work tree.
    pub fn repo(&self) -> PathBuf {
        self.root.path().join("repo")
    }

    /// A path beside the work tree: the project's `home`, `state` or `tmp`.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A path outside of the work tree, for the agent's own notes.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.root.path().join("agent").join(name)
    }

    /// Lets the checks only verify the work, for tests that count what a run does.
    pub fn without_proofs(&mut self) -> &mut Self {
        self.env("SPRAG_BASELINE", "off")
            .env("SPRAG_FLAKY_RERUNS", "0")
            .env("SPRAG_TEST_CHANGES", "warn")
    }

    /// Sets a variable for every later `sprag`.
    pub fn env(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.env
            .push((name.into(), value.as_ref().to_str().unwrap().into()));
        self
    }

    /// Writes a file of the work tree.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.repo().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file of the work tree.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.repo().join(path)).unwrap()
    }

    /// Commits everything in the work tree.
    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Writes an agent: a shell script outside of the work tree that is run in it. Besides what
    /// Sprag sets, `$OUT` is a directory of the test's own; each turn's prompt is kept as
    /// `$OUT/prompt-N` and the number of calls in `$OUT/calls`. `kill_sprag` kills the Sprag that runs it.
    pub fn agent(&self, script: &str) -> String {
        let out = self.root.path().join("agent");
        let path = out.join("agent.sh");
        let text = format!(
            "{KILL_SPRAG}OUT={out}\nN=$(( $(cat \"$OUT/calls\" 2>/dev/null || echo 0) + 1 ))\necho $N > \"$OUT/calls\"\ncat > \"$OUT/prompt-$N\"\nenv > \"$OUT/env-$N\"\n{script}\n",
            out = out.display()
        );
        fs::write(&path, text).unwrap();
        format!("sh {}", path.display())
    }

    /// How often the agent was called.
    pub fn calls(&self) -> u32 {
        let text = fs::read_to_string(self.outside("calls")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// The prompt of the nth call, from 1.
    pub fn prompt(&self, n: u32) -> String {
        fs::read_to_string(self.outside(&format!("prompt-{n}"))).unwrap()
    }

    /// The lines of a file that the test's scripts wrote outside of the work tree; none when there
    /// is no such file.
    pub fn notes(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.outside(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A check that counts its calls in the file `checks` and then runs `script`.
    pub fn check(&self, script: &str) -> String {
        format!(
            "echo call >> {}; {script}",
            self.outside("checks").display()
        )
    }

    /// How often the check was called.
    pub fn checks(&self) -> usize {
        self.notes("checks").len()
    }

    /// `sprag` with these arguments in this environment, not yet started.
    pub fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_sprag"), args)
    }

    /// Any program with these arguments in this environment, not yet started.
    pub fn program(&self, program: &str, args: &[&str]) -> Command {
        let sandbox = std::env::var("SPRAG_TEST_SANDBOX").unwrap_or_else(|_| "off".into());
        let mut set = self.env.iter().rev();
        let set = set.find(|(name, _)| name == "SPRAG_SANDBOX");
        let is_auto = set.map_or(sandbox == "auto", |(_, value)| value == "auto");
        // The notes of scripted agents and checks lie beside the work tree.
        let notes = (is_auto && !args.contains(&"--sandbox")).then(|| self.outside(""));
        let mut command = Command::new(program);
        let root = self.root.path();
        command
            .args(args)
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", root.join("home"))
            .env("TMPDIR", root.join("tmp"))
            .env("XDG_STATE_HOME", root.join("state"))
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // Tests about confinement ask for it, as it costs a start of the program for each child. With
            // SPRAG_TEST_SANDBOX=auto all tests run under the default.
            .env("SPRAG_SANDBOX", sandbox)
            .envs(notes.map(|notes| ("SPRAG_SANDBOX_WRITE", notes)))
            // What a run may take to end after a signal is no matter of this machine's speed.
            .env("SPRAG_AFTER_SIGNAL_TIMES", "50")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs `sprag` to its end.
    pub fn sprag(&self, args: &[&str]) -> Run {
        let output = self.command(args).output().unwrap();
        self.finished(&output)
    }

    /// `sprag run --plan plan.yaml --agent-command AGENT` and more arguments.
    pub fn run(&self, agent: &str, args: &[&str]) -> Run {
        let mut all = vec!["run", "--plan", "plan.yaml", "--agent-command", agent];
        all.extend_from_slice(args);
        self.sprag(&all)
    }

    /// Starts `sprag` and leaves it running.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What a finished process left.
    pub fn finished(&self, output: &Output) -> Run {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = || -output.status.signal().unwrap_or(0);
        Run {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            ..self.left(output.status.code().unwrap_or_else(signal))
        }
    }

    /// What a process left of which only its exit code is known.
    pub fn left(&self, code: i32) -> Run {
        let dir = self.run_dirs().into_iter().next_back();
        let read = |name: &str| {
            dir.as_ref()
                .and_then(|dir| fs::read_to_string(dir.join(name)).ok())
        };
        Run {
            code,
            stdout: String::new(),
            stderr: String::new(),
            summary: read("summary.json")
                .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap()),
            events: read("events.jsonl")
                .unwrap_or_default()
                .split_inclusive('\n')
                // A full disk leaves a last line torn.
                .filter(|line| line.ends_with('\n'))
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            dir,
        }
    }

    /// Every run directory under the default place, oldest first.
    pub fn run_dirs(&self) -> Vec<PathBuf> {
        let list = |dir: &Path| -> Vec<PathBuf> {
            fs::read_dir(dir)
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().path())
                .collect()
        };
        let repositories = list(&self.root.path().join("state/sprag"));
        let mut runs: Vec<PathBuf> = repositories.iter().flat_map(|dir| list(dir)).collect();
        runs.retain(|run| run.join("manifest.json").is_file());
        runs.sort();
        runs
    }

    /// Runs git in the work tree and returns what it printed.
    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(NO_MAINTENANCE)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// HEAD's commit.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Number of commits on HEAD.
    pub fn commits(&self) -> usize {
        self.git(&["rev-list", "--count", "HEAD"]).parse().unwrap()
    }

    /// `git status --porcelain`; empty when the tree is clean.
    pub fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    /// Writes a hook of the repository.
    pub fn hook(&self, name: &str, script: &str) {
        let path = self.repo().join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

impl Run {
    /// The nth task of the summary, from 0.
    pub fn task(&self, n: usize) -> &Value {
        &self.summary["tasks"][n]
    }

    /// Fails with everything that was printed unless the exit code is this one.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// The names of all events in order.
    pub fn event_names(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event["event"].as_str().unwrap())
            .collect()
    }
}

/// A shell function that kills the Sprag which has started the shell, above its launcher if it has one.
pub const KILL_SPRAG: &str = "kill_sprag() {
p=$PPID
until grep -qx sprag /proc/$p/comm; do p=$(cut -d' ' -f4 /proc/$p/stat); done
kill -9 $p
}
";

/// A plan with one task `fix`, whose check is this command.
pub fn plan(check: &str) -> String {
    let check = serde_json::to_string(check).unwrap();
    format!(
        "title: Example\nverify:\n  - {{ name: test, run: {check}, kind: test }}\ntasks:\n  - id: fix\n    title: Fix a.txt\n    description: a.txt must say fixed\n"
    )
}

/// Every path below a directory with its content.
pub fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}
