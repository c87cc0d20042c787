//! `action.yml` and `docker/action.yml`: what they declare is what the program reads and writes,
//! and what the action runs is really run, as the runner would.

use crate::actions::{outputs, run_directory, step, summary};
use crate::generated::{OF_EVERY_STEP, OF_THE_STEPS, inputs};
use crate::support::proc::{
    assert_nothing_left, end_of, is_alive, left_in, pids, signal, wait_until,
};
use crate::support::project::Project;
use crate::support::tasks::{FIX, FIXED};
use serde_json::Value;
use sprag::domain::summary::RunSummary;
use sprag::report::outputs::{OtherOutputs, outputs as all_outputs};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

pub fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&text(path)).unwrap()
}

fn names(mapping: &Value) -> Vec<&str> {
    mapping
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// Every input that the program reads, in the order of the documentation.
fn read_by_the_program() -> Vec<String> {
    inputs().into_iter().map(|(name, _)| name).collect()
}

/// A step of the action, by its id.
fn step_of<'a>(action: &'a Value, id: &str) -> &'a Value {
    let steps = action["runs"]["steps"].as_array().unwrap();
    let ids: Vec<_> = steps.iter().map(|step| &step["id"]).collect();
    assert_eq!(ids, ["install", "before", "sprag", "after"]);
    steps.iter().find(|step| step["id"] == id).unwrap()
}

/// The script of a step of the action and its environment, expressions evaluated. The job has no
/// token, so that nothing here looks for GitHub.
fn the_step(id: &str, inputs: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
    let action = yaml("action.yml");
    let step = step_of(&action, id);
    let declared = names(&action["inputs"]);
    for (name, _) in inputs {
        assert!(declared.contains(name), "{name} is no input");
    }
    let value = |expression: &str| {
        let inner = expression
            .strip_prefix("${{ ")
            .and_then(|rest| rest.strip_suffix(" }}"));
        let Some(input) = inner.unwrap().strip_prefix("inputs.") else {
            assert_eq!(inner, Some("github.action_repository"));
            return "owner/action".to_owned();
        };
        assert!(declared.contains(&input), "{input} is no input");
        let given = inputs.iter().find(|(name, _)| *name == input);
        given.map_or_else(String::new, |(_, value)| (*value).to_owned())
    };
    let env = step["env"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, text)| (name.clone(), value(text.as_str().unwrap())));
    (step["run"].as_str().unwrap().to_owned(), env.collect())
}

/// The step that runs Sprag as the runner starts it, not yet started. The action lies in `action`.
fn started_by_the_runner(project: &Project, action: &Path, inputs: &[(&str, &str)]) -> Command {
    started(project, action, "sprag", inputs)
}

pub fn started(project: &Project, action: &Path, id: &str, inputs: &[(&str, &str)]) -> Command {
    let (script, env) = the_step(id, inputs);
    assert!(!script.contains("${{"), "{script}");
    let file = project.outside("step.sh");
    fs::write(&file, script).unwrap();
    let args = ["--noprofile", "--norc", "-e", "-o", "pipefail"];
    let args = [&args[..], &[file.to_str().unwrap()]].concat();
    let mut command = project.program("bash", &args);
    command.env("GITHUB_ACTION_PATH", action).envs(env);
    command
}

fn with_the_built_binary<'a>(inputs: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("binary", env!("CARGO_BIN_EXE_sprag"))], inputs].concat()
}

/// Runs the action with the built binary to its end; the exit code and the log.
fn act(project: &Project, inputs: &[(&str, &str)]) -> (Option<i32>, String) {
    let inputs = with_the_built_binary(inputs);
    let mut command = started_by_the_runner(project, Path::new(ROOT), &inputs);
    let output = command.output().unwrap();
    let log = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&log).into_owned(),
    )
}

#[test]
fn the_inputs_are_those_that_the_program_reads() {
    let mut expected = read_by_the_program();
    assert_eq!(names(&yaml("docker/action.yml")["inputs"]), expected);
    expected.extend(OF_THE_STEPS.iter().map(|&name| name.to_owned()));
    assert_eq!(names(&yaml("action.yml")["inputs"]), expected);
}

