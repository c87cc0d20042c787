//! Processes that children leave running.

use super::*;

#[tokio::test(flavor = "current_thread")]
async fn a_daemon_is_ended_and_reported() {
    let wait_for_exec = r#"while [ "$(cat /proc/$!/comm)" != sleep ]; do :; done"#;
    let cases = [
        ("setsid sleep 1000 &", true),
        ("setsid sleep 1000 </dev/null >/dev/null 2>&1 &", false),
        ("sleep 1000 </dev/null >/dev/null 2>&1 &", false),
    ];
    for (daemon, held_open) in cases {
        let script = format!("{daemon} {wait_for_exec}; echo $!");
        let seen = Trial::sh(&script).run().await;
        let pid = seen.stdout.trim().parse().unwrap();
        let leaked = Leaked {
            pid,
            command: "sleep 1000".into(),
            killed: true,
        };
        assert_eq!(seen.ended.exit, Exit::Code(0), "{daemon}");
        assert_eq!(seen.ended.leaked, [leaked], "{daemon}");
        assert_eq!(
            (seen.ended.output_held_open, seen.left),
            (held_open, vec![]),
            "{daemon}"
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_daemon_that_lost_its_parent_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let up = directory.path().join("up");
    let script = format!(
        "(setsid sh -c 'echo up; : >{up}; exec sleep 1000' &) ; until [ -e {up} ]; do sleep 0.02; done",
        up = up.display()
    );
    let seen = Trial::sh(&script).run().await;
    assert_eq!(
        (seen.ended.exit, seen.stdout.as_str()),
        (Exit::Code(0), "up\n")
    );
    assert_eq!(seen.ended.leaked.len(), 1);
    assert_eq!((seen.ended.output_held_open, seen.left), (true, vec![]));
}

#[tokio::test(flavor = "current_thread")]
async fn one_run_leaves_the_children_of_another_alone() {
    let mut survivor = Command::new("sleep")
        .arg("1000")
        .env(PROCESS_ID, Uuid::new_v4().to_string())
        .spawn()
        .unwrap();
    let seen = Trial::sh("(setsid sleep 1000 &)").run().await;
    assert_eq!(seen.left, vec![]);
    assert_eq!(survivor.try_wait().unwrap(), None);
    survivor.kill().unwrap();
    survivor.wait().unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn a_brood_is_killed_to_the_last() {
    let script = "trap '' TERM; i=0; while [ $i -lt 100 ]; do i=$((i+1)); \
                  setsid sh -c 'sleep 1000 & (setsid sleep 1000 &) ; wait' & done; echo ready; wait";
    let limits = Limits {
        grace: Duration::from_millis(50),
        ..Limits::default()
    };
    let cancel = ends_with("ready\n", |cancel| cancel.trigger(CancelReason::Interrupt));
    let seen = Trial::sh(script).limits(limits).run_and(cancel).await;
    assert_eq!(seen.ended.exit, Exit::Cancelled(CancelReason::Interrupt));
    assert_eq!(seen.left, vec![]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_service_lives_until_it_is_ended_and_can_go_on_writing() {
    let directory = tempfile::tempdir().unwrap();
    let (go, gone) = (directory.path().join("go"), directory.path().join("gone"));
    let script = format!(
        "(trap '' TERM; until [ -e {go} ]; do sleep 0.02; done; head -c 4000000 /dev/zero; \
          echo x >{gone}; sleep 1000) &",
        go = go.display(),
        gone = gone.display()
    );
    let trial = Trial::sh(&script);
    let (ended, service) = run_keeping(&trial.spec, &trial.cancel, &mut |_, _| {}).await;
    assert_eq!((ended.exit, ended.leaked), (Exit::Code(0), vec![]));
    assert!(!tagged(&trial.tag).is_empty());
    // Meanwhile another child with its own daemon runs and ends.
    let other = Trial::sh("(setsid sleep 1000 &)").run().await;
    assert_eq!(other.ended.leaked.len(), 1);
    fs::write(&go, "").unwrap();
    while !gone.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    service.unwrap().end(Duration::from_millis(50)).await;
    assert_eq!(tagged(&trial.tag), vec![]);
}

#[tokio::test(flavor = "current_thread")]
async fn only_what_a_success_leaves_is_a_service_and_it_ends_when_dropped() {
    let trial = Trial::sh("sleep 1000 >/dev/null 2>&1 & exit 3");
    let (ended, service) = run_keeping(&trial.spec, &trial.cancel, &mut |_, _| {}).await;
    assert_eq!((ended.exit, ended.leaked.len()), (Exit::Code(3), 1));
    assert!(service.is_none());
    let trial = Trial::sh("(setsid sleep 1000 &)");
    let (_, service) = run_keeping(&trial.spec, &trial.cancel, &mut |_, _| {}).await;
    assert!(!tagged(&trial.tag).is_empty());
    drop(service);
    assert_eq!(tagged(&trial.tag), vec![]);
}

#[test]
fn the_processes_of_a_dead_run_are_killed_by_its_marker() {
    let marker = Uuid::new_v4().to_string();
    let start = |name: &str, script: &str| {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .env(name, &marker)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        child
    };
    let mut children = [
        start(RUN_ID, "env -i sh -c 'echo ready; sleep 1000; :'; :"),
        start(PROCESS_ID, "echo ready; exec setsid sleep 1000"),
        start("OTHER_ID", "echo ready; exec sleep 1000"),
    ];
    let leaked = kill_marked(&marker);
    let pids: Vec<i32> = leaked.iter().map(|leaked| leaked.pid).collect();
    assert!(leaked.iter().all(|leaked| leaked.killed), "{leaked:?}");
    for child in &mut children[..2] {
        assert!(
            pids.contains(&i32::try_from(child.id()).unwrap()),
            "{leaked:?}"
        );
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    assert!(children[2].try_wait().unwrap().is_none());
    children[2].kill().unwrap();
    children[2].wait().unwrap();
}
