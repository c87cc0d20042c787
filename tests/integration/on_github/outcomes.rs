//! What runs came to, read from their check runs by another job.

use super::{FIX, IS_FIXED, with_pull};
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_job_on_another_machine_reads_what_runs_say_on_their_check_runs() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner.by(FIX, &["--verify", IS_FIXED]).expect(0);
    // Nothing of the run is left but what the repository has.
    fs::remove_dir_all(runner.project.beside("runner").join("sprag")).unwrap();
    runner.checkout("feature");
    let mut command = runner.command_of("outcomes", &["--json", "--branch", "HEAD"]);
    let output = command.output().unwrap();
    let told = runner.project.finished(&output).expect(0);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let expected = [
        ("runs", json!(1)),
        ("runs_known", json!(1)),
        ("statuses", json!({"success": 1})),
        ("tasks_verified", json!(1)),
        ("tasks_merged", json!(1)),
        ("retries", json!(0)),
    ];
    for (key, value) in expected {
        assert_eq!(told[key], value, "{key}: {told}");
    }
}
