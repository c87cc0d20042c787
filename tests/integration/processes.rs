//! What children leave behind, and children that do not want to end.

use crate::support::proc::{
    assert_nothing_left, children, end_of, is_alive, left_in, pids, signal, wait_until,
};
use crate::support::project::{Project, plan};
use serde_json::json;
use std::fs;
use std::process::Stdio;

const CHECK: &str = "grep -q fixed a.txt";
const FIX: &str = "echo fixed > a.txt; echo Done.";

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

/// Daemons of every kind: each writes its id into the file `$PIDS` once it is up.
const DAEMONS: [(&str, &str); 9] = [
    (
        "two forks, a session of its own, holding the output",
        r#"(setsid sh -c 'echo $$ >>"$PIDS"; exec sleep 1000' &)"#,
    ),
    (
        "the same without any trace in its environment",
        r#"(env -i PIDS="$PIDS" setsid sh -c 'echo $$ >>"$PIDS"; exec env -i sleep 1000' &)"#,
    ),
    (
        "the same without the output, from another directory",
        r#"(cd / && env -i PIDS="$PIDS" setsid sh -c 'echo $$ >>"$PIDS"; exec env -i sleep 1000' </dev/null >/dev/null 2>&1 &)"#,
    ),
    (
        "one that ignores every signal that can be ignored",
        r#"(setsid sh -c 'trap "" INT TERM HUP QUIT USR1 PIPE; echo $$ >>"$PIDS"; while :; do sleep 1; done' &)"#,
    ),
    (
        "one that is stopped",
        r#"(setsid sh -c 'echo $$ >>"$PIDS"; kill -STOP $$; sleep 1000' &)"#,
    ),
    (
        "one that starts its work anew when it is killed",
        r#"(setsid sh -c 'trap "" TERM; n=0; while [ $n -lt 40 ]; do n=$((n+1)); sh -c "echo \$\$ >>\"$PIDS\"; exec sleep 1000"; done' &)"#,
    ),
    (
        "one whose every generation is a new orphan, asked to end or not",
        r#"cat >"$PIDS.sh" <<'END'
n=$(($1 + 1)); echo $$ >>"$PIDS"
[ $n -lt 40 ] || exit 0
trap "(setsid sh \"$PIDS.sh\" $n >/dev/null 2>&1 &); exit" TERM
while :; do sleep 0.2; done
END
(setsid sh "$PIDS.sh" 0 >/dev/null 2>&1 &)"#,
    ),
    (
        "a whole family",
        r#"(setsid sh -c 'for i in 1 2 3 4 5; do (setsid sleep 1000 &); sleep 1000 & done; echo $$ >>"$PIDS"; wait' &)"#,
    ),
    (
        "a plain background job",
        r#"sh -c 'echo $$ >>"$PIDS"; exec sleep 1000' &"#,
    ),
];

