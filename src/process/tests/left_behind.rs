//! Processes that children leave running.

use super::*;

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
