//! Tests of a whole process. Each runs in a process of its own, which a test of the same name starts.

use std::process::Output;

use super::*;

fn command(name: &str, tag: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .arg(format!("process::tests::own_process::inner::{name}"))
        .env_clear()
        .env("PATH", path())
        .env(TAG, tag);
    command
}

fn outcome(name: &str) -> (Output, Vec<Proc>) {
    let tag = Uuid::new_v4().to_string();
    let output = command(name, &tag).output().unwrap();
    (output, tagged(&tag))
}

#[test]
fn orphans_are_adopted_reaped_and_ended() {
    let (output, left) = outcome("orphans_are_adopted_reaped_and_ended");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(left, vec![]);
}

#[test]
fn services_that_were_there_before_are_left_alone() {
    let (output, left) = outcome("services_that_were_there_before_are_left_alone");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(left, vec![]);
}

#[test]
fn a_service_and_its_orphans_are_no_leak_of_others() {
    let (output, left) = outcome("a_service_and_its_orphans_are_no_leak_of_others");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(left, vec![]);
}

#[test]
fn what_an_older_process_starts_for_a_child_is_found() {
    let (output, left) = outcome("what_an_older_process_starts_for_a_child_is_found");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(left, vec![]);
}

#[test]
fn a_signal_cancels() {
    for (signal, reason) in [
        ("INT", "interrupted"),
        ("TERM", "terminated"),
        ("HUP", "terminated"),
        ("QUIT", "terminated"),
    ] {
        // Under `nohup` it stays ignored.
        if signal == "HUP" && signals::is_ignored(tokio::signal::unix::SignalKind::hangup()) {
            continue;
        }
        let tag = Uuid::new_v4().to_string();
        let output = command("a_signal_cancels", &tag)
            .env("SIGNAL", signal)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            stdout.contains(&format!("cancelled ({reason})")),
            "{signal}: {stdout}"
        );
        assert_eq!(tagged(&tag), vec![]);
    }
}

#[test]
fn a_second_signal_ends_everything_at_once() {
    let (output, left) = outcome("a_second_signal_ends_everything_at_once");
    assert_eq!((output.status.code(), left), (Some(130), vec![]));
}

