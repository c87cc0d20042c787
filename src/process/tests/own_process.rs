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

mod inner {
    use super::*;

    /// `None` if all ignored tests are run, in the process of all other tests.
    fn trial(script: &str) -> Option<Trial> {
        let mut trial = Trial::sh(script);
        trial.tag = env::var(TAG).ok()?;
        trial.spec.env = vec![("PATH".into(), path()), (TAG.into(), (&trial.tag).into())];
        Some(trial)
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
}
