//! The secrets of the job in what an agent leaves behind: nothing of it is committed.

use crate::support::has;
use crate::support::project::{Project, Run};
use crate::support::tasks::{end, fixable, fixable_by, warnings};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::fs;

const KEY: &str = "canary/model+key-7f3a9c";

/// Runs an agent that fixes `a.txt` and then does this, beside a variable that holds [`KEY`].
fn run(project: &mut Project, script: &str, args: &[&str]) -> Run {
    project.env("MODEL_API_KEY", KEY);
    let agent = project.agent(&format!("echo fixed > a.txt\n{script}\necho Done."));
    project.run(&agent, args)
}

fn assert_refused(project: &Project, run: Run, place: &str) {
    let run = run.expect(3);
    let task = run.task(0);
    assert_eq!(end(task), ("blocked", "policy_violation"));
    let message = task["message"].as_str().unwrap();
    let told = format!("the value of MODEL_API_KEY is in {place}");
    assert!(message.contains(&told), "{message}");
    assert_eq!(project.commits(), 2, "nothing is committed");
    let dir = run.dir.as_ref().unwrap();
    let patch = fs::read_to_string(dir.join(task["patch"].as_str().unwrap())).unwrap();
    assert!(!patch.contains(KEY), "{patch}");
    assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY));
}

#[test]
fn a_secret_in_a_file_blocks_the_task() {
    let encoded = BASE64_STANDARD.encode(KEY);
    for script in [
        format!("mkdir conf; echo 'key = {KEY}' > conf/key"),
        format!("mkdir conf; printf 'x\\0{KEY}\\0' > conf/key"),
        format!("mkdir conf; echo '{encoded}' > conf/key"),
        format!("mkdir conf; ln -s '{KEY}' conf/key"),
        format!("mkdir conf; echo '{KEY}' > conf/key; git add conf"),
    ] {
        let mut project = fixable();
        let run = run(&mut project, &script, &[]);
        assert_refused(&project, run, "conf/key");
    }
}

/// The secret with every character written by this.
fn escaped(form: fn(char) -> String) -> String {
    KEY.chars().map(form).collect()
}

#[test]
fn a_secret_in_another_encoding_or_with_escapes_blocks_the_task() {
    let wrapped = BASE64_STANDARD.encode(format!("a {KEY} b"));
    let (first, second) = wrapped.split_at(17);
    for script in [
        format!(
            "mkdir conf; printf '%s' '{}' > conf/key",
            escaped(|c| format!("%{:02X}", u32::from(c)))
        ),
        format!(
            "mkdir conf; printf '%s' '{}' > conf/key",
            escaped(|c| format!("\\u{:04x}", u32::from(c)))
        ),
        format!(
            "mkdir conf; printf '%s' '{}' > conf/key",
            escaped(|c| format!("\\x{:02x}", u32::from(c)))
        ),
        format!(
            "mkdir conf; printf '%s' '{}' > conf/key",
            KEY.replace('7', "%37").replace('/', "&#47;")
        ),
        format!(
            "mkdir conf; printf '%s' '{}' > conf/key",
            escaped(|c| format!("%255C%75{:04x}", u32::from(c)))
        ),
        format!("mkdir conf; printf '%s\n%s' '{first}' '{second}' > conf/key"),
        format!("mkdir conf; printf '%s' '{KEY}' | sed 's/./&\\x00/g' > conf/key"),
        format!(
            "mkdir conf; printf '%s' '{KEY}' | sed 's/./&\\x00/g' > conf/key
             echo 'conf/key working-tree-encoding=UTF-16LE' > .gitattributes"
        ),
    ] {
        let mut project = fixable();
        let run = run(&mut project, &script, &[]);
        assert_refused(&project, run, "conf/key");
    }
}

#[test]
fn a_secret_in_the_name_of_a_file_or_in_the_plan_blocks_the_task() {
    for (script, place) in [
        (
            format!("mkdir -p '{KEY}'; echo x > '{KEY}/x'"),
            "the name of a file",
        ),
        (format!("echo '# {KEY}' >> plan.yaml"), "plan.yaml"),
    ] {
        let mut project = fixable();
        let run = run(&mut project, &script, &[]);
        assert_refused(&project, run, place);
    }
}

#[test]
fn a_secret_in_what_progress_leaves_out_blocks_the_task() {
    let mut project = fixable();
    let plan = format!(
        "progress: {{ ignore: ['conf/**'] }}\n{}",
        project.read("plan.yaml")
    );
    project.write("plan.yaml", &plan);
    project.commit_all("progress");
    let run = run(
        &mut project,
        &format!("mkdir conf; echo '{KEY}' > conf/key"),
        &[],
    )
    .expect(3);
    let message = run.task(0)["message"].as_str().unwrap();
    has(message, "MODEL_API_KEY is in conf/key");
    assert_eq!(project.commits(), 3);
}

