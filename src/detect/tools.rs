//! The other toolchains, and the task runners that are used if no toolchain is known.

use super::{Command, Listing, Toolchain, rows};
use crate::domain::checks::verdict::CheckKind::{self, Build, Lint, Test};
use crate::domain::yaml::{self, Node};
use serde_json::Value;

pub(super) fn cargo(files: &Listing) -> Option<Toolchain> {
    if !files.has("Cargo.toml") {
        return None;
    }
    let mut found = Toolchain::in_language("Cargo.toml", "rust");
    let workspace = if files.line_starts("Cargo.toml", "[workspace]") {
        " --workspace"
    } else {
        ""
    };
    let locked = if files.has("Cargo.lock") {
        " --locked"
    } else {
        ""
    };
    found.check("cargo", Build, format!("cargo build{workspace}{locked}"));
    found.check("cargo", Test, format!("cargo test{workspace}{locked}"));
    Some(found)
}

pub(super) fn go(files: &Listing) -> Option<Toolchain> {
    if !files.has("go.mod") {
        return None;
    }
    let mut found = Toolchain::in_language("go.mod", "go");
    found.check("go", Build, "go build ./...");
    found.check("go", Test, "go test ./...");
    found.check("go", Lint, "go vet ./...");
    Some(found)
}

/// Files that show that Gradle builds a project.
const GRADLE: &str = "gradlew build.gradle build.gradle.kts settings.gradle settings.gradle.kts";

/// Maven or Gradle, through the project's own wrapper if there is one.
pub(super) fn jvm(files: &Listing) -> Option<Toolchain> {
    let manifest = if files.has("pom.xml") {
        "pom.xml"
    } else {
        "the Gradle files"
    };
    let mut found = Toolchain::of(manifest);
    if files.has("pom.xml") {
        let maven = if files.has("mvnw") { "./mvnw" } else { "mvn" };
        found.check(
            "maven",
            Build,
            format!("{maven} --batch-mode --no-transfer-progress test-compile"),
        );
        found.check(
            "maven",
            Test,
            format!("{maven} --batch-mode --no-transfer-progress test"),
        );
    } else if GRADLE.split_whitespace().any(|name| files.has(name)) {
        let gradle = if files.has("gradlew") {
            "./gradlew"
        } else {
            "gradle"
        };
        // A daemon would outlive the check and be killed with it.
        found.check("gradle", Build, format!("{gradle} --no-daemon assemble"));
        found.check("gradle", Test, format!("{gradle} --no-daemon check"));
    } else {
        return None;
    }
    Some(found)
}

/// The only solution in the root, otherwise its only project. With several, none can be chosen.
pub(super) fn dotnet(files: &Listing) -> Option<Toolchain> {
    let only = |endings: &[&str]| {
        let mut names = files.ending(endings);
        match (names.next(), names.next()) {
            (Some(name), None) => Some(name.to_owned()),
            _ => None,
        }
    };
    let name = only(&[".sln", ".slnx"]).or_else(|| only(&[".csproj", ".fsproj", ".vbproj"]))?;
    let mut found = Toolchain::of(&name);
    let name = shlex::try_quote(&name).ok()?.into_owned();
    found.check("dotnet", Build, format!("dotnet build {name}"));
    found.check("dotnet", Test, format!("dotnet test {name}"));
    Some(found)
}

pub(super) fn ruby(files: &Listing) -> Option<Toolchain> {
    let manifest = ["Gemfile", "gems.rb"]
        .into_iter()
        .find(|name| files.has(name))?;
    let mut found = Toolchain::of(manifest);
    found.setup("bundle install");
    if files.has_any(&[".rspec", "spec"]) {
        found.check("ruby", Test, "bundle exec rspec");
    } else if files.has("test") && files.has("config.ru") && files.has("bin") {
        found.check("ruby", Test, "bin/rails test");
    } else if files.has("test") && files.has_any(&["Rakefile", "rakefile", "Rakefile.rb"]) {
        found.check("ruby", Test, "bundle exec rake test");
    }
    if files.has(".rubocop.yml") {
        found.check("ruby", Lint, "bundle exec rubocop");
    }
    Some(found)
}

pub(super) fn php(files: &Listing) -> Option<Toolchain> {
    let manifest: Value = serde_json::from_str(files.read("composer.json")).ok()?;
    let has_script = |script: &str| !manifest["scripts"][script].is_null();
    let mut found = Toolchain::of("composer.json");
    found.setup("composer install --no-interaction");
    if has_script("test") {
        found.check("composer", Test, "composer run-script test");
    } else if files.has_any(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]) {
        found.check("composer", Test, "vendor/bin/phpunit");
    }
    if has_script("lint") {
        found.check("composer", Lint, "composer run-script lint");
    }
    Some(found)
}

pub(super) fn cmake(files: &Listing) -> Option<Toolchain> {
    if !files.has("CMakeLists.txt") {
        return None;
    }
    let mut found = Toolchain::of("CMakeLists.txt");
    found.check("cmake", Build, "cmake -S . -B build && cmake --build build");
    let text = files.read("CMakeLists.txt").to_ascii_lowercase();
    if text.contains("enable_testing(") || text.contains("include(ctest)") {
        found.check("cmake", Test, "ctest --test-dir build --output-on-failure");
    }
    Some(found)
}

