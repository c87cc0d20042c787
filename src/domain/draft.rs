//! Plans that an agent drafts: the request for one, finding the plan in its answer, and validating it.

use crate::plan::{self, Plan, TaskStatus};
use crate::settings::{self, Settings};
use crate::text::{self, one_line};

/// The maximum number of attempts by the agent.
pub const MAX_DRAFTS: u32 = 3;

const MAX_PROBLEM: usize = 2_000;
const MAX_DRAFT: usize = 20_000;
const MAX_STEM: usize = 50;

/// A draft that is a valid plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The file's text.
    pub text: String,
    /// The parsed plan.
    pub plan: Plan,
    /// The names of the settings that it sets, with `setup` for setup commands.
    pub settings: Vec<String>,
}

/// Why a draft is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The agent's answer.
    pub draft: String,
    /// Why it contains no valid plan.
    pub why: String,
}

/// The prompt that requests a plan; `problem` describes the previous draft's error.
pub fn prompt(request: &str, problem: Option<&Problem>) -> String {
    let mut sections = vec![
        "# Draft a plan".to_owned(),
        "Draft a plan for the work below. Do not do the work itself.".to_owned(),
        format!("## What is asked for\n\n{}", request.trim()),
        RULES.to_owned(),
        FORM.to_owned(),
    ];
    sections.extend(problem.map(|problem| {
        let draft = text::fenced(&text::cap_chars(problem.draft.trim(), MAX_DRAFT));
        let why = text::fenced(&text::cap_chars(&problem.why, MAX_PROBLEM));
        format!(
            "## Your last draft\n\n{draft}\n\n## Why it is not valid\n\n{why}\n\nAnswer with the whole plan again, with this corrected."
        )
    }));
    text::plain(&sections.join("\n\n")).trim_end().to_owned()
}

const RULES: &str = "\
## Rules

- Look at the repository as far as the plan needs it. Change no file: every change is undone.
- Nobody will answer questions or grant permission. Decide yourself and go on.
- Each task is one commit that leaves the project working, small enough for one sitting, in the order in which the tasks are to be done.
- If no plan can be made, begin your final message with this line:
  FAILED: <summary in one line>";

const FORM: &str = "\
## The form of your answer

Your final message is the plan and nothing else: one block of YAML. These are all keys that you need:

```yaml
title: What the plan is about, on one line
goal: What holds when all is done, in a sentence
details: |
  What every task should know about it.
tasks:
  - id: a-short-name
    title: What is to be done, on one line
    description: |
      How, and in which files.
    acceptance:
      - What must hold afterwards
    depends_on: []   # ids of other tasks of this plan
```";

/// The plan in a final message: its last YAML block that has tasks, otherwise the message itself.
///
/// # Errors
/// Why there is no usable plan, with the position in its text.
pub fn of_message(name: &str, message: &str) -> Result<Draft, String> {
    let text = yaml_of(message);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err("there is no plan in the final message".to_owned());
    }
    let text = format!("{text}\n");
    let parsed = plan::parse(name, text.as_bytes()).map_err(|error| error.to_string())?;
    let plan = parsed.value;
    let mut tasks = plan.tasks.iter();
    if let Some(task) = tasks.find(|task| task.status != TaskStatus::Pending) {
        return Err(format!(
            "{name}:{}: the task `{}` has a `status`: a new plan has none",
            task.line, task.id
        ));
    }
    let settings = settings_of(&plan);
    Ok(Draft {
        text,
        plan,
        settings,
    })
}

/// The last fenced block that looks like a plan, otherwise the message from the plan's first key on.
fn yaml_of(message: &str) -> String {
    let blocks = text::fenced_blocks(message).into_iter();
    let has_tasks = |text: &str| text.lines().any(|line| line.starts_with("tasks:"));
    // A block scalar may contain fences of its own; then the plan is the message around them.
    let is_raw = message.lines().next().is_some_and(is_key);
    let last = blocks.rev().find(|(_, code)| !is_raw && has_tasks(code));
    if let Some((_, code)) = last {
        return code;
    }
    let lines: Vec<&str> = message.lines().skip_while(|line| !is_key(line)).collect();
    if lines.is_empty() {
        return message.to_owned();
    }
    lines.join("\n")
}

