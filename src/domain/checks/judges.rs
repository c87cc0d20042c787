//! Who judges the work: one rule for every tool. Product source is left as the work made it, and everything else that
//! was there before the run is put back for the proof. What no list names is on the safe side: it is put back.

mod imports;
mod makefile;
mod manifests;
mod named;
mod part;
mod rust_tests;
mod start;

pub use named::Named;
pub use part::{Part, Restored};
pub use start::Start;

use super::tests_changed::is_test;
use crate::pattern::Pattern;
use crate::text::{file_ending, file_name, has_word};
use globset::{Glob, GlobSet, GlobSetBuilder};
use manifests::{CARGO_TOML, COMPOSER_JSON, DENO_JSON, PACKAGE_JSON, PYPROJECT, SETUP_CFG};

/// How a path affects the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Product source, documents, dependencies: what the work is made of.
    Work,
    /// Data, and what no list names: the work's if product code names it and no test and no check does.
    Data,
    /// A test: its content decides the result, and a new one adds to the existing tests.
    Test,
    /// It judges, in whole or in part.
    Judge(Part),
}

/// Endings of programming languages.
const LANGUAGES: &str = " adb ads asm astro awk bas bash c cc cjs clj cljc cljs coffee cpp cr cs css csx cts cu cxx d dart
    el elm erl ex exs f f03 f90 f95 fish fs fsx gd gleam glsl go gql graphql groovy h hbs heex hh hpp hrl hs htm html
    hxx idr inl ipynb j2 java jinja jl jq js jsx kt less lisp lua m mjs ml mli mm mts nim nut pas php pl pm proto ps1
    psm1 purs py pyw pyx r R rb re res rkt rs s S sass scala scm scss sed sh slim sol sql svelte swift tcl tf thrift ts
    tsx twig v vala vb vhd vue wat wgsl zig zsh ";

/// Endings of documents, images and fonts.
const DOCUMENTS: &str =
    " adoc asciidoc avif bmp eot gif ico jpeg jpg md mdx mp3 mp4 ogg org otf pdf png rst svg tex
    text ttf txt wav webm webp woff woff2 ";

/// Endings of data.
const DATA: &str = " bin csv dat json json5 jsonl po properties toml tsv xml yaml yml ";

/// Files that configure checks and builds, wherever they are.
static CONFIGURATION: Pattern = Pattern::new(
    r"(?x)
    (?:^|/)\.[^/]
    | \.(?:config|conf|setup|runner)\.[^/]*$
    | (?:^|/)(?:conftest|noxfile|sitecustomize|usercustomize|fabfile|dodo|setup|runtests)\.py$ | ^tasks(?:/__init__)?\.py$
    | (?:^|/)(?:setup-?tests?|tests?-?setup|jest-?setup|mocha-?setup|setup_suite)\.\w+$ | (?:^|/)setupTests\.[cm]?[jt]sx?$
    | (?:^|/)(?:build\.(?:rs|zig)|Package(?:@swift[^/]*)?\.swift|mix\.exs|project\.clj|magefile\.go|(?:xmake|premake\d?)\.lua)$
    | (?:^|/)(?:[Gg]ulpfile|[Gg]runtfile|[Jj]akefile)[^/]*\.\w+$
    | (?:^|/)(?:CMakeLists\.txt|meson_options\.txt|[^/]*\.egg-info/[^/]*|environments/test\.rb|test\.exs|rector\.php|ecs\.php)$
    | (?:^|/)(?:GNUm|[Mm])akefile[^/]*$ | (?:^|/)(?:tsconfig|jsconfig|angular|project|nx|turbo|lerna|rush)[^/]*\.json$
    | (?:^|/)(?:Dockerfile|BUILD|WORKSPACE|SConstruct|[Rr]akefile|dune|wscript)[^/]*$ | compose[^/]*\.ya?ml$
    | \.(?:bazel|bzl|cmake|csproj|fsproj|gradle|kts|mk|props|pyi|sbt|sln|targets|vbproj)$
    | (?:^|/)(?:coverage|flake8|mypy|php|phpunit|pylint|pytest|setup|tox)[^/]*\.(?:cfg|ini)$
    | (?:^|/)meson\.build$",
);

/// Directories of what checks run, at the top of the work tree or of a package.
static DIRECTORIES: Pattern = Pattern::new(
    r"^((?:[^/]+/){0,2})(?:buildSrc|checks|ci|cmake|hack|magefiles|qa|rakelib|scripts?|xtask)/",
);

