use super::check::CheckSpec;
use super::*;
use crate::protected_paths::ProtectedPaths;
use crate::yaml;
use std::time::Duration;

fn read(text: &str) -> Result<Settings, Fault> {
    let root = yaml::parse(text).expect("valid").expect("a value");
    let mut settings = Settings::default();
    for entry in root.entries() {
        let scope = settings.read_entry(entry)?;
        assert!(scope.is_some(), "{} is not a key", entry.key);
    }
    Ok(settings)
}

impl Settings {
    fn without_key(mut self, key: &str) -> Self {
        self.set(key, &Node::plain("~")).expect("null is no value");
        self
    }
}

fn fault(text: &str) -> String {
    read(text)
        .expect_err("must be refused")
        .in_file("f")
        .to_string()
}

#[test]
fn keys_of_every_kind_are_read() {
    let settings = read(
        "agent: codex\nagent_command: ./a\nagent_args: [-v, 3]\nmodel: m\n\
         instructions: be kind\n\
         verify: [cargo build, { name: t, run: ./t, kind: test, timeout: 5m }]\n\
         verify_timeout: 90s\nturn_timeout: 1h30m\nstall_timeout: 600\ndeadline: 2h\n\
         max_retries: 10\nnudges: 0\nidentical_failures: 2\n\
         flaky_reruns: 2\nbaseline: first\nknown_failures: tolerate\nprove_new_tests: warn\nsignals: fail\n\
         max_tokens: 1000000\nmax_cost_usd: 2.5\nallow_dirty: false\nkeep_going: true\n\
         agent_commits: squash\nif_no_changes: ok\nif_unverified: fail\ntest_changes: fail\n\
         protected_paths: ['ci/**']\nprogress: { ignore: ['*.log'] }\nagent_env: [A_KEY]\n\
         verify_env: CI\npush: false\n\
         pull_request: draft\ncommit_via: api\n\
         dispatch_workflows: [ci.yml]\ntrigger_phrase: /go\ntrigger_label: go\n\
         allowed_associations: [OWNER]\nallowed_users: [ada]\nallowed_bots: ['b[bot]']\n\
         allow_pull_request_target: false\nmax_runs_per_day: 3\nmax_depth: 0\n\
         status_comment: false\nreport: none\nevents: '-'\nrun_dir: /tmp/x\n",
    );
    let second = |n| Some(Duration::from_secs(n));
    let texts = |all: &[&str]| Some(all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
    let text = |text: &str| Some(text.to_owned());
    let test = CheckSpec {
        name: "t".to_owned(),
        run: "./t".to_owned(),
        kind: crate::checks::verdict::CheckKind::Test,
        timeout: second(300),
        junit: None,
        problem_matcher: None,
        directory: None,
    };
    let expected = Settings {
        agent: text("codex"),
        agent_command: text("./a"),
        agent_args: texts(&["-v", "3"]),
        model: text("m"),
        instructions: text("be kind"),
        verify: Some(vec![CheckSpec::of_command("cargo build"), test]),
        verify_timeout: second(90),
        turn_timeout: second(5400),
        stall_timeout: second(600),
        deadline: second(7200),
        max_retries: Some(10),
        nudges: Some(0),
        identical_failures: Some(2),
        max_tokens: Some(1_000_000),
        max_cost_usd: Some(2.5),
        allow_dirty: Some(false),
        keep_going: Some(true),
        agent_commits: Some(AgentCommits::Squash),
        if_no_changes: Some(OnFinding::Ok),
        if_unverified: Some(IfUnverified::Fail),
        flaky_reruns: Some(2),
        baseline: Some(Baseline::First),
        known_failures: Some(KnownFailures::Tolerate),
        prove_new_tests: Some(ProveNewTests::Warn),
        signals: Some(SignalPolicy::Fail),
        test_changes: Some(TestChangePolicy::Fail),
        protected_paths: texts(&["ci/**"]),
        progress: Some(Progress {
            ignore: vec!["*.log".to_owned()],
        }),
        agent_env: texts(&["A_KEY"]),
        verify_env: texts(&["CI"]),
        push: Some(false),
        commit_via: Some(CommitVia::Api),
        dispatch_workflows: texts(&["ci.yml"]),
        trigger_phrase: text("/go"),
        trigger_label: text("go"),
        allowed_associations: texts(&["OWNER"]),
        allowed_users: texts(&["ada"]),
        allowed_bots: texts(&["b[bot]"]),
        allow_pull_request_target: Some(false),
        max_runs_per_day: Some(3),
        max_depth: Some(0),
        status_comment: Some(false),
        pull_request: Some(PullRequest::Draft),
        report: Some(Report::None),
        events: text("-"),
        run_dir: text("/tmp/x"),
        ..Settings::default()
    };
    assert_eq!(
        read("agent_arg: x").map(|s| s.agent_args),
        Ok(texts(&["x"]))
    );
    assert_eq!(settings, Ok(expected));
}

#[test]
fn a_retry_count_out_of_range_is_one_clear_error() {
    for (value, got) in [
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("11", "11"),
        ("50", "50"),
        ("\"x\"", "\"x\""),
        ("\"3\"", "\"3\""),
        ("[1]", "a list"),
        ("99999999999999999999", "99999999999999999999"),
    ] {
        let expected =
            format!("f:2:14: max_retries must be a whole number from 0 to 10, got {got}");
        assert_eq!(
            fault(&format!("model: m\nmax_retries: {value}\n")),
            expected
        );
    }
}

#[test]
fn every_other_wrong_value_says_what_was_expected() {
    let agents = AGENTS.join(", ");
    for (text, expected) in [
        ("model: [a]", "f:1:8: model must be text, got a list"),
        (
            "model: ''",
            "f:1:8: model must be text that is not empty, got \"\"",
        ),
        ("push: yes", "f:1:7: push must be true or false, got yes"),
        (
            "commit_message: '{type}: {subjct}'",
            "f:1:17: commit_message has no placeholder `{subjct}` (did you mean `subject`?)",
        ),
        (
            "commit_message: conventionnal",
            "f:1:17: commit_message is not a form: `conventionnal` (did you mean `conventional`?)",
        ),
        (
            "pull_request_title: '{plan}'",
            "f:1:21: pull_request_title has no placeholder `{plan}`",
        ),
        (
            "deadline: soon",
            "f:1:11: deadline must be a duration such as 90s, 10m or 1h30m, got `soon`",
        ),
        (
            "deadline: 0",
            "f:1:11: deadline must be longer than 0s, got 0",
        ),
        (
            "max_cost_usd: free",
            "f:1:15: max_cost_usd must be a number above 0, in US dollars, got free",
        ),
        (
            "max_tokens: 0",
            "f:1:13: max_tokens must be a whole number of at least 1, got 0",
        ),
        (
            "report: githb",
            "f:1:9: report must be one of auto, github, none, got githb (did you mean `github`?)",
        ),
        (
            "sandbox_write: [/cache, target]",
            "f:1:25: sandbox_write must be a list of absolute paths, or of paths that begin with `~/`, got target",
        ),
        (
            "sandbox_write: ~alice/cache",
            "f:1:16: sandbox_write must be a list of absolute paths, or of paths that begin with `~/`, got ~alice/cache",
        ),
        (
            "agent_env: [A=b]",
            "f:1:13: agent_env must be a list of names of environment variables, got A=b",
        ),
        (
            "verify: [{ name: x }]",
            "f:1:10: the check has no `run`: give the command that decides",
        ),
        (
            "verify: [{ name: x, run: '# npm test' }]",
            "f:1:26: verify.run must be a command and not only a comment, got \"# npm test\"",
        ),
        (
            "verify:\n  - |\n    # npm test\n\n    # more\n",
            "f:3:5: each item of verify must be a command and not only a comment, got \"# npm test…\"",
        ),
        (
            "verify: [{ run: x, knd: test }]",
            "f:1:20: a check has no part `knd`, only name, run, kind, timeout, junit, problem_matcher, directory (did you mean `kind`?)",
        ),
        (
            "verify:\n  - test: make test",
            "f:2:5: a check has no part `test`, only name, run, kind, timeout, junit, problem_matcher, directory; write `{ name: test, run: make test }`",
        ),
        (
            "verify: [{ command: make }]",
            "f:1:12: a check has no part `command`, only name, run, kind, timeout, junit, problem_matcher, directory (did you mean `run`?)",
        ),
        (
            "verify: [{ run: x, junit: ../r.xml }]",
            "f:1:27: verify.junit must be a path below the work tree, with `/` between its parts",
        ),
        (
            "verify: [[x]]",
            "f:1:10: each item of verify must be a command, or a mapping with `run` and optionally `name`, `kind`, `timeout`, `junit`, `problem_matcher` and `directory`, got a list",
        ),
        (
            "progress: { ignored: x }",
            "f:1:13: progress has no part `ignored`, only ignore (did you mean `ignore`?)",
        ),
        (
            "progress: { ignore: ['a{b'] }",
            "f:1:22: progress.ignore must be a list of globs, but unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
        ),
        (
            "agent: cluade",
            &*format!("f:1:8: agent must be one of {agents}, got cluade (did you mean `claude`?)"),
        ),
        (
            "agent: aider",
            &*format!("f:1:8: agent must be one of {agents}, got aider"),
        ),
    ] {
        assert_eq!(fault(text), expected);
    }
}

#[test]
fn nothing_is_absent_and_an_empty_list_is_given() {
    assert_eq!(read("model:\nverify: ~\n"), Ok(Settings::default()));
    assert_eq!(read("verify: []").map(|s| s.verify), Ok(Some(Vec::new())));
}

#[test]
fn the_stronger_source_wins_key_by_key() {
    let flags = read("max_retries: 1").expect("valid");
    let task = read("max_retries: 2\nverify: []").expect("valid");
    let plan = read("max_retries: 3\nverify: [make]\nmodel: m").expect("valid");
    assert_eq!(
        flags.or(task).or(plan),
        read("max_retries: 1\nverify: []\nmodel: m").expect("valid")
    );
}

#[test]
fn another_agent_does_not_take_over_the_first_ones_model() {
    let config = read("agent: codex\nmodel: m\nagent_args: [x]\nmax_retries: 2").expect("valid");
    let other = read("agent: claude").expect("valid");
    assert_eq!(
        other.or(config.clone()),
        read("agent: claude\nmax_retries: 2").expect("valid")
    );
    let same = read("agent: codex").expect("valid");
    assert_eq!(same.or(config.clone()), config);
}

#[test]
fn a_variable_sets_what_a_file_can() {
    let mut settings = Settings::default();
    for (key, text) in [
        ("max_retries", " 4 "),
        ("verify", "make\n\n  make test\n"),
        ("progress", "ignore: [a]"),
        ("instructions", "a: [b"),
        ("model", "  "),
    ] {
        assert_eq!(settings.set_from_text(key, text), Ok(()), "{key}");
    }
    let expected = read(
        "max_retries: 4\nverify: [make, make test]\nprogress: { ignore: [a] }\ninstructions: 'a: [b'",
    );
    assert_eq!(Ok(settings.clone()), expected);
    assert_eq!(
        settings.set_from_text("max_retries", "11"),
        Err("max_retries must be a whole number from 0 to 10, got 11".to_owned())
    );
    assert_eq!(
        settings.set_from_text("max_retrys", "1"),
        Err("unknown key `max_retrys` (did you mean `max_retries`?)".to_owned())
    );
}

#[test]
fn checks_take_the_limit_that_holds() {
    let limits = |text| -> Vec<u64> {
        let settings = read(text).expect("valid");
        settings
            .resolve(false)
            .checks("")
            .iter()
            .map(|check| check.timeout_ms)
            .collect()
    };
    assert_eq!(
        limits("verify: [a, { run: b, timeout: 5s }]"),
        [600_000, 5000]
    );
    assert_eq!(limits("verify: [a]\nverify_timeout: 1m"), [60_000]);
    assert_eq!(limits("model: m"), [0_u64; 0]);
}

#[test]
fn a_stronger_command_is_run_instead_of_a_weaker_agent() {
    let command = || read("agent_command: ./a").expect("valid");
    for (lower, agent, model) in [
        ("agent: codex\nmodel: m", Some("command"), None),
        ("agent: command\nmodel: m", Some("command"), Some("m")),
        ("model: m", None, Some("m")),
    ] {
        let merged = command().or(read(lower).expect("valid"));
        assert_eq!(
            (
                merged.agent.as_deref(),
                merged.model.as_deref(),
                merged.agent_command.as_deref()
            ),
            (agent, model, Some("./a")),
            "{lower}"
        );
    }
}

#[test]
fn every_key_takes_a_value_and_sets_nothing_else() {
    for key in keys() {
        let value = match (key.form, key.choices.last(), key.range) {
            (_, Some(word), _) => (*word).to_owned(),
            (_, _, Some((least, _))) => least.to_string(),
            (Form::Truth, ..) => "true".to_owned(),
            (Form::Word, ..) => "1".to_owned(),
            (Form::Tree, ..) => match key.name {
                "progress" => "ignore: [a]".to_owned(),
                "roles" => "reviewer: {model: m}".to_owned(),
                "escalate" => "[{model: m}]".to_owned(),
                _ => "model: m".to_owned(),
            },
            _ if key.name == "sandbox_write" => "/a".to_owned(),
            _ if key.name == "branch" => "a/{slug}".to_owned(),
            _ => "A_B".to_owned(),
        };
        let mut settings = Settings::default();
        assert_eq!(
            settings.set_from_text(key.name, &value),
            Ok(()),
            "{}",
            key.name
        );
        assert_ne!(settings, Settings::default(), "{}", key.name);
        assert_eq!(
            settings.without_key(key.name),
            Settings::default(),
            "{}",
            key.name
        );
    }
}

#[test]
fn defaults_hold_where_nothing_is_said() {
    let held = Settings::default().resolve(false);
    assert_eq!((held.max_retries, held.deadline), (3, None));
    assert_eq!(held.agent, "auto");
    let protected = ProtectedPaths::of(&held.protected_paths).expect("globs");
    for path in "a/.claude/settings.json a/.codex/config.toml a/.mcp.json a/.cursor/mcp.json AGENTS.override.md \
        a/.agents/skills/x/SKILL.md .devcontainer.json .zuul.yaml .azure-pipelines/a.yml .drone.jsonnet .packit.yaml \
        cloudbuild.json netlify.toml .github/x"
        .split_whitespace()
    {
        assert!(protected.cover(path.as_bytes(), false), "{path}");
    }
    let held = Settings::default().resolve(true);
    assert_eq!(held.deadline, Some(Duration::from_secs(19_800)));
    let held = read("max_retries: 0\nprotected_paths: []\ndeadline: 1h")
        .map(|it| it.resolve(true))
        .expect("valid");
    assert_eq!((held.max_retries, held.protected_paths.len()), (0, 0));
    assert_eq!(held.deadline, Some(Duration::from_secs(3600)));
}

#[test]
fn the_words_of_a_default_are_those_of_its_value() {
    let default_of = |name: &str| {
        let found = keys().into_iter().find(|key| key.name == name);
        found.map(|key| key.default)
    };
    let value = |text: &str| Some(KeyDefault::Value(text.to_owned()));
    let words = |text: &str| Some(KeyDefault::Words(text.to_owned()));
    for (name, expected) in [
        ("max_retries", value("`3`")),
        ("turn_timeout", value("`30m`")),
        ("agent_commits", value("`squash`")),
        ("status_comment", value("`true`")),
        ("trigger_phrase", value("`/sprag`")),
        ("verify", value("none")),
        (
            "allowed_associations",
            value("`OWNER`, `MEMBER`, `COLLABORATOR`"),
        ),
        ("deadline", words("`5h30m` in Actions, none elsewhere")),
        ("model", words("the agent's default")),
    ] {
        assert_eq!(default_of(name), expected, "{name}");
    }
}

#[test]
fn a_default_is_what_would_be_read_of_its_words() {
    for key in keys() {
        let KeyDefault::Value(text) = &key.default else {
            continue;
        };
        if text == "none" {
            continue;
        }
        let written = text.replace("`, `", "\n").replace('`', "");
        let mut given = Settings::default();
        assert_eq!(
            given.set_from_text(key.name, &written),
            Ok(()),
            "{}",
            key.name
        );
        assert_eq!(given.resolve(false), Resolved::default(), "{}", key.name);
    }
}

#[test]
fn a_scope_can_be_left_out() {
    let given = read("allowed_users: [eve]\nmodel: m\nevents: '-'").expect("valid");
    let expected = read("model: m\nevents: '-'").expect("valid");
    assert_eq!(given.without(Scope::Trigger), expected);
}

#[test]
fn a_flag_gives_a_list_item_by_item() {
    let mut settings = Settings::default();
    let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let set = settings.set_from_flag("agent_args", &texts(&["-v", "two\nlines"]));
    assert_eq!(set, Ok(()));
    assert_eq!(settings.agent_args, Some(texts(&["-v", "two\nlines"])));
    let set = settings.set_from_flag("agent_env", &texts(&["A", "B"]));
    assert_eq!(set, Ok(()));
    assert_eq!(settings.agent_env, Some(texts(&["A", "B"])));
}

#[test]
fn a_template_of_branches_ends_with_the_slug_after_something_that_git_allows() {
    for (given, message) in [
        ("feature", "must be a text that ends with `{slug}`"),
        ("'{slug}'", "begins with something else"),
        ("refs/heads/{slug}", "is reserved"),
        (
            "'{team}/{slug}'",
            "must be a text that ends with `{slug}` and begins",
        ),
    ] {
        let said = fault(&format!("branch: {given}"));
        assert!(said.contains(message), "{given}: {said}");
    }
}
