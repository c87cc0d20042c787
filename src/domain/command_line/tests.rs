use super::{CommandLine, Simple};

/// Each command as `DIRECTORY> NAME=value PROGRAM arguments`.
fn shown(text: &str) -> Vec<String> {
    let line = CommandLine::read(text);
    let show = |command: &Simple| {
        let program = command.program();
        let directory = command.directory.as_deref().unwrap_or("?");
        let assignments = command.assignments.iter();
        let mut shown = format!("{directory}>");
        assignments.for_each(|(name, value)| shown += &format!(" {name}={value}"));
        if let Some(program) = program {
            shown += &format!(" {}", program.name());
            program
                .arguments
                .iter()
                .for_each(|word| shown += &format!(" {word}"));
        }
        shown
    };
    line.commands().map(show).collect()
}

#[test]
fn the_words_before_a_command_are_not_the_command() {
    for (text, expected) in [
        ("pytest -q", "> pytest -q"),
        (
            "CI=1 timeout -k 5 5m uv run --group t pytest",
            "> CI=1 pytest",
        ),
        ("sudo -u x env A='b c' make test", "> A=b c make test"),
        ("nice -n 5 /usr/bin/python3.12 -m pytest a", "> pytest a"),
        ("npx --package typescript tsc --noEmit", "> tsc --noEmit"),
        ("npm --prefix web exec -- jest", "web> jest"),
        ("npm exec", "> npm exec"),
        ("npm run test", "> npm run test"),
        ("env -C sub make", "sub> make"),
        ("uv run --directory=a/b pytest", "a/b> pytest"),
        ("python3 setup.py test", "> python setup.py test"),
        ("xargs -n 1 shellcheck", "> shellcheck"),
        ("bundle exec rake", "> rake"),
    ] {
        assert_eq!(shown(text), [expected], "{text}");
    }
}

