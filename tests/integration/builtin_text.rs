//! Whole repairs by a model that cannot call tools: fenced blocks for its calls, its plan and its
//! final words.

use crate::builtin::{calls, run, session};
use crate::support::model_api::{ModelApi, Step};
use crate::support::project::{Project, plan};

fn says(text: impl Into<String>) -> Step {
    calls(&text.into(), Vec::new())
}

/// A script that adds one too few, and what shows it.
fn project() -> Project {
    Project::new(&[
        (
            "lib/sum.sh",
            "# Adds the numbers from 1 to $1.\nsum=0\ni=1\nwhile [ $i -lt $1 ]; do\n  sum=$((sum + i))\n  i=$((i + 1))\ndone\necho $sum\n",
        ),
        (
            "test.sh",
            "test \"$(sh lib/sum.sh 4)\" = 10 || { echo 'sum of 4 is wrong'; exit 1; }\n",
        ),
        ("plan.yaml", &plan("sh test.sh")),
    ])
}

/// The repair: looks, a wrong name, an edit whose fence is never closed, a new file, the tests.
fn repair() -> Vec<Step> {
    vec![
        says(
            "I look first.\n\n```SPRAG_PLAN\n- [ ] lib/sum.sh: count the last number too\n- [ ] NOTES.md: write it down\n```\n\n\
             ```SPRAG_TOOL list_files\n```\n```SPRAG_TOOL search\npattern: -lt\n```\n\
             ```SPRAG_TOOL run_command\ncommand: sh test.sh\n```",
        ),
        says("```SPRAG_TOOL read_file\npath: lib/sum.sh\nstart: 2\nend: 4\n```"),
        says(
            "Now the edit.\n```SPRAG_TOOL edit_file\npath: lib/sum.sh\nsearch <<END\nwhile [ $i -lt $1 ]; do\n  sum=$((sum + i))\nEND\n\
             replace <<END\nwhile [ \"$i\" -le \"$1\" ]; do\n  sum=$((sum + i))\nEND",
        ),
        says(
            "~~~~SPRAG_TOOL write_file\npath: NOTES.md\ncontent <<EOF\n# Notes\n```sh\nsh lib/sum.sh 4\n```\nEOF\n~~~~\n\
             ```SPRAG_TOOL run_command\ncommand: sh test.sh && echo all is well\n```",
        ),
        says(
            "```SPRAG_PLAN_UPDATE\n- [x] NOTES.md: write it down\n```\n\
             ```SPRAG_FINAL\nThe last number counts.\nSUGGESTED_COMMIT_MESSAGE: Count the last number too\n```",
        ),
    ]
}

/// Fails unless the project is repaired, and by the script.
fn assert_repaired(project: &Project) {
    let sum = project.read("lib/sum.sh");
    assert!(
        sum.contains("while [ \"$i\" -le \"$1\" ]; do\n  sum="),
        "{sum}"
    );
    assert_eq!(
        project.read("NOTES.md"),
        "# Notes\n```sh\nsh lib/sum.sh 4\n```\n"
    );
    assert_eq!((project.commits(), project.status().as_str()), (2, ""));
    let subject = project.git(&["log", "-1", "--format=%s"]);
    assert_eq!(subject, "Count the last number too");
}

#[test]
fn a_whole_repair_is_made_by_text_in_every_format() {
    for model in ["openai/m", "openai-responses/m", "anthropic/m", "gemini/m"] {
        let api = ModelApi::without_tools(repair()).unwrap();
        let mut project = project();
        let args = ["--agent-arg=--text-tools"];
        let run = run(&mut project, &api, model, &args).expect(0);
        assert_repaired(&project);
        let requests = api.requests();
        assert_eq!(requests.len(), 5, "{model}");
        assert!(requests.iter().all(|request| !request.offers_tools()));
        assert!(
            requests[0].mentions("SPRAG_TOOL edit_file") && requests[0].mentions("SPRAG_FINAL")
        );
        let told = [
            (1, "```SPRAG_RESULT 1 list_files ok\nlib/sum.sh\n"),
            (
                1,
                "SPRAG_RESULT 2 search ok\nlib/sum.sh:4: while [ $i -lt $1 ]; do\n",
            ),
            (
                1,
                "SPRAG_RESULT 3 run_command error\nsum of 4 is wrong\n(code 1)",
            ),
            (2, "     2\tsum=0\n     3\ti=1\n     4\twhile"),
            (3, "SPRAG_RESULT 1 edit_file ok\nedited lib/sum.sh"),
            (4, "SPRAG_RESULT 2 run_command ok\nall is well\n"),
        ];
        for (at, text) in told {
            assert!(requests[at].mentions(text), "{model}: {text}");
        }
        let session = session(&run);
        assert_eq!(session["completion_kind"], "complete_verified", "{session}");
        assert_eq!(session["plan_finished"], 2, "{session}");
        assert_eq!(session["tool_calls"], 7, "{session}");
    }
}

#[test]
fn a_model_that_turns_out_to_have_no_tools_is_asked_by_text_from_then_on() {
    for model in ["openai/m", "openai-responses/m", "anthropic/m", "gemini/m"] {
        let api = ModelApi::without_tools(repair()).unwrap();
        let mut project = project();
        run(&mut project, &api, model, &[]).expect(0);
        assert_repaired(&project);
        let offered: Vec<bool> = api.requests().iter().map(|it| it.offers_tools()).collect();
        assert_eq!(
            offered,
            [true, false, false, false, false, false],
            "{model}"
        );
    }
}

#[test]
fn a_block_that_cannot_be_read_is_told_and_made_again() {
    let api = ModelApi::without_tools([
        says("```SPRAG_TOOL edit_file\npath: lib/sum.sh\nsearch <<END\n-lt\n```"),
        says("```SPRAG_TOOL edit\npath: lib/sum.sh\n```"),
        says("```SPRAG_TOOL edit_file\npath: lib/sum.sh\nsearch: -lt\nreplace: -le\n```"),
        says("```SPRAG_FINAL\nDone.\n```"),
    ])
    .unwrap();
    let mut project = project();
    run(
        &mut project,
        &api,
        "openai/m",
        &["--agent-arg=--text-tools"],
    )
    .expect(0);
    let requests = api.requests();
    assert!(requests[1].mentions("the value of `search` has no end"));
    assert!(requests[1].mentions("None of your tool calls could be read."));
    assert!(requests[2].mentions("there is no tool `edit`"));
    assert_eq!(requests.len(), 4);
}