/// A script that starts all daemons and waits until they are up.
fn daemons(project: &Project, name: &str) -> String {
    let starts: Vec<&str> = DAEMONS.iter().map(|(_, script)| *script).collect();
    let path = project.outside(&format!("start-{name}.sh"));
    let text = format!(
        "export PIDS={}\n{}\nwhile [ $(wc -l <\"$PIDS\") -lt {} ]; do sleep 0.02; done\n",
        project.outside(name).display(),
        starts.join("\n"),
        DAEMONS.len()
    );
    fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

/// Waits for nothing: when Sprag has ended, the daemons have.
fn assert_ended(project: &Project, name: &str) {
    let pids = pids(&project.outside(name));
    assert!(pids.len() >= DAEMONS.len(), "{pids:?}");
    let alive: Vec<&u32> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert_eq!(alive, Vec::<&u32>::new());
    assert_nothing_left(project);
}

fn warnings(summary: &serde_json::Value) -> Vec<String> {
    let warnings = summary["warnings"].as_array().unwrap().iter();
    warnings
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn daemons_of_the_agent_are_ended_with_its_turn_and_told() {
    for tracked in [true, false] {
        let mut project = project();
        if tracked {
            project.env("RUNNER_TRACKING_ID", "github_1");
        }
        let daemons = daemons(&project, "daemons");
        // The check fails if one of them is still there.
        let check = format!(
            "for pid in $(cat {}); do ! test -e /proc/$pid || exit 1; done; {CHECK}",
            project.outside("daemons").display()
        );
        let agent = project.agent(&format!("{daemons}; {FIX}"));
        let run = project.run(&agent, &["--verify", &check]).expect(0);
        assert_ended(&project, "daemons");
        let told = warnings(&run.summary);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("the agent left ") && told[0].contains("sleep 1000"),
            "{told:?}"
        );
    }
}

#[test]
fn daemons_of_a_check_are_ended_with_it_and_told() {
    let project = project();
    let daemons = daemons(&project, "daemons");
    let check = format!("{daemons}; {CHECK}");
    let run = project.by(FIX, &["--verify", &check]).expect(0);
    assert_ended(&project, "daemons");
    let told = warnings(&run.summary);
    assert!(
        told.len() == 2
            && told
                .iter()
                .all(|text| text.ends_with("processes running; they were ended")),
        "before and after the turn: {told:?}"
    );
}

#[test]
fn daemons_of_a_hook_are_ended_with_it() {
    let project = project();
    let daemons = daemons(&project, "daemons");
    project.hook("pre-commit", &daemons);
    project.by(FIX, &[]).expect(0);
    assert_ended(&project, "daemons");
}

fn with_setup(project: &Project, setup: &str, check: &str) {
    let setup = serde_json::to_string(setup).unwrap();
    project.write(
        "plan.yaml",
        &format!("services: [ {setup} ]\n{}", plan(check)),
    );
    project.commit_all("setup");
}

#[test]
fn what_setup_starts_serves_the_run_and_ends_with_it() {
    let project = project();
    let daemons = daemons(&project, "daemons");
    let pids = project.outside("daemons").display().to_string();
    let alive = format!("for pid in $(cat {pids}); do test -e /proc/$pid || exit 1; done");
    // A daemon of the agent's own beside them is ended all the same.
    let own = project.outside("own").display().to_string();
    let agent = project.agent(&format!(
        "({alive}) && (env -i setsid sh -c 'echo $$ >{own}; exec sleep 1000' >/dev/null 2>&1 &) ; while ! test -s {own}; do sleep 0.02; done; {FIX}"
    ));
    let check = format!("{alive}; ! test -e /proc/$(cat {own}) && {CHECK}");
    with_setup(&project, &daemons, &check);
    let run = project.run(&agent, &["--max-retries", "0"]).expect(0);
    assert_ended(&project, "daemons");
    let told = warnings(&run.summary);
    assert!(
        told.len() == 1 && told[0].starts_with("the agent left 1 "),
        "{told:?}"
    );
}

/// A service is known by its id and its start time: what it has in its environment can be said by anybody.
#[test]
fn a_daemon_of_the_agent_that_says_it_were_a_service_is_ended_with_its_turn() {
    let mut project = project();
    // The service tells what it has in its environment, so that the daemon can say the same of itself.
    let (marks, own) = (project.outside("marks"), project.outside("own"));
    let (marks, own) = (marks.display(), own.display());
    let setup = format!(
        "(setsid sh -c 'env | grep SPRAG_ >{marks}.new; mv {marks}.new {marks}; exec sleep 1000' >/dev/null 2>&1 &); while ! test -e {marks}; do sleep 0.02; done"
    );
    let check = format!("! test -e /proc/$(cat {own}) && {CHECK}");
    with_setup(&project, &setup, &check);
    project.env("SPRAG_MAX_RETRIES", "0");
    let agent = project.agent(&format!(
        "(env -i $(cat {marks}) setsid sh -c 'echo $$ >{own}; exec sleep 1000' >/dev/null 2>&1 &) ; while ! test -s {own}; do sleep 0.02; done; {FIX}"
    ));
    let run = project.run(&agent, &[]).expect(0);
    assert_nothing_left(&project);
    let told = warnings(&run.summary);
    assert!(
        told.len() == 1 && told[0].starts_with("the agent left 1 "),
        "{told:?}"
    );
}

#[test]
fn services_of_setup_end_with_a_cancelled_run_and_start_again_when_it_is_taken_up() {
    let project = project();
    let pids_file = project.outside("service").display().to_string();
    let setup = format!(
        "echo call >>{pids_file}.calls; (setsid sh -c 'trap \"\" TERM; echo $$ >{pids_file}; while :; do echo log; sleep 0.1; done' &); while ! test -s {pids_file}; do sleep 0.02; done"
    );
    let check = format!("test -e /proc/$(cat {pids_file}) && {CHECK}");
    with_setup(&project, &setup, &check);
    let agent = project.agent(&format!(
        "case $N in 1) touch \"$OUT/began\"; sleep 1000 ;; *) {FIX} ;; esac"
    ));
    let mut sprag = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    wait_until("the turn begins", || project.outside("began").exists());
    signal(sprag.id(), "INT");
    assert_eq!(end_of(&mut sprag).code(), Some(130));
    assert_nothing_left(&project);
    let first = fs::read_to_string(project.outside("service")).unwrap();
    fs::remove_file(project.outside("service")).unwrap();
    project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_nothing_left(&project);
    let second = fs::read_to_string(project.outside("service")).unwrap();
    assert_ne!(first, second);
    assert_eq!(project.notes("service.calls").len(), 2);
}

#[test]
fn an_agent_that_ignores_signals_is_killed_and_the_run_cancelled() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let project = project();
        let agent =
            project.agent("trap '' INT TERM HUP; touch \"$OUT/began\"; while :; do sleep 1; done");
        let mut sprag = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
        wait_until("the turn begins", || project.outside("began").exists());
        signal(sprag.id(), name);
        assert_eq!(end_of(&mut sprag).code(), Some(code));
        let run = project.finished(&sprag.wait_with_output().unwrap());
        assert_eq!(run.summary["status"], "cancelled");
        assert_nothing_left(&project);
    }
}