/// Names of what results are compared with.
static EXPECTED: Pattern = Pattern::new(
    r"(?i)(?:^|[/_.-])(?:allow-?list|baselines?|budgets?|cases|expect(?:ed|ations?)|golden|limits|suites?|suppressions|thresholds?|todo|want(?:ed)?)(?:[/_.-]|$)",
);

/// Directories in which the work lies.
static PRODUCT: Pattern = Pattern::new(
    r"(?:^|/)(?:app|assets|cmd|i18n|include|internal|lib|locales?|migrations|pkg|public|resources|src|static|templates|views)/",
);

/// Lists of dependencies, which come with the work like those of the manifests.
static DEPENDENCIES: Pattern = Pattern::new(
    r"(?:^|/)(?:[^/]*\.lock|\.gitmodules|bun\.lockb|Gemfile|go\.sum|go\.work\.sum|gradle\.lockfile|libs\.versions\.toml|npm-shrinkwrap\.json|Package\.resolved|package-lock\.json|Pipfile|pnpm-lock\.yaml|(?:requirements|constraints)[^/]*\.(?:in|txt)|requirements/[^/]*\.(?:in|txt)|vendor/modules\.txt)$",
);

/// The manifests that name dependencies.
static MANIFESTS: Pattern = Pattern::new(
    r"(?:^|/)(?:Cargo\.toml|composer\.json|go\.mod|mix\.exs|package\.json|pyproject\.toml|setup\.(?:cfg|py))$",
);

/// Directories of code that a project has taken from others.
static FOREIGN: Pattern = Pattern::new(
    r"(?:^|/)(?:deps|extern|external|node_modules|submodules|third[-_]?party|vendor|vendored)/",
);

/// What a test framework is made of, or what stands in front of one: a copy in a directory of foreign code, or a new
/// file of this name.
static FRAMEWORK: Pattern = Pattern::new(
    r"(?x)(?:^|/)(?:@jest|@testing-library|@vitest|_pytest|acutest|ava|bashunit|bats|catch2?|chai|cmocka|cpputest|cucumber
        |doctest|ginkgo|gmock|gomega|googlemock|googletest|greatest|gtest|hypothesis|jasmine|jest|minitest|minunit|mocha
        |munit|phpunit|pluggy|pytest(?:_\w+)?|qunit|rspec|sharness|shellspec|shunit2|sinon|tape|test-unit|testify|unittest2?
        |unity|utest|uvu|vitest|Test2?/(?:Builder|More|Simple|V0)|test/unit|org/junit|strict|warnings|Carp|Exporter)
        (?:[-./][^/]*)?(?:/|$)
    | (?:^|/)(?:assert|std\w+|string|math|signal|time|unistd|errno|ctype|limits)\.h$",
);

/// Whether a file says which dependencies are installed.
pub fn names_dependencies(path: &str) -> bool {
    DEPENDENCIES.is_match(path) || MANIFESTS.is_match(path)
}

/// The rule for a set of checks.
pub struct Judges {
    /// What the checks run and read by name.
    pub named: Named,
    judges: GlobSet,
    product: GlobSet,
}

impl Judges {
    /// The rule for these command lines, which run at the top of the work tree, and for what the settings `judges` and
    /// `product` say.
    pub fn of<'c>(
        commands: impl IntoIterator<Item = &'c str>,
        start: &dyn Start,
        judges: &[String],
        product: &[String],
    ) -> Self {
        Self {
            named: Named::of(commands, start),
            judges: set(judges),
            product: set(product),
        }
    }

    /// How a path that existed affects the checks.
    pub fn of_old(&self, path: &str) -> Role {
        self.said(path).unwrap_or_else(|| self.role(path))
    }

    /// How a new path affects the checks. A new file in the place of a test framework judges, too.
    pub fn of_new(&self, path: &str) -> Role {
        let role = self.said(path).unwrap_or_else(|| self.role(path));
        let replaces = || FRAMEWORK.is_match(path) && !FOREIGN.is_match(path);
        if role == Role::Work && has(LANGUAGES, path) && replaces() && self.said(path).is_none() {
            Role::Judge(Part::Whole)
        } else {
            role
        }
    }

    /// What the settings say.
    fn said(&self, path: &str) -> Option<Role> {
        if self.judges.is_match(path) {
            return Some(Role::Judge(Part::Whole));
        }
        self.product.is_match(path).then_some(Role::Work)
    }

    fn role(&self, path: &str) -> Role {
        let whole = Role::Judge(Part::Whole);
        let is_source = has(LANGUAGES, path);
        let is_text = has(DOCUMENTS, path) || !file_name(path).contains('.') && is_notice(path);
        if let Some(part) = manifest(path) {
            return Role::Judge(part);
        }
        match path {
            _ if self.named.runs(path) => whole,
            _ if DEPENDENCIES.is_match(path) => Role::Work,
            _ if file_name(path) == ".gitignore" && !self.named.obeys_gitignore() => Role::Work,
            _ if is_test(path) || self.named.is_test(path) => Role::Test,
            _ if is_configuration(path) => whole,
            _ if FOREIGN.is_match(path) && FRAMEWORK.is_match(path) => whole,
            _ if is_source => Role::Work,
            _ if self.named.is_example(path) => whole,
            _ if EXPECTED.is_match(path) => Role::Data,
            _ if is_text || PRODUCT.is_match(path) => Role::Work,
            _ => Role::Data,
        }
    }
}