#[test]
fn the_directory_is_followed() {
    for (text, expected) in [
        ("cd web && npm test", vec!["> cd web", "web> npm test"]),
        (
            "cd \"$(git rev-parse --show-toplevel)/x\" && make",
            vec![
                "> git rev-parse --show-toplevel",
                "> cd $(git rev-parse --show-toplevel)/x",
                "x> make",
            ],
        ),
        (
            "cd $GITHUB_WORKSPACE/a; make",
            vec!["> cd $GITHUB_WORKSPACE/a", "a> make"],
        ),
        ("(cd a; make); make", vec!["> cd a", "a> make", "> make"]),
        (
            "cd a\ncd ../b\nmake",
            vec!["> cd a", "a> cd ../b", "b> make"],
        ),
        ("cd /tmp; make", vec!["> cd /tmp", "?> make"]),
        ("cd ..; make", vec!["> cd ..", "?> make"]),
        (
            "if x; then cd a; fi; make",
            vec!["> x", "> cd a", "?> make"],
        ),
        ("D=a; cd $D && make", vec!["> D=a", "> cd a", "a> make"]),
        (
            "bash -ec 'cd a && make'",
            vec!["> bash -ec cd a && make", "> cd a", "a> make"],
        ),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn compound_commands_are_taken_apart() {
    for (text, expected) in [
        ("a 'x && y' || b # c", vec!["> a x && y", "> b"]),
        ("a | b 2>&1 > log", vec!["> a", "> b"]),
        (
            "if [[ a && b ]]; then c; else d; fi",
            vec!["> [[ a b ]]", "> c", "> d"],
        ),
        (
            "for f in x y; do sh $f; done",
            vec!["> for f in x y", "> sh $f"],
        ),
        ("for f in x; do sh $f; done", vec!["> for f in x", "> sh x"]),
        (
            "case $x in a|b) c;; *) d;; esac; e",
            vec!["> c", "> d", "> e"],
        ),
        ("cat <<END\nmake test\nEND\nmake", vec!["> cat", "> make"]),
        ("export A=1\nmake", vec!["> export A=1", "> A=1 make"]),
        (
            "test \"$(make x)\" = y",
            vec!["> make x", "> test $(make x) = y"],
        ),
        ("f() { make; }\nf", vec!["> make", "> f"]),
        ("a &&\n b", vec!["> a", "> b"]),
        ("a \\\n b", vec!["> a b"]),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_may_not_run_is_not_certain() {
    for (text, certain) in [
        ("a && b | c; d", "a b c d"),
        ("a || b; c", "a c"),
        ("if a; then b; fi; c", "c"),
        ("{ a; b; } && c", "a b c"),
        ("(a; b)", "a b"),
        ("f() { a; }; b", "b"),
        ("case x in y) a;; esac\nb", "b"),
        ("while a; do b; done; c", "c"),
    ] {
        let line = CommandLine::read(text);
        let certain_ones = line.commands().filter(|command| command.is_certain);
        let words: Vec<&str> = certain_ones
            .map(|command| command.words[0].as_str())
            .collect();
        assert_eq!(words.join(" "), certain, "{text}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    for (text, named) in [
        ("make 'test", "an open quote"),
        ("make \"test", "an open quote"),
        ("cat <<X\na\nX", "a here-document"),
        ("eval \"$(x)\"", "`eval`"),
        ("f() { a; }", "a function"),
        ("echo $(a", "an open bracket"),
        ("((i++))", "arithmetic"),
    ] {
        let line = CommandLine::read(text);
        assert!(line.not_understood.contains(named), "{text}: {line:?}");
    }
    assert!(CommandLine::read("a && (b | c)").not_understood.is_empty());
}

#[test]
fn the_paths_of_a_line_are_relative_to_the_root() {
    let text =
        "cd ci && CONF=x.toml ./run.sh --file=../a.yml tests/a.py::test_b -Cbuild /usr/x > out.log";
    let paths = CommandLine::read(text).paths();
    for path in [
        "ci",
        "ci/x.toml",
        "ci/run.sh",
        "a.yml",
        "ci/tests/a.py",
        "ci/build",
        "ci/out.log",
    ] {
        assert!(paths.contains(path), "{path}: {paths:?}");
    }
    assert!(!paths.iter().any(|path| path.contains("usr")), "{paths:?}");
    for text in [
        "bash -c 'sh ci/a.sh'",
        "S=ci; sh $S/a.sh",
        "test -z \"$(sh ci/a.sh)\"",
        "for s in ci/a.sh ci/b.sh; do sh $s; done",
    ] {
        let paths = CommandLine::read(text).paths();
        assert!(paths.contains("ci/a.sh"), "{text}: {paths:?}");
    }
}

#[test]
fn the_source_of_a_statement_is_as_it_is_written() {
    let line = CommandLine::read("a 'x y'  && b\nif c; then\n d\nfi > log\ne | f");
    let sources: Vec<String> = line
        .statements
        .iter()
        .map(|it| line.source_of(it))
        .collect();
    assert_eq!(
        sources,
        ["a 'x y'  && b", "if c; then\n d\nfi > log", "e | f"]
    );
    let commands = &line.statements[0].commands;
    assert_eq!(line.source_between(&commands[0], &commands[0]), "a 'x y'");
}

#[test]
fn the_program_that_must_be_there_is_the_one_of_the_path() {
    for (text, started) in [
        ("timeout 5 make", "make"),
        ("env A=b npx jest", "npx"),
        ("uv run pytest", "uv"),
        ("! grep x", "grep"),
    ] {
        let line = CommandLine::read(text);
        let first = line.commands().next().and_then(Simple::started);
        assert_eq!(first.map(|program| program.word), Some(started), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "[a-z '\"$(){}<>&|;`\\\\\n#=]{0,40}") {
        let line = CommandLine::read(&text);
        line.paths();
        for statement in &line.statements {
            line.source_of(statement);
        }
    }
}