#[test]
fn a_second_signal_leaves_nothing_running_either() {
    let project = project();
    let pids_file = project.outside("service").display().to_string();
    let setup = format!(
        "(setsid sh -c 'trap \"\" TERM; echo $$ >{pids_file}; while :; do sleep 1; done' &); while ! test -s {pids_file}; do sleep 0.02; done"
    );
    with_setup(&project, &setup, CHECK);
    let agent = project
        .agent("trap ': > \"$OUT/asked\"' TERM; touch \"$OUT/began\"; while :; do sleep 0.1; done");
    let mut sprag = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    wait_until("the turn begins", || project.outside("began").exists());
    signal(sprag.id(), "INT");
    wait_until("the agent is asked to end", || {
        project.outside("asked").exists()
    });
    signal(sprag.id(), "INT");
    assert_eq!(end_of(&mut sprag).code(), Some(130));
    wait_until("the killed are gone", || left_in(&project, &[]).is_empty());
}

#[test]
fn a_stopped_agent_is_ended_by_its_limit() {
    let project = project();
    let run = project
        .by(
            "kill -STOP $$; sleep 1000",
            &["--turn-timeout", "1s", "--max-retries", "0"],
        )
        .expect(1);
    assert_eq!(run.task(0)["reason"], "turn_timeout");
    assert_nothing_left(&project);
}

