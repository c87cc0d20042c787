//! What a confined agent, check, hook or setup command cannot reach, at each level that the machine has.

mod caches;
mod filters;
mod reach;
mod toolchains;

use crate::support::project::{Project, Run, plan};
use crate::support::user::User;
use crate::support::{has, is_full};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A project whose children are confined as the defaults say.
fn project(files: &[(&str, &str)]) -> Project {
    let mut project = Project::new(files);
    project.env("SPRAG_SANDBOX", "auto");
    project
}

/// The setting that confines children to named places at this level.
fn strict(level: u8) -> String {
    format!("require:{level}")
}

/// What a machine says of the sandbox of a run.
type Reached = Option<Value>;

/// What this user reaches here; `None` where the user cannot run `sprag`.
fn reached(user: User) -> &'static Reached {
    static OF: [OnceLock<Reached>; 2] = [const { OnceLock::new() }; 2];
    OF[user as usize].get_or_init(|| {
        let probe = project(&[("plan.yaml", &plan("true"))]);
        let agent = probe.agent("echo fixed > a.txt");
        let notes = probe.outside("").display().to_string();
        let args = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
        let places = ["--sandbox", "require:1", "--sandbox-write", &notes];
        let run = user.sprag(&probe, &[&args[..], &places].concat())?;
        Some(run.expect(0).summary["sandbox"].clone())
    })
}

/// Runs what is to be shown for every user at every level that the user reaches here. In the gate, root is shown at
/// the highest of the levels alone: jobs are an ordinary user's.
pub fn everywhere(levels: &[u8], show: impl Fn(User, u8)) {
    for user in User::all() {
        let Some(reached) = reached(user) else {
            continue;
        };
        let highest = reached["level"].as_u64().unwrap_or(0);
        let (due, missing): (Vec<u8>, Vec<u8>) = levels
            .iter()
            .partition(|level| u64::from(**level) <= highest);
        for level in missing {
            let why = &reached["missing"];
            eprintln!("SKIPPED: level {level} is not to be had here: {why}");
        }
        let is_one_enough = user == User::Own && User::all().len() > 1 && !is_full();
        let begin = due
            .len()
            .saturating_sub(if is_one_enough { 1 } else { due.len() });
        due[begin..].iter().for_each(|level| show(user, *level));
    }
}