/// The file in the work tree holds no secret, and the one that would be committed does.
#[test]
fn a_secret_that_a_filter_makes_is_found_in_what_is_staged() {
    let mut project = fixable();
    project.git(&["config", "filter.turn.clean", "tr A-Za-z N-ZA-Mn-za-m"]);
    project.write(".gitattributes", "*.turned filter=turn\n");
    project.commit_all("filter");
    let script = format!("printf '%s' '{KEY}' | tr A-Za-z N-ZA-Mn-za-m > key.turned");
    let run = run(&mut project, &script, &[]).expect(3);
    assert_eq!(end(run.task(0)), ("blocked", "policy_violation"));
    let message = run.task(0)["message"].as_str().unwrap();
    has(message, "MODEL_API_KEY is in key.turned");
    assert_eq!((project.calls(), project.commits()), (1, 3));
}

#[test]
fn a_secret_in_a_commit_of_the_agent_s_own_blocks_the_task() {
    for script in [
        format!("echo '{KEY}' > k; git add k; git commit -qm one; git rm -q k; git commit -qm two"),
        format!("git commit -qam 'Use {KEY}'"),
    ] {
        let mut project = fixable();
        let run = run(&mut project, &script, &[]);
        assert_refused(&project, run, "a commit by the agent");
    }
}

#[test]
fn what_the_repository_holds_already_is_no_secret() {
    let mut project = fixable();
    project.write("compose.yaml", &format!("password: {KEY}\n"));
    project.commit_all("compose");
    let script = format!("echo 'password: {KEY}' >> compose.yaml; echo '{KEY}' > other");
    let run = run(&mut project, &script, &[]).expect(0);
    assert_eq!(run.summary["totals"]["done"], 1);
}

#[test]
fn what_is_not_committed_may_hold_a_secret() {
    let mut project = fixable();
    project.write(".gitignore", ".env\n");
    project.commit_all("ignore");
    run(&mut project, &format!("echo '{KEY}' > .env"), &[]).expect(0);
}

#[test]
fn a_check_that_writes_a_secret_into_a_tracked_file_makes_no_commit() {
    let check = "grep -q fixed a.txt && { grep -qF \"$MODEL_API_KEY\" a.txt || echo \"$MODEL_API_KEY\" >> a.txt; }";
    let mut project = fixable_by(check);
    let plan = format!("verify_env: [MODEL_API_KEY]\n{}", project.read("plan.yaml"));
    project.write("plan.yaml", &plan);
    project.commit_all("verify_env");
    let run = run(&mut project, "", &[]).expect(3);
    assert_eq!(end(run.task(0)), ("blocked", "policy_violation"));
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("MODEL_API_KEY is in a.txt"), "{message}");
    assert_eq!((project.calls(), project.commits()), (1, 3));
}

/// The form of a GitHub token, put together so that no scanner takes this file for a leak.
fn a_token() -> String {
    format!("gh{}_{}", 'p', "x7".repeat(18))
}

#[test]
fn a_new_token_of_a_known_form_is_committed_with_a_warning_that_names_the_file() {
    let mut project = fixable();
    let token = a_token();
    let script = format!(
        "echo 'key = {token}' > conf; echo AK{}EXAMPLE > doc",
        "IAIOSFODNN7"
    );
    let run = run(&mut project, &script, &[]).expect(0);
    let warnings = run.summary["warnings"].to_string();
    let told = "a token or a private key is committed in conf: revoke it";
    assert!(warnings.contains(told), "{warnings}");
    assert!(!run.stdout.contains(&token) && !run.stderr.contains(&token));
}

#[test]
fn a_token_that_the_base_contains_is_none_to_warn_of() {
    let mut project = fixable();
    let token = a_token();
    project.write("old", &format!("key = {token}\n"));
    project.commit_all("a token for tests");
    let script = format!("echo 'other = {token}' > conf");
    let run = run(&mut project, &script, &[]).expect(0);
    let warnings = run.summary["warnings"].to_string();
    assert!(!warnings.contains("is committed in"), "{warnings}");
}

#[test]
fn a_secret_that_is_too_short_to_be_redacted_is_warned_of_by_its_name_where_children_get_it() {
    for (agent_env, warned) in [("SHORT_PASSWORD\nLONG_PASSWORD\nPLAIN", 1), ("PLAIN", 0)] {
        let mut project = fixable();
        project.env("SHORT_PASSWORD", "hunter2");
        project.env("LONG_PASSWORD", "hunter22");
        project.env("PLAIN", "hunter2");
        project.env("SPRAG_AGENT_ENV", agent_env);
        let run = run(&mut project, "true", &["--max-retries=0"]);
        let mut told = warnings(&run);
        told.retain(|it| it.contains("not redacted"));
        assert_eq!(told.len(), warned, "{told:?}");
        assert!(
            told.iter()
                .all(|it| it.starts_with("SHORT_PASSWORD") && !it.contains("hunter2"))
        );
    }
}
