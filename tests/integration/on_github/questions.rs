//! Questions in the thread of an issue or a pull request.

use super::{own_comments, with_pull};

#[test]
fn a_comment_asks_and_is_answered_in_the_thread() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag ask why does\nthe nightly build fail?");
    let long: String = (0..60).map(|n| format!("line {n}\n\n")).collect();
    let agent = runner
        .project
        .agent(&format!("echo gone > a.txt; echo '{long}'"));
    let step = runner
        .step(&["--agent-command", &agent, "--verify", "false"])
        .expect(0);
    assert_eq!(step.output("status"), "answered");
    assert_eq!(runner.project.calls(), 1);
    let prompt = runner.project.prompt(1);
    assert!(
        prompt.contains("why does\nthe nightly build fail?"),
        "{prompt}"
    );
    let comment = runner.comment(1).unwrap();
    assert!(
        comment.contains("<summary><b>Answer</b></summary>"),
        "{comment}"
    );
    assert!(
        comment.contains("line 0") && comment.contains("line 59"),
        "{comment}"
    );
    assert_eq!(own_comments(&runner), 1);
    let concluded: Vec<Option<String>> = runner
        .github
        .state()
        .checks
        .iter()
        .map(|check| check.conclusion.clone())
        .collect();
    assert_eq!(concluded, [Some("neutral".to_owned())]);
    assert_eq!(runner.server.pushes(), 0);
}