/// A run with one command as the agent that is confined to named places, at a level.
fn run(user: User, project: &Project, level: u8, agent: &str, more: &[&str]) -> Option<Run> {
    let (agent, required) = (script(project, agent), strict(level));
    let mut args = vec![
        "run",
        "--plan",
        "plan.yaml",
        "--agent-command",
        &agent,
        "--sandbox",
        &required,
    ];
    args.extend(more);
    let mut command = user.command(project, &args)?;
    let output = command
        .env("SPRAG_SANDBOX_LIMIT", level.to_string())
        .output()
        .unwrap();
    let run = project.finished(&output);
    assert_eq!(
        run.summary["sandbox"]["level"],
        json!(level),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
    Some(run)
}

/// The agent that this script is, written where it cannot change it.
fn script(project: &Project, script: &str) -> String {
    let path = project.outside("script.sh");
    fs::write(
        &path,
        format!("cat > prompt.txt; rm prompt.txt\n{script}\n"),
    )
    .unwrap();
    format!("sh {}", path.display())
}

/// What the children print by which a test sees what they could do.
fn said(run: &Run) -> String {
    let dir = run.dir.as_ref().unwrap();
    let texts = ["turns", "verify"].into_iter().flat_map(|folder| {
        let files = fs::read_dir(dir.join(folder)).into_iter().flatten();
        files.map(|file| fs::read(file.unwrap().path()).unwrap())
    });
    let texts: Vec<String> = texts
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .collect();
    texts.join("\n")
}

#[test]
fn an_agent_writes_in_its_work_tree_and_its_temporary_directory_and_nowhere_else() {
    everywhere(&[2, 3], |user, level| {
        let mut project = project(&[
            ("plan.yaml", &plan("grep -q fixed a.txt")),
            ("a.txt", "broken\n"),
        ]);
        let programs = project.beside("programs");
        fs::create_dir(&programs).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path =
            std::env::join_paths(std::env::split_paths(&path).chain([programs.clone()])).unwrap();
        project.env("PATH", path);
        let agent = format!(
            "for place in {agent} {home} {programs} {state} {state}/sprag/*/*/ {tmp} /tmp; do\n\
             touch \"$place/reached\" && echo REACHED \"$place\"; cp a.txt \"$place/reached2\" && echo REACHED; done\n\
             for file in {state}/sprag/*/*/*; do (: >> \"$file\") && echo REACHED \"$file\"; done\n\
             ln -s {home} link; touch link/reached && echo REACHED link; rm link\n\
             ln {agent}/script.sh hard && (echo x >> hard) && echo REACHED hard; rm -f hard\n\
             touch \"$TMPDIR/mine\" ~/.cache/mine && mkdir -p deep/er && echo INSIDE\n\
             rm -r deep; echo fixed > a.txt",
            agent = project.outside("").display(),
            home = project.beside("home").display(),
            programs = programs.display(),
            state = project.beside("state").display(),
            tmp = project.beside("tmp").display(),
        );
        let Some(run) = run(user, &project, level, &agent, &[]) else {
            return;
        };
        let run = run.expect(0);
        let said = said(&run);
        let warned = run.summary["warnings"].to_string();
        assert!(warned.contains("sandbox_write"), "{warned}");
        assert!(
            said.contains("INSIDE") && !said.contains("REACHED"),
            "{said}"
        );
        for place in ["agent", "home", "programs", "state", "tmp"] {
            assert!(!project.beside(place).join("reached").exists(), "{place}");
        }
        assert!(!project.beside("home/.cache/mine").exists());
        let left: Vec<_> = fs::read_dir(project.beside("tmp")).unwrap().collect();
        assert!(
            left.is_empty(),
            "the directory for temporary files is gone: {left:?}"
        );
    });
}

/// A run with the defaults, at the level that these have; `None` where it is not to be had.
fn by_default(user: User, project: &Project, agent: &str) -> Option<Run> {
    let args = ["run", "--plan", "plan.yaml", "--agent-command", agent];
    let run = user.sprag(project, &args)?;
    let line = &run.summary["sandbox"];
    if line["level"] != json!(2) {
        eprintln!("SKIPPED: level 2 is not to be had here: {line}");
        return None;
    }
    Some(run)
}

#[test]
fn a_missing_directory_of_programs_is_not_the_agents_to_make() {
    for user in User::all() {
        let mut project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let top = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let programs = top.path().join("not/there");
        let path = std::env::var_os("PATH").unwrap();
        let path = [programs.clone()]
            .into_iter()
            .chain(std::env::split_paths(&path));
        project.env("PATH", std::env::join_paths(path).unwrap());
        let agent = format!(
            "mkdir -p {programs}; printf '#!/bin/sh\\n' > {programs}/grep && chmod 755 {programs}/grep && echo REACHED programs
             mv {top}/not {top}/moved && echo REACHED above; touch {top}/x && echo ALL OF IT",
            programs = programs.display(),
            top = top.path().display(),
        );
        let agent = project.agent(&agent);
        let Some(run) = by_default(user, &project, &agent) else {
            continue;
        };
        let said = said(&run.expect(1));
        let is_whole = said.contains("ALL OF IT");
        assert!(is_whole && !said.contains("REACHED"), "{user:?}: {said}");
    }
}

#[test]
fn programs_that_write_beside_the_work_tree_notice_nothing_by_default() {
    for user in User::all() {
        let mut project = project(&[("a.txt", "broken\n")]);
        project.env("SPRAG_AGENT_COMMITS", "squash");
        let check =
            project.check("mktemp /tmp/sprag-test-XXXXXX | xargs rm && grep -q fixed a.txt");
        let setup = format!(
            "touch {}",
            project.beside("home/.cache/installed").display()
        );
        project.write(
            "plan.yaml",
            &format!("{}setup: [\"{setup}\"]\n", plan(&check)),
        );
        project.commit_all("plan");
        let agent = project.agent(
            "set -e
             rm $(mktemp /tmp/sprag-test-XXXXXX) $(mktemp) $(mktemp /var/tmp/sprag-test-XXXXXX)
             rm $(mktemp /dev/shm/sprag-test-XXXXXX)
             echo x > /dev/null; : > /dev/full; mkdir -p ~/.cache/tool
             mkdir \"$OUT/clone\"; git clone -q . \"$OUT/clone\"
             git config user.email other@example.invalid; git config user.name Other
             echo fixed > a.txt; git commit -qam theirs; echo ALL OF IT",
        );
        let Some(run) = by_default(user, &project, &agent) else {
            continue;
        };
        let said = said(&run);
        assert!(
            said.contains("ALL OF IT"),
            "{user:?}: {said}\n{}",
            run.stdout
        );
        let run = run.expect(0);
        assert_eq!((project.calls(), project.checks()), (1, 2));
        assert!(project.beside("home/.cache/installed").exists());
        let warned = run.summary["warnings"].to_string();
        assert!(!warned.contains("sandbox"), "{warned}");
    }
}

#[test]
fn what_a_run_and_its_machine_rely_on_stays_as_it_is_by_default() {
    for user in User::all() {
        let mut project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let (programs, runner) = (project.beside("programs"), project.beside("runner"));
        for dir in [&programs, &runner, &runner.join("_runner_file_commands")] {
            fs::create_dir(dir).unwrap();
        }
        fs::write(programs.join("tool"), "theirs").unwrap();
        let commands = runner.join("_runner_file_commands/set_env_1");
        fs::write(&commands, "").unwrap();
        fs::write(project.outside("output"), "").unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::split_paths(&path).chain([programs.clone()]);
        project.env("PATH", std::env::join_paths(path).unwrap());
        project.env("RUNNER_TEMP", &runner);
        project.env("GITHUB_ENV", &commands);
        project.env("GITHUB_OUTPUT", project.outside("output"));
        let agent = format!(
            "cd {root}
             for place in programs runner runner/_runner_file_commands state/sprag state/sprag/*/*/; do
               touch \"$place/reached\" && echo REACHED $place; done
             for file in programs/tool runner/_runner_file_commands/* agent/output state/sprag/*/*/*; do
               (echo x >> $file) && echo REACHED $file; rm -f $file && echo REACHED $file
               (echo x > new; mv new $file) && echo REACHED $file; ln -f $file agent/link && echo REACHED $file; done
             for place in programs runner state state/sprag agent; do mv $place moved && echo REACHED $place; done
             cd repo; (cd ../state && touch sprag/reached && echo REACHED state)
             touch {root}/programs/reached
             grep -qs CANARY /proc/$PPID/environ && echo REACHED environ
             echo fixed > a.txt; echo ALL OF IT",
            root = project.beside("").display(),
        );
        project.env("CANARY", "do-not-read-me");
        let agent = project.agent(&agent);
        let Some(run) = by_default(user, &project, &agent) else {
            continue;
        };
        let (said, run) = (said(&run), run.expect(0));
        let is_whole = said.contains("ALL OF IT");
        assert!(is_whole && !said.contains("REACHED"), "{user:?}: {said}");
        assert_eq!(fs::read_to_string(programs.join("tool")).unwrap(), "theirs");
        let output = fs::read_to_string(project.outside("output")).unwrap();
        assert!(
            output.contains("sandbox-level=2") || output.contains("sandbox-level<<"),
            "{output}"
        );
        let warned = run.summary["warnings"].to_string();
        assert!(warned.contains("the sandbox protects it"), "{warned}");
    }
}

#[test]
fn checks_hooks_and_setup_commands_are_confined_too() {
    everywhere(&[2, 3], |user, level| {
        let project = project(&[]);
        let canary = project.beside("home/canary");
        let reach = format!("touch {} && echo REACHED; true", canary.display());
        let text = format!("{}setup: [\"{reach}; touch ignored\"]\n", plan(&reach));
        project.write("plan.yaml", &text);
        project.write(".gitignore", "ignored\n");
        project.commit_all("plan");
        project.hook("pre-commit", &format!("{reach}; test -f ignored"));
        let Some(run) = run(user, &project, level, "echo fixed > a.txt", &[]) else {
            return;
        };
        let run = run.expect(0);
        assert!(!canary.exists() && !said(&run).contains("REACHED"));
        assert_eq!(run.summary["commits"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn git_works_in_the_work_tree_and_what_configures_it_is_read_only() {
    everywhere(&[3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let config = project.read(".git/config");
        let agent = "git config user.email other@example.invalid && echo REACHED config\n\
                     echo x >> .git/config && echo REACHED config\n\
                     touch .git/hooks/pre-push && echo REACHED hooks\n\
                     mkdir -p .git/info && echo x >> .git/info/exclude && echo REACHED info\n\
                     mv .git moved && echo REACHED git\n\
                     chmod 777 .git/config && echo REACHED mode\n\
                     echo fixed > a.txt && git add a.txt && git commit -qm mine && git branch other && git branch -D other && echo COMMITTED";
        let Some(run) = run(user, &project, level, agent, &["--agent-commits", "accept"]) else {
            return;
        };
        let run = run.expect(0);
        let said = said(&run);
        assert!(
            said.contains("COMMITTED") && !said.contains("REACHED"),
            "{said}"
        );
        assert_eq!(project.read(".git/config"), config);
    });
}

#[test]
fn nothing_outlives_its_turn_whatever_it_forks() {
    everywhere(&[1, 2, 3], |user, level| {
        let check = "B=chain.sh.beat; a=$(cat \"$B\"); sleep 0.3; test \"$a\" = \"$(cat \"$B\")\"";
        let project = project(&[("plan.yaml", &plan(check))]);
        // Each process of the chain starts its successor and ends, and is in a session of its own. A scan can miss
        // the whole chain, but not the process that waits.
        let agent = "cat > chain.sh <<'END'\n\
                     env -i setsid sh \"$0\" & \n\
                     echo $$ > \"$0.beat\"\n\
                     END\n\
                     env -i setsid sh \"$PWD/chain.sh\" &\n\
                     env -i setsid sleep 600 &\n\
                     sleep 0.2; echo fixed > a.txt";
        let Some(run) = run(user, &project, level, agent, &[]) else {
            return;
        };
        let run = run.expect(0);
        assert!(
            run.stderr.contains(" running; ") || run.stdout.contains(" running; "),
            "{}",
            run.stdout
        );
        let chain = Command::new("pgrep")
            .args(["-f", &format!("{}.*chain.sh", project.repo().display())])
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&chain.stdout), "");
    });
}

#[test]
fn processes_outside_are_neither_read_nor_signalled() {
    everywhere(&[2, 3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let mut canary = Command::new("sleep");
        canary.arg("600").env("CANARY_SECRET", "do-not-read-me");
        if user == User::Ordinary {
            use std::os::unix::process::CommandExt as _;
            canary.uid(65534).gid(65534);
        }
        let mut canary = canary.spawn().unwrap();
        let agent = format!(
            "grep -qs do-not-read-me /proc/*/environ && echo REACHED environ\n\
             kill -0 {pid} && echo REACHED signal\n\
             readlink /proc/{pid}/fd/0 && echo REACHED descriptors\n\
             echo fixed > a.txt",
            pid = canary.id()
        );
        let run = run(user, &project, level, &agent, &[]);
        let alive = canary.try_wait().unwrap().is_none();
        canary.kill().unwrap();
        canary.wait().unwrap();
        let Some(run) = run else { return };
        let said = said(&run.expect(0));
        assert!(alive && !said.contains("REACHED"), "{said}");
    });
}