/// Whether a path is the source of a product: no test, and nothing that configures checks and builds.
pub fn is_product_source(path: &str) -> bool {
    // A program may have no ending.
    let is_source = if file_name(path).contains('.') {
        has(LANGUAGES, path)
    } else {
        !(is_notice(path) || DEPENDENCIES.is_match(path))
    };
    is_source && !is_test(path) && !is_configuration(path)
}

/// Whether a path configures checks and builds, or is what they run.
fn is_configuration(path: &str) -> bool {
    let before = DIRECTORIES.captures(path).map(|found| found[1].to_owned());
    CONFIGURATION.is_match(path) || before.is_some_and(|before| !PRODUCT.is_match(&before))
}

/// The manifest of a package, of which only a part judges.
fn manifest(path: &str) -> Option<Part> {
    Some(match file_name(path) {
        "Cargo.toml" => CARGO_TOML,
        "composer.json" => COMPOSER_JSON,
        "deno.json" | "deno.jsonc" => DENO_JSON,
        "go.mod" => Part::GoMod,
        "package.json" => PACKAGE_JSON,
        "pyproject.toml" => PYPROJECT,
        "setup.cfg" => SETUP_CFG,
        "pom.xml" => Part::Lines(&manifests::POM),
        "build.gradle" | "build.gradle.kts" => Part::Lines(&manifests::GRADLE),
        name if name.ends_with("proj") && name.contains('.') => Part::Lines(&manifests::DOTNET),
        _ => return None,
    })
}

/// The part of a source file that judges: the tests inside it.
pub fn tests_inside(path: &str) -> Option<Part> {
    path.ends_with(".rs").then_some(Part::RustTests)
}

/// Whether a new file among the tests may rule the others, by its name: it is no test by itself, and no data.
pub fn may_rule_by_name(path: &str) -> bool {
    static TEST: Pattern = Pattern::new(
        r"(?:^|[/_.-])(?:[Tt]ests?|[Ss]pecs?|e2e|cy|SUITE)(?:[_.-][^/]*)?$|(?:[A-Za-z0-9](?:Tests?|TestCase)|[a-z0-9](?:Spec|IT|Suite)|(?:^|/)Test[A-Z]\w*)\.\w+$|\.(?:t|bats|feature|hurl|phpt|robot|snap|golden)$|\.approved\.",
    );
    let is_data = (has(DATA, path) || has(DOCUMENTS, path)) && !CONFIGURATION.is_match(path);
    let is_manifest = manifest(path).is_some();
    // Nothing finds such a file in the place of another one.
    let is_apart =
        has(" c cc cpp cs cxx go rs sh swift zig ", path) && !CONFIGURATION.is_match(path);
    is_manifest || !(TEST.is_match(path) || is_data || is_apart) || FRAMEWORK.is_match(path)
}

/// Whether a file says what a project is and not what it does.
fn is_notice(path: &str) -> bool {
    let upper = file_name(path)
        .chars()
        .all(|c| c.is_ascii_uppercase() || "-_".contains(c));
    upper && file_name(path).len() > 3
}

fn has(endings: &str, path: &str) -> bool {
    has_word(endings, file_ending(path))
}

/// An invalid glob matches nothing; the settings refuse it before.
fn set(globs: &[String]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs.iter().filter_map(|glob| Glob::new(glob).ok()) {
        builder.add(glob);
    }
    builder.build().unwrap_or_default()
}

#[cfg(test)]
mod tests;
