//! What keeps git busy. The run ends soon, nothing is lost, and a signal is heeded meanwhile.

use crate::support::proc::{assert_nothing_left, end_within, signal, wait_until};
use crate::support::project::{Project, plan};
use std::fs;
use std::time::Duration;

const CHECK: &str = "grep -q fixed a.txt";

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

#[test]
fn a_signal_ends_a_filter_that_does_not_end_and_the_work_is_taken_up_again() {
    let project = project();
    let (filter, began) = (project.outside("clean.sh"), project.outside("began"));
    let command = format!("sh {}", filter.display());
    project.git(&["config", "filter.slow.clean", &command]);
    project.git(&["config", "filter.slow.smudge", "cat"]);
    project.git(&["config", "filter.slow.required", "true"]);
    let hangs = format!("touch {}; sleep 1000\n", began.display());
    fs::write(&filter, hangs).unwrap();
    let agent = project
        .agent("echo '*.bin filter=slow' > .gitattributes; echo x > x.bin; echo fixed > a.txt");
    let mut sprag = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    wait_until("the filter begins", || began.exists());
    signal(sprag.id(), "INT");
    let ended = end_within(&mut sprag, Duration::from_secs(30));
    assert_eq!(ended.code(), Some(130));
    let run = project.finished(&sprag.wait_with_output().unwrap());
    assert_eq!(run.summary["status"], "cancelled", "{}", run.stdout);
    assert!(!run.event_names().contains(&"commit.rejected"));
    assert_eq!(project.commits(), 1);
    assert_nothing_left(&project);
    fs::write(&filter, "cat\n").unwrap();
    project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!(project.git(&["cat-file", "blob", "HEAD:x.bin"]), "x");
    assert_eq!(project.calls(), 1);
}