#[test]
fn no_program_gives_more_rights_than_its_caller_has() {
    everywhere(&[1, 2, 3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let agent = "grep NoNewPrivs /proc/self/status; echo fixed > a.txt";
        let Some(run) = run(user, &project, level, agent, &[]) else {
            return;
        };
        let said = said(&run.expect(0));
        assert!(
            said.contains("NoNewPrivs:\t1") || said.contains("NoNewPrivs:\\t1"),
            "{said}"
        );
    });
}

#[test]
fn the_level_is_told_everywhere_and_off_is_a_level_too() {
    let output = |run: &Run| -> Value { run.summary["sandbox"]["level"].clone() };
    let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
    let off = user_run(&project, &["--sandbox", "off"]);
    assert_eq!(output(&off), json!("off"));
    assert!(off.stdout.contains("sandbox: off"), "{}", off.stdout);
    project.git(&["reset", "--hard", "--quiet", "HEAD~1"]);
    let auto = user_run(&project, &[]);
    let level = output(&auto).as_u64().unwrap();
    assert!(
        level >= 1
            && auto
                .stdout
                .contains(&format!("sandbox: level {level} of 3")),
        "{}",
        auto.stdout
    );
    let started = &auto.events[0];
    assert_eq!(started["sandbox"]["level"], json!(level));
    let report = fs::read_to_string(auto.dir.as_ref().unwrap().join("report.md")).unwrap();
    has(&report, format!("sandbox: level {level} of 3"));
}