#[test]
fn zombies_do_not_pile_up() {
    let project = Project::new(&[]);
    // Orphans that end at once, in every turn and every check.
    let orphans = "for i in 1 2 3 4 5 6 7 8 9 10; do (setsid true &); done";
    let tasks: Vec<String> = (1..=10)
        .map(|n| format!("  - {{ id: t{n}, title: Task {n} }}\n"))
        .collect();
    let check = serde_json::to_string(orphans).unwrap();
    project.write(
        "plan.yaml",
        &format!(
            "title: Many\nverify: [ {{ name: test, run: {check} }} ]\ntasks:\n{}",
            tasks.concat()
        ),
    );
    project.commit_all("plan");
    let agent = project.agent(&format!(
        "{orphans}; echo $N > a.txt; test $N -lt 10 || {{ for i in $(seq 200); do (setsid true &); done; touch \"$OUT/last\"; while ! test -e \"$OUT/go\"; do sleep 0.05; done; }}; echo Done."
    ));
    let mut sprag = project
        .command(&["run", "--plan", "plan.yaml", "--agent-command", &agent])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the last turn", || project.outside("last").exists());
    // Only the agent is left, and what ended in its turn is reaped while it runs.
    wait_until("the orphans are reaped", || children(sprag.id()).len() == 1);
    fs::write(project.outside("go"), "").unwrap();
    assert_eq!(end_of(&mut sprag).code(), Some(0));
    assert_nothing_left(&project);
}

#[test]
fn a_bomb_of_forks_is_ended_to_the_last() {
    let project = project();
    // Doubles eight times and no more: 511 processes, each in a session of its own.
    let bomb = project.outside("bomb.sh");
    fs::write(
        &bomb,
        "trap '' TERM INT\ntest $1 -lt 8 && for i in 1 2; do (setsid sh $0 $(($1 + 1)) &); done\necho $$ >>$0.pids\nwhile :; do sleep 5; done\n",
    )
    .unwrap();
    let agent = project.agent(&format!(
        "echo half > a.txt; (setsid sh {bomb} 0 &); while [ $(wc -l <{bomb}.pids) -lt 511 ]; do sleep 0.1; done; touch \"$OUT/began\"; sleep 1000",
        bomb = bomb.display()
    ));
    let mut sprag = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    wait_until("the bomb has gone off", || {
        project.outside("began").exists()
    });
    signal(sprag.id(), "TERM");
    assert_eq!(end_of(&mut sprag).code(), Some(143));
    assert_nothing_left(&project);
    let run = project.finished(&sprag.wait_with_output().unwrap());
    let task = run.task(0);
    assert_eq!(
        json!([task["reason"], task["patch"]]),
        json!(["cancelled", "patches/fix.patch"])
    );
}

/// The step's shell is killed and tells nobody.
#[test]
fn a_run_in_actions_ends_when_its_parent_is_gone() {
    let mut project = project();
    project.env("GITHUB_ACTIONS", "true");
    let temp = project.outside("temp");
    fs::create_dir(&temp).unwrap();
    project.env("RUNNER_TEMP", &temp);
    let agent = project.agent("touch \"$OUT/began\"; sleep 1000");
    let script = r#""$@" & wait"#;
    let binary = env!("CARGO_BIN_EXE_sprag");
    let mut shell = project
        .program(
            "sh",
            &[
                "-c",
                script,
                "sh",
                binary,
                "run",
                "--plan",
                "plan.yaml",
                "--agent-command",
                &agent,
            ],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the turn begins", || project.outside("began").exists());
    shell.kill().unwrap();
    shell.wait().unwrap();
    let summary = || -> Option<serde_json::Value> {
        let run = fs::read_dir(temp.join("sprag")).ok()?.flatten().next()?;
        let text = fs::read_to_string(run.path().join("summary.json")).ok()?;
        serde_json::from_str(&text).ok()
    };
    wait_until("the summary is written", || summary().is_some());
    assert_eq!(summary().unwrap()["status"], "cancelled");
    wait_until("everything has ended", || left_in(&project, &[]).is_empty());
}
