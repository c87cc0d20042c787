//! Files that a program reads in the place of others or beside them, so that a new one decides.

use super::decides;

#[test]
fn a_new_file_that_a_program_prefers_to_the_one_before_decides() {
    for (files, check, path, expected) in [
        (
            &["Taskfile.dist.yml"][..],
            "task test",
            "Taskfile.yml",
            true,
        ),
        (&["Taskfile.yml"], "task test", "web/taskfile.yaml", true),
        (&["README.md"], "task test", "Taskfile.yml", false),
        (
            &["justfile", "web/a.js"],
            "cd web && just test",
            "web/justfile",
            true,
        ),
        (&["Rakefile"], "rake test", "rakefile", true),
        (&["Rakefile"], "rake test", "web/Rakefile.rb", true),
        (&["README.md"], "rake test", "Rakefile", false),
        (&["gulpfile.mjs"], "gulp test", "gulpfile.js", true),
        (&["Gruntfile.coffee"], "grunt test", "Gruntfile.js", true),
        (&["build.gradle.kts"], "gradle test", "build.gradle", true),
        (&["build.gradle"], "./gradlew test", "settings.gradle", true),
        (
            &["build.gradle"],
            "gradle test",
            "buildSrc/src/main/java/A.java",
            true,
        ),
        (&["pom.xml"], "mvn test", "build.gradle", false),
        (&["BUILD"], "bazel test //...", "BUILD.bazel", true),
        (&["BUILD"], "bazel test //...", "lib/BUILD.bazel", true),
        (&["WORKSPACE"], "bazel test //...", "tools/bazel", true),
        (&["build.sbt"], "sbt test", "more.sbt", true),
        (&["build.sbt"], "sbt test", "project/Skip.scala", true),
        (&["build.sc"], "mill test", "build.mill", true),
        (&["project.clj"], "lein test", "profiles.clj", true),
        (
            &["packages/a/package.json"],
            "npx nx test a",
            "packages/a/project.json",
            true,
        ),
        (
            &["packages/a/package.json"],
            "npx nx test a",
            "packages/b/project.json",
            false,
        ),
        (
            &["codeception.dist.yml"],
            "codecept run",
            "codeception.yml",
            true,
        ),
        (
            &["Package.swift"],
            "swift test",
            "Package@swift-5.9.swift",
            true,
        ),
        (&["magefile.go"], "mage test", "magefiles/a.go", true),
        (&["tasks.py"], "inv test", "tasks/__init__.py", true),
        (&["app.py"], "inv test", "tasks/__init__.py", false),
    ] {
        let files: Vec<_> = files.iter().map(|path| (*path, "")).collect();
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn what_a_justfile_imports_decides_also_if_it_does_not_exist_yet() {
    let files = [
        (
            "justfile",
            "import 'ci/rules'\nimport? 'local.just'\ntest: lint\n",
        ),
        ("ci/rules", "lint:\n    sh qa/lint\n"),
        ("qa/lint", ""),
    ];
    for (path, expected) in [
        ("ci/rules", true),
        ("qa/lint", true),
        ("local.just", true),
        ("other.just", false),
    ] {
        assert_eq!(decides(&files, "just test", path), expected, "{path}");
    }
}