#[test]
fn inputs_say_what_they_mean_and_what_holds_without_them() {
    let action = yaml("action.yml");
    for (name, input) in action["inputs"].as_object().unwrap() {
        // The program has the defaults; one here would go before plan and configuration file. It
        // cannot have the job's token.
        if name == "github-token" {
            assert_eq!(input["default"], "${{ github.token }}");
        } else {
            assert_eq!(names(input), ["description", "required"], "{name}");
        }
        assert_eq!(input["required"], false, "{name}");
    }
    let mut of_container = yaml("docker/action.yml")["inputs"].clone();
    for name in OF_THE_STEPS {
        of_container[*name] = action["inputs"][*name].clone();
    }
    assert_eq!(of_container, action["inputs"]);
}

#[test]
fn every_input_is_handed_on_and_nothing_else() {
    let action = yaml("action.yml");
    let expected: Vec<(String, String)> = names(&action["inputs"])
        .into_iter()
        .map(|name| {
            let variable = format!("INPUT_{}", name.to_uppercase().replace('-', "_"));
            (variable, format!("${{{{ inputs.{name} }}}}"))
        })
        .collect();
    let env = step_of(&action, "sprag")["env"].as_object().unwrap();
    let handed_on: Vec<(String, String)> = env
        .iter()
        .filter(|(name, _)| *name != "ACTION_REPOSITORY")
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(handed_on, expected);
    let env = &step_of(&action, "install")["env"];
    assert_eq!(
        *env,
        serde_json::json!({"INSTALL_AGENT": "${{ inputs.install-agent }}"})
    );
}

#[test]
fn the_outputs_are_those_that_the_program_writes() {
    let all = all_outputs(&RunSummary::default(), &OtherOutputs::default());
    let written: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let (action, container) = (yaml("action.yml"), yaml("docker/action.yml"));
    assert_eq!(names(&action["outputs"]), written);
    assert_eq!(names(&container["outputs"]), written);
    for name in written {
        let output = &action["outputs"][name];
        let or_else = if OF_EVERY_STEP.contains(&name) {
            format!(" || steps.install.outputs.{name}")
        } else {
            String::new()
        };
        let value = format!("${{{{ steps.sprag.outputs.{name}{or_else} }}}}");
        assert_eq!(output["value"], value.as_str());
        assert_eq!(
            container["outputs"][name]["description"],
            output["description"]
        );
    }
}

#[test]
fn the_readme_names_the_reference() {
    assert!(text("README.md").contains("](docs/reference.md)"));
}

#[test]
fn the_container_is_the_one_of_this_version() {
    let container = yaml("docker/action.yml");
    let image = format!(
        "docker://ghcr.io/sprag-ci/sprag:{}",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(container["runs"]["image"], image.as_str());
    assert_eq!(container["runs"]["args"], serde_json::json!(["run"]));
}

#[test]
fn a_run_of_the_action_commits_and_tells_its_outputs() {
    let project = step(FIXED);
    let agent = project.agent(FIX);
    let inputs = [("plan", "plan.yaml"), ("agent-command", agent.as_str())];
    let (code, log) = act(&project, &inputs);
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(project.commits(), 3);
    let outputs = outputs(&project);
    assert_eq!(outputs["status"], "success");
    assert_eq!(outputs["head-sha"], project.head());
    let declared = yaml("action.yml");
    let mut declared = names(&declared["outputs"]);
    declared.sort_unstable();
    assert_eq!(outputs.keys().collect::<Vec<_>>(), declared);
    let told = fs::read_to_string(project.outside("step-summary")).unwrap();
    assert!(told.starts_with("## ✅ Sprag: success"), "{told}");
}

#[test]
fn inputs_of_every_kind_reach_the_program() {
    let project = step("true");
    project.write("sub/prompt.md", "Fix a.txt\n\nIt must say fixed.");
    project.commit_all("prompt");
    let agent =
        project.agent("cd ..; test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo Done.");
    let events = project.outside("events");
    let run_dir = project.outside("kept");
    let (code, log) = act(
        &project,
        &[
            ("working-directory", "sub"),
            ("prompt-file", "prompt.md"),
            ("agent-command", &agent),
            ("verify", "true\ngrep -qx fixed ../a.txt\n"),
            ("instructions", "Speak softly."),
            ("max-retries", "1"),
            ("events", events.to_str().unwrap()),
            ("run-dir", run_dir.to_str().unwrap()),
        ],
    );
    assert_eq!(code, Some(0), "{log}");
    let outputs = outputs(&project);
    assert_eq!(
        (&*outputs["attempts"], &*outputs["changed-files"]),
        ("2", "a.txt")
    );
    assert_eq!(outputs["run-dir"], run_dir.to_str().unwrap());
    assert!(project.prompt(1).contains("Speak softly."));
    let last = project.notes("events").pop().unwrap();
    assert!(last.contains("run.ended"), "{last}");
}

#[test]
fn no_input_is_code() {
    let project = step("true");
    let marks = "$(touch \"$PWD/in1\") `touch in2` '; touch in3; ' \"; touch in4; \" ${{ x }} \\";
    let (code, log) = act(
        &project,
        &[
            ("prompt", marks),
            ("dry-run", "true"),
            ("agent-command", "true"),
            ("model", marks),
        ],
    );
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains(marks), "{log}");
    assert_eq!(project.status(), "");
}

