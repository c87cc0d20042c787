//! A wall clock that jumps back an hour in the middle of a run, or that is far from the present.

use crate::support::project::{Project, Run, plan};
use crate::support::time_limit::{turns_under_limit, under_limit};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const CHECK: &str = "grep -q fixed a.txt";
const FIX: &str = "echo fixed > a.txt; echo Done.";

/// Every way to ask for the wall clock is an hour behind once it was asked a few times, or says what `CLOCK` does.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int asked;

static long behind(void) { return atomic_fetch_add(&asked, 1) < 5 ? 0 : 3600; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec = getenv("CLOCK") ? atol(getenv("CLOCK")) : now->tv_sec - behind();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"#;

/// The shim, built; `None` where there is no C compiler or programs are not linked to it.
fn shim(project: &Project) -> Option<PathBuf> {
    if !cfg!(target_env = "gnu") {
        eprintln!("SKIPPED a test of the clock: the program is not linked dynamically");
        return None;
    }
    let (source, library) = (project.outside("shim.c"), project.outside("shim.so"));
    fs::write(&source, SHIM).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .output();
    match built {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            Some(library)
        }
        Err(error) => {
            eprintln!("SKIPPED a test of the clock: no C compiler: {error}");
            None
        }
    }
}

/// A project in which every `sprag` sees the clock jump after a few looks at it.
fn project() -> Option<Project> {
    let mut project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))]);
    let library = shim(&project)?;
    project.env("LD_PRELOAD", library);
    Some(project)
}

/// The clock did jump, and no length of time shows it.
fn assert_durations(run: &Run) {
    let stamps: Vec<&str> = run
        .events
        .iter()
        .map(|event| event["ts"].as_str().unwrap())
        .collect();
    assert!(
        stamps.windows(2).any(|pair| pair[1] < pair[0]),
        "{stamps:?}"
    );
    let elapsed: Vec<u64> = run
        .events
        .iter()
        .map(|event| event["elapsed_ms"].as_u64().unwrap())
        .collect();
    assert!(elapsed.is_sorted(), "{elapsed:?}");
    let hour = 3_000_000;
    let lengths = run
        .events
        .iter()
        .filter_map(|event| event["duration_ms"].as_u64());
    assert!(lengths.chain(elapsed).all(|length| length < hour));
    let task = run.task(0);
    let whole = [&run.summary["elapsed_ms"], &task["elapsed_ms"]];
    assert!(
        whole.iter().all(|length| length.as_u64().unwrap() < hour),
        "{}",
        run.summary
    );
}

#[test]
fn limits_and_durations_hold() {
    if project().is_none() {
        return;
    }
    let expected = ["turn_timeout", "agent_transient", "changed"];
    let (project, run) = turns_under_limit(&expected, |limit| {
        let project = project().unwrap();
        let agent = project.agent(&format!(
            "case $N in 1) echo half > half.txt; while :; do echo busy; sleep 0.1; done ;; 2) sleep 1000 ;; *) {FIX} ;; esac"
        ));
        let [turn, stall] = [2 * limit, limit].map(|limit| format!("{limit}s"));
        let run = project.run(
            &agent,
            &["--turn-timeout", &turn, "--stall-timeout", &stall],
        );
        (project, run)
    });
    assert_durations(&run.expect(0));
    assert_eq!((project.commits(), project.status()), (2, String::new()));
}

#[test]
fn the_deadline_holds_and_the_run_can_be_taken_up() {
    if project().is_none() {
        return;
    }
    let (project, agent, run) = under_limit(|limit| {
        let project = project().unwrap();
        let agent = project.agent(&format!("test $N = 1 && sleep 1000; {FIX}"));
        let run = project.run(&agent, &["--deadline", &format!("{limit}s")]);
        (project.calls() == 1).then_some((project, agent, run))
    });
    assert_durations(&run.expect(5));
    let run = project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    let elapsed: Vec<u64> = run
        .events
        .iter()
        .map(|event| event["elapsed_ms"].as_u64().unwrap())
        .collect();
    assert!(elapsed.is_sorted(), "{elapsed:?}");
    assert_eq!(run.summary["status"], "success");
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_clock_that_no_timestamp_can_show_is_a_fault_of_the_machine() {
    let Some(mut project) = project() else {
        return;
    };
    let agent = project.agent(FIX);
    for clock in ["-1", "253402300800", "99999999999999"] {
        project.env("CLOCK", clock);
        let run = project.run(&agent, &[]).expect(4);
        let said = "error: the clock of this machine is before 1970 or after 9999; set it";
        assert!(run.stderr.starts_with(said), "{clock}: {}", run.stderr);
    }
    assert_eq!(project.calls(), 0);
    project.env("CLOCK", "0");
    let run = project.run(&agent, &[]).expect(0);
    assert!(run.events[0]["ts"].as_str().unwrap().starts_with("1970-"));
}

#[test]
fn commits_and_the_reflog_are_in_the_time_zone_of_the_run() {
    let mut project = Project::new(&[("a.txt", "0\n")]);
    project.env("TZ", "XXX-3:17");
    let agent = project.agent("echo 1 > a.txt");
    let of_agent = ["--agent-command", &agent, "--verify", "true"];
    let run = project.sprag(&[&["run", "--prompt", "x"], &of_agent[..]].concat());
    run.expect(0);
    let shown = ["--date=format:%z", "--format=%ad %cd %gd"];
    let log = project.git(&[&["log", "-g", "-1"], &shown[..]].concat());
    assert_eq!(log, "+0317 +0317 HEAD@{+0317}");
}