fn user_run(project: &Project, more: &[&str]) -> Run {
    let agent = script(project, "echo fixed > a.txt");
    let mut args = vec!["run", "--plan", "plan.yaml", "--agent-command", &agent];
    args.extend(more);
    project.sprag(&args).expect(0)
}

#[test]
fn a_level_that_is_required_and_not_there_is_exit_4_before_any_turn() {
    let mut project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
    project.env("SPRAG_SANDBOX_LIMIT", "1");
    let agent = script(&project, "echo fixed > a.txt");
    let run = |required: &str| {
        let agent = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
        project.sprag(&[&agent[..], &["--sandbox", required]].concat())
    };
    for required in ["require", "require:2", "require:3"] {
        let refused = run(required).expect(4);
        let told = &refused.stderr;
        has(told, format!("`sandbox: {required}` requires"));
        assert!(told.contains("this machine allows only level 1"), "{told}");
        assert_eq!(
            (project.commits(), project.read(".git/HEAD")),
            (1, "ref: refs/heads/main\n".into())
        );
        assert!(!project.repo().join("a.txt").exists());
    }
    let run = run("require:1").expect(0);
    assert_eq!(run.summary["sandbox"]["level"], json!(1));
    assert!(run.summary["sandbox"]["missing"].is_string());
}

