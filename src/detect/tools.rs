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

/// Manifests whose content need not be read: the name, the language, the tool, its setup, build, test and lint. Of the
/// rows of one tool, the first counts.
const SIMPLE: &str = "\
go.mod | go | go |  | go build ./... | go test ./... | go vet ./...
mvnw |  | jvm |  | ./mvnw --batch-mode --no-transfer-progress test-compile | ./mvnw --batch-mode --no-transfer-progress test |
pom.xml |  | jvm |  | mvn --batch-mode --no-transfer-progress test-compile | mvn --batch-mode --no-transfer-progress test |
gradlew |  | jvm |  | ./gradlew --no-daemon assemble | ./gradlew --no-daemon check |
build.gradle |  | jvm |  | gradle --no-daemon assemble | gradle --no-daemon check |
build.gradle.kts |  | jvm |  | gradle --no-daemon assemble | gradle --no-daemon check |
settings.gradle |  | jvm |  | gradle --no-daemon assemble | gradle --no-daemon check |
settings.gradle.kts |  | jvm |  | gradle --no-daemon assemble | gradle --no-daemon check |
Package.swift |  | swift |  | swift build --build-tests | swift test |
mix.exs |  | mix | mix deps.get | mix compile | mix test |
build.sbt |  | sbt |  | sbt -batch Test/compile | sbt -batch test |
dune-project |  | dune |  | dune build | dune runtest |
stack.yaml |  | haskell |  | stack build --test --no-run-tests | stack test |
cabal.project |  | haskell | cabal update | cabal build all --enable-tests | cabal test all |
*.cabal |  | haskell | cabal update | cabal build all --enable-tests | cabal test all |
gleam.toml |  | gleam | gleam deps download | gleam build | gleam test |
rebar.config |  | rebar3 |  | rebar3 compile | rebar3 eunit |
meson.build |  | meson |  | meson setup build && meson compile -C build | meson test -C build |
Makefile.PL |  | perl |  | perl Makefile.PL && make | prove --blib --recurse t |
configure |  | make | ./configure | make | make check |
configure.ac |  | make | autoreconf -fi && ./configure | make | make check |";

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

pub(super) fn simple(files: &Listing) -> Vec<Toolchain> {
    let mut all: Vec<Toolchain> = Vec::new();
    let mut tools = Vec::new();
    for [name, language, tool, setup, build, test, lint] in rows::<7>(SIMPLE) {
        let is_there = match name.strip_prefix('*') {
            Some(ending) => files.ending(&[ending]).next().is_some(),
            None => files.has(name),
        };
        // `configure` makes a makefile only where there is none.
        let is_made = tool == "make" && files.has("Makefile");
        if !is_there || is_made || tools.contains(&tool) {
            continue;
        }
        tools.push(tool);
        let mut found = Toolchain::of(name);
        found.language = Some(language).filter(|language| !language.is_empty());
        if !setup.is_empty() {
            found.setup(setup);
        }
        for (kind, run) in [(Build, build), (Test, test), (Lint, lint)] {
            if !run.is_empty() {
                found.check(tool, kind, run);
            }
        }
        all.push(found);
    }
    all
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