/// Manifests whose content need not be read: the name, the tool, its setup, build and test.
const SIMPLE: &str = "\
Package.swift | swift |  | swift build --build-tests | swift test
mix.exs | mix | mix deps.get | mix compile | mix test
build.sbt | sbt |  | sbt -batch Test/compile | sbt -batch test
dune-project | dune |  | dune build | dune runtest
stack.yaml | stack |  | stack build --test --no-run-tests | stack test
gleam.toml | gleam | gleam deps download | gleam build | gleam test
rebar.config | rebar3 |  | rebar3 compile | rebar3 eunit
meson.build | meson |  | meson setup build && meson compile -C build | meson test -C build
Makefile.PL | perl |  | perl Makefile.PL && make | prove --blib --recurse t";

/// Zig's build script, if it has a step for tests.
pub(super) fn zig(files: &Listing) -> Option<Toolchain> {
    let has_tests = files.read("build.zig").contains("step(\"test\"");
    let mut found = files.has("build.zig").then(|| Toolchain::of("build.zig"))?;
    found.check("zig", Build, "zig build");
    if has_tests {
        found.check("zig", Test, "zig build test");
    }
    Some(found)
}

/// A Haskell package that Stack does not build.
pub(super) fn cabal(files: &Listing) -> Option<Toolchain> {
    let manifest = files.ending(&[".cabal"]).next();
    let manifest = files
        .has("cabal.project")
        .then_some("cabal.project")
        .or(manifest)?;
    if files.has("stack.yaml") {
        return None;
    }
    let mut found = Toolchain::of(manifest);
    found.setup("cabal update");
    found.check("cabal", Build, "cabal build all --enable-tests");
    found.check("cabal", Test, "cabal test all");
    Some(found)
}

pub(super) fn simple(files: &Listing) -> Vec<Toolchain> {
    rows::<5>(SIMPLE)
        .filter(|[name, ..]| files.has(name))
        .map(|[name, tool, setup, build, test]| {
            let mut found = Toolchain::of(name);
            if !setup.is_empty() {
                found.setup(setup);
            }
            found.check(tool, Build, build);
            found.check(tool, Test, test);
            found
        })
        .collect()
}

/// A project whose makefile is generated by `configure`.
pub(super) fn autotools(files: &Listing) -> Option<Toolchain> {
    if files.has("Makefile") || !files.has_any(&["configure", "configure.ac"]) {
        return None;
    }
    let (from, setup) = if files.has("configure") {
        ("configure", "./configure")
    } else {
        ("configure.ac", "autoreconf -fi && ./configure")
    };
    let mut found = Toolchain::of(from);
    found.setup(setup);
    found.check("make", Build, "make");
    found.check("make", Test, "make check");
    Some(found)
}

/// The names of a file of Task, which are not case-sensitive in their first letter.
const TASKFILES: &str =
    "Taskfile.yml taskfile.yml Taskfile.yaml taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml";

/// The commands of the makefile, justfile or taskfile in the root, at most one of each kind.
pub(super) fn runner(files: &Listing) -> Vec<Command> {
    let makefile = ["GNUmakefile", "makefile", "Makefile"];
    let justfile = ["justfile", "Justfile", ".justfile"];
    let first = |names: [&'static str; 3]| names.into_iter().find(|name| files.has(name));
    let mut found = Vec::new();
    if let Some(name) = first(makefile) {
        offer(&mut found, "make", name, &make_targets(files.read(name)));
    }
    if let Some(name) = first(justfile) {
        offer(&mut found, "just", name, &just_recipes(files.read(name)));
    }
    if let Some(name) = TASKFILES.split_whitespace().find(|name| files.has(name)) {
        let root = yaml::parse(files.read(name)).ok().flatten();
        let tasks = root
            .as_ref()
            .and_then(|root| root.get("tasks"))
            .map(Node::entries)
            .unwrap_or_default();
        let names: Vec<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
        offer(&mut found, "task", name, &names);
    }
    found
}

fn offer(found: &mut Vec<Command>, tool: &str, from: &str, targets: &[&str]) {
    let wanted: [(CheckKind, &[&str]); 3] = [
        (Build, &["build", "all"]),
        (Test, &["test", "tests", "check"]),
        (Lint, &["lint"]),
    ];
    for (kind, names) in wanted {
        let target = names.iter().find(|name| targets.contains(name));
        if let Some(target) = target
            && found.iter().all(|other| other.kind != kind)
        {
            found.push(Command {
                tool: tool.to_owned(),
                kind,
                run: format!("{tool} {target}"),
                from: format!("the target {target} of {from}"),
            });
        }
    }
}

/// The explicit targets of a makefile.
fn make_targets(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.starts_with(['\t', ' ', '#', '.']))
        .filter_map(|line| line.split_once(':'))
        .filter(|(targets, rest)| !is_assignment(targets, rest))
        .flat_map(|(targets, _)| targets.split_whitespace())
        .collect()
}

/// The recipes of a justfile that run without arguments.
fn just_recipes(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.starts_with(['\t', ' ', '#', '[']))
        .filter_map(|line| line.split_once(':'))
        .filter(|(head, rest)| !is_assignment(head, rest))
        .filter_map(|(head, _)| {
            let mut words = head.split_whitespace();
            let name = words.next()?.trim_start_matches('@');
            words
                .all(|word| word.starts_with('*') || word.contains('='))
                .then_some(name)
        })
        .collect()
}

/// `A := b`, `A ::= b`, and `A = b:c`, which are not rules.
fn is_assignment(before: &str, after: &str) -> bool {
    after.trim_start_matches(':').starts_with('=') || before.split_whitespace().nth(1) == Some("=")
}