#[test]
fn a_run_does_not_outlive_its_parent() {
    let tag = Uuid::new_v4().to_string();
    let inner = command("a_run_does_not_outlive_its_parent", &tag);
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let output = Command::new("sh")
        .args(["-c", r#""$@" & read ready <"$FIFO""#, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env(TAG, &tag)
        .env("FIFO", &fifo)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("cancelled (terminated)"), "{stdout}");
    assert_eq!(tagged(&tag), vec![]);
}

mod inner {
    use super::*;

    /// `None` if all ignored tests are run, in the process of all other tests.
    fn trial(script: &str) -> Option<Trial> {
        let mut trial = Trial::sh(script);
        trial.tag = env::var(TAG).ok()?;
        trial.spec.env = vec![("PATH".into(), path()), (TAG.into(), (&trial.tag).into())];
        Some(trial)
    }

    fn report(line: &str) {
        // The test runner must not capture the output of the shell's own tests.
        writeln!(std::io::stdout(), "{line}").unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    #[ignore = "runs in a process of its own"]
    async fn orphans_are_adopted_reaped_and_ended() {
        // The first orphan ends and must be reaped while the child still runs; the second has hidden its
        // origin.
        let Some(trial) = trial(
            "orphan=$(sh -c 'sleep 0.1 >/dev/null & echo $!'); \
             i=0; while [ -d /proc/$orphan ]; do sleep 0.05; i=$((i+1)); [ $i -lt 600 ] || exit 1; done; \
             (env -i setsid sleep 1000 >/dev/null 2>&1 &) ; echo reaped",
        ) else {
            return;
        };
        become_subreaper().unwrap();
        let seen = trial.run().await;
        assert_eq!(
            (seen.ended.exit, seen.stdout.as_str()),
            (Exit::Code(0), "reaped\n")
        );
        assert_eq!(seen.ended.leaked.len(), 1);
        assert_eq!(host::children(), Vec::<i32>::new());
        assert!(host::is_childless());
    }

    #[tokio::test(flavor = "current_thread")]
    #[ignore = "runs in a process of its own"]
    async fn services_that_were_there_before_are_left_alone() {
        let Some(trial) = trial("(setsid sleep 1000 &)") else {
            return;
        };
        become_subreaper().unwrap();
        let mut service = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(service.id()).unwrap();
        // Only a later tick of the kernel's clock distinguishes the two.
        while host::find(pid).unwrap().start >= now_in_ticks(pid) {
            std::thread::yield_now();
        }
        let seen = trial.run().await;
        assert_eq!(seen.ended.leaked.len(), 1);
        assert_eq!(host::children(), [pid]);
        assert!(!host::is_childless());
        service.kill().unwrap();
        // It is a child until it is reaped.
        assert!(!host::is_childless());
        service.wait().unwrap();
        assert!(host::is_childless());
    }

    #[tokio::test(flavor = "current_thread")]
    #[ignore = "runs in a process of its own"]
    async fn a_service_and_its_orphans_are_no_leak_of_others() {
        // The service starts a worker while one child runs. The worker loses its parent while another
        // one does.
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().display();
        let Some(service) = trial(&format!(
            "(setsid sh -c 'until [ -e {place}/go ]; do sleep 0.02; done; \
              (setsid sleep 1000 & echo $! >{place}/worker; until [ -e {place}/on ]; do sleep 0.02; done); \
              : >{place}/gone; sleep 1000' >/dev/null 2>&1 &)"
        )) else {
            return;
        };
        become_subreaper().unwrap();
        let (_, kept) = run_keeping(&service.spec, &service.cancel, &mut |_, _| {}).await;
        for (told, waits_for) in [("go", "worker"), ("on", "gone")] {
            let other = trial(&format!(
                "touch {place}/{told}; until [ -e {place}/{waits_for} ]; do sleep 0.02; done; \
                 (env -i setsid sleep 1000 >/dev/null 2>&1 &)"
            ));
            let seen = other.unwrap().run().await;
            assert_eq!(seen.ended.leaked.len(), 1);
        }
        let worker = fs::read_to_string(directory.path().join("worker")).unwrap();
        assert!(host::find(worker.trim().parse().unwrap()).is_some());
        kept.unwrap().end(AGES).await;
        assert_eq!(host::children(), Vec::<i32>::new());
    }

    #[tokio::test(flavor = "current_thread")]
    #[ignore = "runs in a process of its own"]
    async fn what_an_older_process_starts_for_a_child_is_found() {
        // The older process is no descendant: it loses its parent before this process adopts any.
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().display();
        let older = format!(
            "until [ -e {place}/mark ]; do sleep 0.02; done; \
             {PROCESS_ID}=$(cat {place}/mark) setsid sh -c \"echo \\$\\$ >{place}/written; \
             mv {place}/written {place}/started; exec sleep 1000\" &"
        );
        let left = format!("(setsid sh -c '{older}' >/dev/null 2>&1 &)");
        let Some(first) = trial("true") else {
            return;
        };
        assert!(
            Command::new("sh")
                .args(["-c", &left])
                .status()
                .unwrap()
                .success()
        );
        become_subreaper().unwrap();
        assert_eq!(first.run().await.ended.leaked, vec![]);
        let second = trial(&format!(
            "echo ${PROCESS_ID} >{place}/written; mv {place}/written {place}/mark; \
             until [ -e {place}/started ]; do sleep 0.02; done"
        ));
        let leaked = second.unwrap().run().await.ended.leaked;
        let started = fs::read_to_string(directory.path().join("started")).unwrap();
        let pids: Vec<i32> = leaked.iter().map(|it| it.pid).collect();
        assert_eq!(pids, [started.trim().parse::<i32>().unwrap()]);
    }

    /// The start time of a process that starts now.
    fn now_in_ticks(after: i32) -> u64 {
        let mut probe = Command::new("true").spawn().unwrap();
        let probed = host::find(i32::try_from(probe.id()).unwrap());
        probe.wait().unwrap();
        probed.or_else(|| host::find(after)).unwrap().start
    }

    #[tokio::test(flavor = "current_thread")]
    #[ignore = "runs in a process of its own"]
    async fn a_signal_cancels() {
        let signal = match env::var("SIGNAL").unwrap().as_str() {
            "INT" => Signal::INT,
            "TERM" => Signal::TERM,
            "QUIT" => Signal::QUIT,
            _ => Signal::HUP,
        };
        let Some(trial) = trial("setsid sleep 1000 & echo ready; wait") else {
            return;
        };
        listen(&trial.cancel).unwrap();
        let raise = ends_with("ready\n", |_| kill_process(getpid(), signal).unwrap());
        let seen = trial.run_and(raise).await;
        assert_eq!(seen.left.len(), 1, "only this process itself");
        report(&seen.ended.exit.to_string());
    }

    #[tokio::test(flavor = "current_thread")]
    #[ignore = "runs in a process of its own"]
    async fn a_second_signal_ends_everything_at_once() {
        let Some(trial) = trial(
            "trap 'echo asked' TERM; setsid sleep 1000 & echo ready; \
             while :; do sleep 1000 & wait; done",
        ) else {
            return;
        };
        listen(&trial.cancel).unwrap();
        let mut first = ends_with("ready\n", |_| kill_process(getpid(), Signal::INT).unwrap());
        let mut second = ends_with("asked\n", |_| {
            kill_process(getpid(), Signal::TERM).unwrap();
            // The run is busy and cannot react, but the process must end.
            std::thread::park();
        });
        let react = |stdout: &str, cancel: &Cancel| {
            first(stdout, cancel);
            second(stdout, cancel);
        };
        trial.run_and(react).await;
    }

    #[tokio::test(flavor = "current_thread")]
    #[ignore = "runs in a process of its own"]
    async fn a_run_does_not_outlive_its_parent() {
        let Some(trial) = trial("echo ready; sleep 1000") else {
            return;
        };
        watch_parent(&trial.cancel).unwrap();
        let fifo = env::var_os("FIFO").unwrap();
        let ready = ends_with("ready\n", move |_| fs::write(&fifo, "ready\n").unwrap());
        let seen = trial.run_and(ready).await;
        report(&seen.ended.exit.to_string());
    }
}