#[test]
fn a_place_that_is_named_may_be_written_but_for_what_is_protected_in_it() {
    everywhere(&[3], |user, level| {
        let project = project(&[("plan.yaml", &plan("grep -q fixed a.txt"))]);
        let home = project.beside("home");
        fs::create_dir_all(home.join("data/deep")).unwrap();
        let agent = "touch ~/data/deep/mine && echo GRANTED; touch ~/other && echo REACHED\n\
                     for run in \"$XDG_STATE_HOME\"/sprag/*/*/; do touch \"$run/reached\" && echo REACHED; done\n\
                     touch \"$XDG_STATE_HOME/beside\" && echo BESIDE; echo fixed > a.txt";
        let state = project.beside("state").display().to_string();
        let more = ["--sandbox-write", "~/data", "--sandbox-write", &state];
        let Some(run) = run(user, &project, level, agent, &more) else {
            return;
        };
        let said = said(&run.expect(0));
        let is_right = said.contains("GRANTED") && said.contains("BESIDE");
        assert!(is_right && !said.contains("REACHED"), "{said}");
    });
}

#[test]
fn a_place_that_becomes_a_link_opens_nothing_else() {
    everywhere(&[2, 3], |user, level| {
        let check = "touch build/reached || touch other/reached || grep -q fixed a.txt";
        let project = project(&[
            ("plan.yaml", &plan(check)),
            (".gitignore", "build\nother\n"),
        ]);
        let outside = project.beside("home/outside");
        fs::create_dir_all(&outside).unwrap();
        let build = project.repo().join("build");
        fs::create_dir_all(&build).unwrap();
        let other = project.repo().join("other/deep").display().to_string();
        let (build, outside) = (build.display().to_string(), outside.display().to_string());
        let agent = format!(
            "rm -rf build other; ln -s '{outside}' build; ln -s '{outside}' other; echo fixed > a.txt"
        );
        let more = ["--sandbox-write", &build, "--sandbox-write", &other];
        let Some(run) = run(user, &project, level, &agent, &more) else {
            return;
        };
        run.expect(0);
        let left: Vec<_> = fs::read_dir(&outside).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn what_a_launcher_is_cannot_be_told_from_the_outside() {
    // Without a report the hidden subcommand starts nothing.
    let project = project(&[]);
    let run = project.sprag(&[
        "__sandbox",
        "77",
        ".",
        "/bin/sh",
        "1",
        r#"{"level":2}"#,
        "sh",
        "-c",
        "touch reached",
    ]);
    assert_eq!(run.code, 125);
    assert!(!project.repo().join("reached").exists());
    let mode = fs::metadata(Path::new(env!("CARGO_BIN_EXE_sprag")))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o6000, 0, "it needs no rights of its own");
}
