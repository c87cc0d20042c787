use super::*;

#[test]
fn a_project_without_a_manifest_in_its_root_is_looked_for_in_its_directories() {
    let package = r#"{"scripts":{"test":"node --test"}}"#;
    let files = [
        ("web/package.json", package),
        ("web/package-lock.json", ""),
        ("api/go.mod", "module api"),
        ("docs/package.json", package),
        ("README.md", ""),
    ];
    let (setup, checks) = proposal(&files);
    assert_eq!(setup, ["cd web && npm ci"]);
    assert_eq!(
        checks,
        [
            "build: cd api && go build ./...",
            "api-test: cd api && go test ./...",
            "web-test: cd web && npm test",
            "lint: cd api && go vet ./..."
        ]
    );
    let found = propose(&listing(&files));
    assert_eq!(found.checks[0].from, "go.mod in api");
    let steps = found.steps.join("\n");
    assert!(steps.contains("setup-go@") && steps.contains("setup-node@"));

    // A manifest in the root knows its directories itself.
    let mut files = files.to_vec();
    files.push(("Makefile", "test:\n\ttrue\n"));
    assert_eq!(proposal(&files).1, ["test: make test"]);

    let many: Vec<(String, &str)> = ('a'..='f').map(|c| (format!("{c}/go.mod"), "")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (&**name, *text)).collect();
    let found = propose(&listing(&many));
    assert_eq!(found.checks.len(), 12);
    let left_out: Vec<&str> = found.left_out.iter().map(|it| &*it.from).collect();
    assert_eq!(left_out, ["e/go.mod", "f/go.mod"]);
}

#[test]
fn a_taskfile_has_commands_and_its_program_is_installed() {
    let text = "version: '3'\ntasks:\n  build: go build ./...\n  test:\n    cmds: [go test ./...]\n  deploy: ./x\n";
    let files = [("Taskfile.yml", text)];
    assert_eq!(proposal(&files).1, ["build: task build", "test: task test"]);
    let steps = propose(&listing(&files)).steps.join("\n");
    assert!(steps.contains("@go-task/cli"), "{steps}");

    for action in ["arduino/setup-task", "go-task/setup-task"] {
        let workflow = format!(
            "on: push\njobs:\n  test:\n    steps:\n      - uses: {action}@v2\n      - run: task test\n"
        );
        let files = [files[0], (".github/workflows/ci.yml", &workflow)];
        let steps = propose(&listing(&files)).steps.join("\n");
        assert!(steps.contains(action), "{steps}");
        assert!(!steps.contains("@go-task/cli"), "{steps}");
    }
}

#[test]
fn what_a_setup_command_installs_is_not_installed_twice() {
    let project = "[project]\n[tool.hatch.envs.default]\ndependencies = ['pytest']";
    let proposal = propose(&listing(&[("pyproject.toml", project)]));
    let install = in_venv("python3 -m pip install hatch");
    assert_eq!(proposal.setup[1].what, install);
    let steps = proposal.steps.join("\n");
    assert!(!steps.contains("pipx"), "{steps}");
}

#[test]
fn another_ci_is_named_because_its_commands_are_not_read() {
    let files = [(".gitlab-ci.yml", ""), ("Makefile", "test:\n\ttrue\n")];
    let proposal = propose(&listing(&files));
    let left_out: Vec<&str> = proposal.left_out.iter().map(|it| &*it.what).collect();
    let told = "what .gitlab-ci.yml runs: only workflows of GitHub are read, so compare the checks with it";
    assert_eq!(left_out, [told]);
}
