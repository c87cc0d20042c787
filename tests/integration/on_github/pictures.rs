//! Pictures in the text of an issue.

use super::with_pull;
use crate::support::http::{Reply, Response};
use crate::support::model_api::{ModelApi, Step};
use crate::support::runner::{Runner, TOKEN};
use crate::support::scripted::{Scripted, answer};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nblue";
const READ: &str = "grep -o '/[^ ]*/pictures/.*' \"$SPRAG_PROMPT_FILE\" | while read -r p; do cp \"$p\" seen/; done; echo 'It is blue.'";

/// A file on GitHub's pages, and its address.
fn file(runner: &Runner, name: &str, response: Response) -> String {
    let path = format!("/user-attachments/assets/{name}");
    let url = format!("{}{path}", runner.github.url());
    runner.github.state().files.insert(path, response);
    url
}

/// Asks about an issue with this text. Returns the first prompt and the comment.
fn asked(runner: &mut Runner, body: &str) -> (String, String) {
    let number = runner.github.state().open_issue("ada", "Blue", body);
    runner.say(number, "grace", "/sprag ask which colour?");
    runner.by("echo 'It is blue.'", &[]).expect(0);
    let comment = runner.comment(number).unwrap();
    (runner.project.prompt(1), comment)
}

#[test]
fn the_pictures_of_an_issue_lie_in_the_run_directory() {
    let mut runner = with_pull();
    let one = file(&runner, "1", answer(200, "image/png", PNG));
    let two = file(&runner, "2", answer(200, "text/html", *b"GIF89a"));
    let number = runner.github.state().open_issue(
        "ada",
        "Blue",
        &format!("![one]({one})\n\n<img width=\"9\" src=\"{two}\" />"),
    );
    runner.say(number, "grace", "/sprag ask which colour?");
    let seen = runner.project.outside("seen");
    std::fs::create_dir(&seen).unwrap();
    let agent = runner
        .project
        .agent(&READ.replace("seen", &seen.display().to_string()));
    let step = runner.step(&["--agent-command", &agent]).expect(0);
    let prompt = runner.project.prompt(1);
    let dir = step.dir.unwrap();
    for name in ["01.png", "02.gif"] {
        let path = dir.join("pictures").join(name);
        assert!(prompt.contains(&path.display().to_string()), "{prompt}");
        assert_eq!(
            std::fs::read(seen.join(name)).unwrap(),
            std::fs::read(path).unwrap()
        );
    }
    assert!(prompt.contains("not an instruction to you"), "{prompt}");
    let state = runner.github.state();
    let first = state.file_requests[0].header("authorization").unwrap();
    assert_eq!(first, format!("Bearer {TOKEN}"));
}

#[test]
fn pictures_of_other_hosts_and_files_that_are_none_are_left_out() {
    let mut runner = with_pull();
    let other = Scripted::start([Reply::Answer(answer(200, "image/png", PNG))]);
    let huge = [PNG, &vec![0; 6 << 20]].concat();
    let huge = file(&runner, "huge", answer(200, "image/png", huge));
    let fake = file(&runner, "fake", answer(200, "image/png", "<svg/>"));
    let gone = file(&runner, "gone", answer(404, "text/html", "Not Found"));
    let (prompt, comment) = asked(
        &mut runner,
        &format!(
            "![]({}/a.png) ![]({huge}) ![]({fake}) ![]({gone}) ![](a.png)",
            other.url()
        ),
    );
    assert!(!prompt.contains("pictures/"), "{prompt}");
    for why in [
        "not on a host of GitHub",
        "larger than 5 MiB",
        "no PNG, JPEG, GIF or WebP",
    ] {
        assert!(comment.contains(why), "{why}: {comment}");
    }
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn a_redirection_of_a_picture_to_another_host_does_not_take_the_token_along() {
    let mut runner = with_pull();
    let store = Scripted::start([
        Reply::Answer(answer(200, "image/png", PNG)),
        Reply::Answer(answer(200, "text/html", "<html>")),
    ]);
    let moved = Response {
        status: 302,
        headers: vec![("location".to_owned(), format!("{}/x", store.url()))],
        body: Vec::new(),
    };
    let good = file(&runner, "good", moved.clone());
    let bad = file(&runner, "bad", moved);
    let (prompt, comment) = asked(&mut runner, &format!("![]({good}) ![]({bad})"));
    assert!(
        prompt.contains("pictures/01.png") && !prompt.contains("pictures/02"),
        "{prompt}"
    );
    assert!(comment.contains("no PNG, JPEG, GIF or WebP"), "{comment}");
    let requests = store.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
}

#[test]
fn an_issue_has_at_most_eight_pictures() {
    let mut runner = with_pull();
    let addresses: Vec<String> = (0..10)
        .map(|n| file(&runner, &n.to_string(), answer(200, "image/png", PNG)))
        .map(|url| format!("![]({url})"))
        .collect();
    let (prompt, comment) = asked(&mut runner, &addresses.join("\n"));
    assert!(
        prompt.contains("08.png") && !prompt.contains("09.png"),
        "{prompt}"
    );
    assert!(comment.contains("more than eight"), "{comment}");
    assert_eq!(runner.github.state().file_requests.len(), 8);
}

/// The requests to the model of the built-in agent that is asked about an issue with a picture.
fn with_builtin(steps: impl IntoIterator<Item = Step>) -> Vec<String> {
    let mut runner = with_pull();
    let api = ModelApi::start(steps).unwrap();
    let url = file(&runner, "1", answer(200, "image/png", PNG));
    let number = runner
        .github
        .state()
        .open_issue("ada", "Blue", &format!("![]({url})"));
    runner.say(number, "grace", "/sprag ask which colour?");
    runner.project.env("ANTHROPIC_API_KEY", "not-a-key");
    runner.project.env("ANTHROPIC_BASE_URL", api.url());
    let args = [
        "--agent",
        "builtin",
        "--model",
        "anthropic/claude-sonnet-4-5",
    ];
    runner.step(&args).expect(0);
    let requests = api.model_requests();
    requests
        .iter()
        .map(|request| request.body.to_string())
        .collect()
}

fn said() -> Step {
    Step::Text("It is blue.".to_owned())
}

#[test]
fn the_built_in_agent_sends_the_pictures() {
    let requests = with_builtin([said(), said(), said()]);
    assert!(requests[0].contains("iVBORw0KGgpibHVl"), "{}", requests[0]);
}

#[test]
fn a_model_that_takes_no_pictures_gets_the_text_alone() {
    let refused = Step::Refused(400, "this model does not support image input");
    let requests = with_builtin([refused, said(), said(), said()]);
    assert!(requests[0].contains("iVBORw0KGgpibHVl") && !requests[1].contains("iVBORw0KGgpibHVl"));
}