/// An agent that leaves half of its work and never ends; a second call does all of it.
const HALF: &str = "[ $N = 1 ] || { echo fixed > a.txt; echo Done.; exit; }
echo half > a.txt
sleep 1000 &
echo $! > $OUT/pids; echo $$ >> $OUT/pids; touch $OUT/working; wait";

#[test]
fn the_signal_of_a_cancelled_job_reaches_sprag() {
    let project = step(FIXED);
    let agent = project.agent(HALF);
    let inputs = [("plan", "plan.yaml"), ("agent-command", agent.as_str())];
    let mut entry =
        started_by_the_runner(&project, Path::new(ROOT), &with_the_built_binary(&inputs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    wait_until("the agent works", || project.outside("working").exists());
    let program = fs::read_link(format!("/proc/{}/exe", entry.id())).unwrap();
    assert_eq!(
        program,
        fs::canonicalize(env!("CARGO_BIN_EXE_sprag")).unwrap()
    );
    signal(entry.id(), "INT");
    assert_eq!(end_of(&mut entry).code(), Some(130));
    assert_nothing_left(&project);
    let saved = summary(&project);
    assert_eq!(
        (&saved["status"], &saved["exit_code"]),
        (&"cancelled".into(), &130.into())
    );
    assert_eq!(outputs(&project)["status"], "cancelled");
    let patch = fs::read_to_string(run_directory(&project).join("patches/fix.patch")).unwrap();
    assert!(patch.contains("+half"), "{patch}");

    // The work is taken up where it was left, by the same action.
    fs::remove_file(project.outside("output")).unwrap();
    let (code, log) = act(&project, &[("resume", "true"), ("agent-command", &agent)]);
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(outputs(&project)["status"], "success");
    assert_eq!(project.commits(), 3);
}

#[test]
fn the_runners_second_signal_ends_it_at_once_with_the_code_of_the_first() {
    let project = step(FIXED);
    let agent = project.agent(
        "trap ': > $OUT/asked' TERM; echo $$ > $OUT/pids; touch $OUT/working; while :; do sleep 0.1; done",
    );
    let inputs = [("plan", "plan.yaml"), ("agent-command", agent.as_str())];
    let mut entry =
        started_by_the_runner(&project, Path::new(ROOT), &with_the_built_binary(&inputs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    wait_until("the agent works", || project.outside("working").exists());
    signal(entry.id(), "INT");
    wait_until("the agent is asked to end", || {
        project.outside("asked").exists()
    });
    signal(entry.id(), "TERM");
    assert_eq!(end_of(&mut entry).code(), Some(130));
    let agents = pids(&project.outside("pids"));
    assert_eq!(agents.len(), 1);
    wait_until("the agent is gone", || !is_alive(agents[0]));
    wait_until("nothing is left", || left_in(&project, &[]).is_empty());
    assert!(run_directory(&project).join("manifest.json").is_file());
}

/// A copy of the action as a runner checks it out, and a release to download: a `curl` that takes
/// files from a directory and notes what it was asked for.
struct Released {
    project: Project,
    action: PathBuf,
}

const ASSET: &str = if cfg!(target_arch = "aarch64") {
    "sprag-aarch64-linux"
} else {
    "sprag-x86_64-linux"
};

impl Released {
    fn new(sums: &str) -> Self {
        let mut project = step("true");
        let action = project.outside("action");
        fs::create_dir_all(action.join("action")).unwrap();
        for file in [
            "action.yml",
            "action/fail.sh",
            "action/run.sh",
            "Cargo.toml",
        ] {
            fs::copy(Path::new(ROOT).join(file), action.join(file)).unwrap();
        }
        let bin = project.outside("bin");
        fs::create_dir(&bin).unwrap();
        let curl = format!(
            "#!/bin/sh\nfor it; do case $last in --output) to=$it;; esac; last=$it; done\n\
             echo \"$last\" >> {out}/asked\ncase $last in https://ghes.*) exit 22;; esac\ncp {out}/release/\"${{last##*/}}\" \"$to\"\n",
            out = project.outside("").display()
        );
        write_program(&bin.join("curl"), &curl);
        let path = std::env::var("PATH").unwrap();
        project.env("PATH", format!("{}:{path}", bin.display()));
        let release = project.outside("release");
        fs::create_dir(&release).unwrap();
        let binary = "#!/bin/sh\necho \"ran $*\"; env | grep -c '^INPUT_BINARY\\|^INPUT_PUBLISH\\|^INPUT_MATRIX\\|^INPUT_SHARDS\\|^INPUT_INTEGRATE\\|^ACTION_'; exit 7\n";
        fs::write(release.join(ASSET), binary).unwrap();
        let sum = sha256(&release.join(ASSET));
        let sums = sums.replace("SUM", &sum);
        fs::write(release.join("SHA256SUMS"), sums).unwrap();
        Self { project, action }
    }

    fn act(&self) -> (Option<i32>, String) {
        self.act_with(&[])
    }

    fn act_with(&self, inputs: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = started_by_the_runner(&self.project, &self.action, inputs);
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    fn asked(&self) -> Vec<String> {
        self.project.notes("asked")
    }
}

pub fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The SHA-256 of a file, by the program that the action uses too.
fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

fn address(file: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("https://github.com/owner/action/releases/download/v{version}/{file}")
}

#[test]
fn the_binary_of_its_own_release_is_run() {
    let released = Released::new(&format!("{} other\nSUM  {ASSET}\n", "0".repeat(64)));
    assert_eq!(released.act(), (Some(7), "ran run\n0\n".to_owned()));
    assert_eq!(released.asked(), [address(ASSET), address("SHA256SUMS")]);
}

/// A server of one's own has the tree of the action, and seldom its releases.
#[test]
fn a_server_without_the_release_leaves_the_binary_to_github() {
    let mut released = Released::new(&format!("SUM  {ASSET}\n"));
    released
        .project
        .env("GITHUB_SERVER_URL", "https://ghes.example.com");
    assert_eq!(released.act(), (Some(7), "ran run\n0\n".to_owned()));
    let upstream = |file| address(file).replace("owner/action", "sprag-ci/sprag");
    let own = address(ASSET).replace("github.com", "ghes.example.com");
    assert_eq!(
        released.asked(),
        [own, upstream(ASSET), upstream("SHA256SUMS")]
    );
}

#[test]
fn a_run_directory_is_published_in_place_of_a_run() {
    let released = Released::new("SUM  ASSET\n".replace("ASSET", ASSET).as_str());
    let (code, log) = released.act_with(&[("publish", "-run; exit 0")]);
    assert_eq!((code, &*log), (Some(7), "ran publish -- -run; exit 0\n0\n"));
}

#[test]
fn a_plan_is_spread_and_its_shards_are_integrated_in_place_of_a_run() {
    let released = Released::new("SUM  ASSET\n".replace("ASSET", ASSET).as_str());
    for (inputs, ran) in [
        (&[("matrix", "-p; x")][..], "matrix -- -p; x"),
        (
            &[("matrix", "p.yaml"), ("shards", "3; x")],
            "matrix --shards=3; x -- p.yaml",
        ),
        (&[("integrate", "-d; x")], "integrate -- -d; x"),
    ] {
        let (code, log) = released.act_with(inputs);
        assert_eq!((code, log), (Some(7), format!("ran {ran}\n0\n")));
    }
}

#[test]
fn checksums_in_the_actions_own_tree_go_before_those_of_the_release() {
    let released = Released::new(&format!("{}  {ASSET}\n", "0".repeat(64)));
    let sum = sha256(&released.project.outside("release").join(ASSET));
    fs::write(
        released.action.join("action/SHA256SUMS"),
        format!("{sum}  {ASSET}\n"),
    )
    .unwrap();
    assert_eq!(released.act(), (Some(7), "ran run\n0\n".to_owned()));
    assert_eq!(released.asked(), [address(ASSET)]);
}

#[test]
fn a_binary_with_another_checksum_is_not_run() {
    for sums in [
        format!("{}  {ASSET}\n", "0".repeat(64)),
        "SUM  sprag-of-another-machine\n".to_owned(),
        format!("SUM  {ASSET}\nSUM  {ASSET}\n"),
        String::new(),
    ] {
        let released = Released::new(&sums);
        let (code, log) = released.act();
        assert_eq!(code, Some(4), "{log}");
        assert!(!log.contains("ran run"), "{log}");
        let what = format!("::error title=Sprag cannot begin::{ASSET} of ");
        assert!(log.starts_with(&what), "{log}");
        let told = fs::read_to_string(released.project.outside("output")).unwrap();
        assert!(told.starts_with("status=environment\nreason=environment\nsummary=environment: "));
        let left = fs::read_dir(released.project.outside("runner-temp")).unwrap();
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn a_release_that_cannot_be_had_is_told() {
    let released = Released::new("");
    fs::remove_file(released.project.outside("release").join(ASSET)).unwrap();
    let (code, log) = released.act();
    assert_eq!(code, Some(4), "{log}");
    assert_eq!(
        log,
        format!(
            "::error title=Sprag cannot begin::{} cannot be downloaded; the input `binary` names a sprag that is there already\n",
            address(ASSET)
        )
    );
}

#[test]
fn a_binary_that_is_none_is_told_and_injects_nothing() {
    let project = step("true");
    let (code, log) = {
        let inputs = [("binary", "no/such%\nstatus=success")];
        let output = started_by_the_runner(&project, Path::new(ROOT), &inputs)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    assert_eq!(code, Some(4), "{log}");
    let what = "the input `binary` is no/such% status=success, which is no program that can be run";
    assert_eq!(
        log,
        format!(
            "::error title=Sprag cannot begin::{}\n",
            what.replace('%', "%25")
        )
    );
    assert_eq!(
        fs::read_to_string(project.outside("output")).unwrap(),
        format!("status=environment\nreason=environment\nsummary=environment: {what}\n")
    );
}

#[test]
fn the_build_of_the_image_is_given_every_target_of_the_package() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ignore = text(".dockerignore");
    let given: Vec<&str> = ignore
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    let packages = metadata["packages"].as_array().unwrap();
    let targets: Vec<&Value> = packages
        .iter()
        .flat_map(|package| package["targets"].as_array().unwrap())
        .collect();
    assert!(targets.iter().any(|target| target["kind"][0] == "bench"));
    for target in targets {
        let path = Path::new(target["src_path"].as_str().unwrap())
            .strip_prefix(ROOT)
            .unwrap();
        let is_given = given.iter().any(|line| path.starts_with(line));
        assert!(is_given, ".dockerignore leaves {} out", path.display());
    }
}

/// What a step of the action writes to the files of the runner, in a job with this environment.
fn around(id: &str, job: &[(&str, &str)], of_step: &[(&str, &str)]) -> (i32, String, [String; 3]) {
    let dir = tempfile::tempdir().unwrap();
    let action = yaml("action.yml");
    let step = step_of(&action, id);
    let files =
        ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH"].map(|name| (name, dir.path().join(name)));
    let mut command = match of_step.iter().find(|(name, _)| *name == "shell") {
        None => Command::new("bash"),
        Some((_, bash)) => {
            let mut command = Command::new(bash);
            command.arg("-p");
            command
        }
    };
    let script = dir.path().join("step.sh");
    fs::write(&script, step["run"].as_str().unwrap()).unwrap();
    command.args(["-e", script.to_str().unwrap()]);
    command.env_clear().envs(job.iter().copied());
    let value = |name: &str| {
        job.iter()
            .find(|(known, _)| *known == name)
            .map_or("", |(_, value)| *value)
    };
    for (name, expression) in step["env"].as_object().unwrap() {
        let expression = expression
            .as_str()
            .unwrap()
            .trim_start_matches("${{ ")
            .trim_end_matches(" }}");
        let value = match expression.split_once("env.") {
            Some((_, of_job)) => value(of_job),
            None => of_step
                .iter()
                .find(|(known, _)| *known == expression)
                .map_or("", |(_, value)| *value),
        };
        command.env(name, value);
    }
    for (name, path) in &files {
        fs::write(path, "").unwrap();
        command.env(name, path);
    }
    command.env("GITHUB_ACTION_PATH", ROOT);
    let output = command.output().unwrap();
    let log = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let left = files.map(|(_, path)| fs::read_to_string(path).unwrap());
    (output.status.code().unwrap(), log, left)
}

#[test]
fn what_changed_in_the_environment_of_a_job_whose_sprag_was_killed_is_undone_and_fails_the_job() {
    let path = "/usr/local/bin:/usr/bin:/bin";
    let job = [
        ("PATH", path),
        ("HOME", "/home/me"),
        ("TOKEN", "two\nlines"),
        ("LD_PRELOAD", ""),
    ];
    let (code, log, [noted, ..]) = around("before", &job, &[]);
    assert_eq!(code, 0, "{log}");
    assert!(
        !noted.contains("/home/me") && !noted.contains("lines"),
        "values stay where they are: {noted}"
    );
    let output = |name: &str| {
        let (_, rest) = noted.split_once(&format!("{name}=")).unwrap();
        rest.lines().next().unwrap().to_owned()
    };
    let (_, state) = noted.split_once("state<<sprag_end_of_state\n").unwrap();
    let state = state.strip_suffix("\nsprag_end_of_state\n").unwrap();
    let (bash, known) = (output("bash"), output("path"));
    let of_step = [
        ("shell", bash.as_str()),
        ("steps.before.outputs.path", &known),
        ("steps.before.outputs.state", state),
    ];
    let (code, log, left) = around("after", &job, &of_step);
    assert_eq!((code, left), (0, Default::default()), "{log}");

    let mark = tempfile::tempdir().unwrap();
    let runs = format!("touch {}/ran", mark.path().display());
    let evil = mark.path().join("evil.sh");
    fs::write(&evil, &runs).unwrap();
    let function = format!("() {{ {runs}; }}");
    for (name, value) in [
        ("LD_PRELOAD", "/tmp/evil.so"),
        ("LD_AUDIT", "/tmp/evil.so"),
        ("BASH_ENV", evil.to_str().unwrap()),
        ("SHELLOPTS", "xtrace"),
        ("BASH_FUNC_printf%%", function.as_str()),
        ("NEW", "1"),
        ("HOME", "/tmp"),
        ("PATH", "/tmp/evil:/usr/local/bin:/usr/bin:/bin"),
    ] {
        let mut job: Vec<(&str, &str)> = job
            .iter()
            .copied()
            .filter(|(known, _)| *known != name)
            .collect();
        job.push((name, value));
        let (code, log, [_, env, dirs]) = around("after", &job, &of_step);
        assert_eq!(code, 1, "{name}: {log}");
        assert!(
            log.contains("::error ") && log.contains(name),
            "{name}: {log}"
        );
        if name == "PATH" {
            assert_eq!(
                (env.as_str(), dirs.as_str()),
                ("", "/bin\n/usr/bin\n/usr/local/bin\n")
            );
        } else {
            assert_eq!((env, dirs.as_str()), (format!("{name}=\n"), ""));
        }
        assert!(!mark.path().join("ran").exists(), "{name} is not obeyed");
    }
}