/// Whether a line starts with a key of a plan.
fn is_key(line: &str) -> bool {
    let key = line.split_once(':').map_or("", |(key, _)| key);
    plan::schema::PLAN_KEYS.contains(&key) || settings::is_name(key)
}

/// The settings that a plan sets, for a person who reads the plan before it runs.
fn settings_of(plan: &Plan) -> Vec<String> {
    let set = |settings: &Settings| *settings != Settings::default();
    let mut found = Vec::new();
    if !plan.setup.is_empty() {
        found.push("setup".to_owned());
    }
    if set(&plan.settings) || plan.tasks.iter().any(|task| set(&task.settings)) {
        found.push("settings".to_owned());
    }
    found
}

/// A name for a file or a branch, from the first words of a text: `Add CSV export!` becomes `add-csv-export`.
pub fn stem(text: &str) -> String {
    let line = one_line(text::first_line(text), 200).to_lowercase();
    let words = line.split(|c: char| !c.is_ascii_alphanumeric());
    let mut stem = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if stem.len() + word.len() + 1 > MAX_STEM {
            break;
        }
        stem.push_str(if stem.is_empty() { "" } else { "-" });
        stem.push_str(word);
    }
    if stem.is_empty() {
        "plan".to_owned()
    } else {
        stem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "title: CSV\ntasks:\n  - id: one\n    title: Write\n    description: |\n      As in\n      ```sh\n      run\n      ```\n";

    #[test]
    fn a_plan_is_read_raw_or_from_a_fence() {
        for message in [
            PLAN.to_owned(),
            format!("Here is the plan.\n\n{PLAN}"),
            format!("Here it is:\n\n````yaml\n{PLAN}````\n\nGood luck."),
            format!("```yaml\ntitle: first\ntasks: [x]\n```\nBetter:\n\n````\n{PLAN}````"),
        ] {
            let draft = of_message("plan.yaml", &message).expect(&message);
            assert_eq!(
                (draft.text.as_str(), draft.plan.tasks.len()),
                (PLAN, 1),
                "{message}"
            );
            assert_eq!(draft.settings, [""; 0]);
        }
    }

    #[test]
    fn what_is_wrong_with_a_draft_is_said_with_its_place() {
        let wrong = |message: &str| of_message("plan.yaml", message).expect_err(message);
        assert_eq!(wrong(" \n"), "there is no plan in the final message");
        assert_eq!(
            wrong("title: x\ntasks:\n  - id: a\n    title: A\n    depends_on: [b]\n"),
            "plan.yaml:5:18: depends_on names the task `b`, which does not exist; add that task or remove the dependency"
        );
        assert_eq!(
            wrong("title: x\ntasks:\n  - id: a\n    title: A\n    status: done\n"),
            "plan.yaml:3: the task `a` has a `status`: a new plan has none"
        );
        assert!(wrong("I will look at it first.").starts_with("plan.yaml:1:1: "));
    }

    #[test]
    fn settings_of_a_draft_are_told() {
        let text = "setup: [ evil ]\nagent_command: evil\ntasks:\n  - title: A\n";
        let draft = of_message("plan.yaml", &format!("title: x\n{text}")).unwrap();
        assert_eq!(draft.settings, ["setup", "settings"]);
    }

    #[test]
    fn a_prompt_has_the_request_the_form_and_what_was_wrong() {
        let first = prompt("Export reports as CSV\n", None);
        assert!(first.contains("## What is asked for\n\nExport reports as CSV\n\n## Rules"));
        assert!(!first.contains("not valid"));
        let example = first.split("```yaml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        assert!(of_message("plan.yaml", example).is_ok(), "the form is one");
        let problem = Problem {
            draft: "tasks: no\n".to_owned(),
            why: "plan.yaml:1:8: no".to_owned(),
        };
        let again = prompt("x", Some(&problem));
        let told = "## Your last draft\n\n```\ntasks: no\n```\n\n## Why it is not valid\n\n```\nplan.yaml:1:8: no\n```\n\n";
        assert!(again.contains(told), "{again}");
    }

    #[test]
    fn a_stem_has_the_first_words() {
        assert_eq!(stem("Add CSV export!\nmore"), "add-csv-export");
        assert_eq!(stem("…"), "plan");
        assert!(stem(&"word ".repeat(50)).len() <= MAX_STEM);
    }
}
