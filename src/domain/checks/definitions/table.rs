//! The tables of known programs, and of the programs that run others.

use super::part::Part;

/// Programs that read the same files.
#[derive(Debug)]
pub struct Family {
    /// The name, for tests.
    pub name: &'static str,
    /// The programs of the family, without a directory; `*` stands for any text.
    pub programs: &'static [&'static str],
    /// The files that they read besides the work itself.
    pub files: &'static [File],
}

/// Files that decide what a check does.
#[derive(Debug)]
pub struct File {
    /// A name, or the end of a path; `*` stands for any text without a slash. A final slash means everything
    /// below the directory.
    pub name: &'static str,
    /// The part of its content that decides.
    pub part: Part,
    /// When a new file overrides an existing definition.
    pub added: Added,
}

/// When a new file changes what a check does.
#[derive(Debug, Clone, Copy)]
pub enum Added {
    /// Never: it overrides nothing.
    Never,
    /// Always: it may make a check pass that runs its program.
    Always,
    /// If there were tests, which it may leave out.
    WithTests,
    /// If one of these existed, beside it, one directory up, or at the top of the work tree.
    Beside(&'static [&'static str]),
    /// If its directory existed, and is not the top of the work tree.
    InDirectory,
    /// If there were tests below its directory, which is not the top of the work tree: it separates them from
    /// the others.
    AboveTests,
}

/// A file that counts when it is added where there were tests.
pub const fn with_tests(name: &'static str) -> File {
    File {
        name,
        part: Part::Whole,
        added: Added::WithTests,
    }
}

/// A file that overrides nothing when it is added.
pub const fn alone(name: &'static str) -> File {
    File {
        name,
        part: Part::Whole,
        added: Added::Never,
    }
}

/// A file that counts when it is added where one of the others existed.
pub const fn beside(name: &'static str, others: &'static [&'static str]) -> File {
    File {
        name,
        part: Part::Whole,
        added: Added::Beside(others),
    }
}

/// A file of which a part counts.
pub const fn partly(name: &'static str, part: Part) -> File {
    File {
        name,
        part,
        added: Added::Never,
    }
}

/// A file that weakens the checks of its program wherever it is added, such as the configuration of a linter.
pub const fn always(name: &'static str) -> File {
    File {
        name,
        part: Part::Whole,
        added: Added::Always,
    }
}

/// A file of which a part counts, also when it is added where there were tests.
pub const fn partly_with_tests(name: &'static str, part: Part) -> File {
    File {
        name,
        part,
        added: Added::WithTests,
    }
}

/// Test runners: every file that their command names is a test, and every directory contains tests.
pub const RUNNERS: &[&str] = &[
    "artillery",
    "ava",
    "bats",
    "behave",
    "busted",
    "cucumber",
    "cucumber-js",
    "cypress",
    "deno",
    "hurl",
    "jest",
    "k6",
    "mocha",
    "newman",
    "nose2",
    "nosetests",
    "pest",
    "phpunit",
    "playwright",
    "prove",
    "py.test",
    "pytest",
    "robot",
    "rspec",
    "shellspec",
    "tap",
    "tape",
    "unittest",
    "vitest",
];

/// Test runners whose tests, with the code of their steps, lie in this directory unless an argument names another one.
pub const USUAL_DIRECTORIES: &[(&str, &str)] = &[
    ("behave", "features"),
    ("cucumber", "features"),
    ("cucumber-js", "features"),
];

/// Test runners that report a known result at their end unless options or configuration change the format.
pub const REPORTING: &[&str] = &[
    "bats", "jest", "mocha", "phpunit", "py.test", "pytest", "rspec", "vitest",
];

/// Programs that run the script in their arguments.
pub const INTERPRETERS: &[&str] = &[
    "Rscript",
    "babel-node",
    "bun",
    "deno",
    "elixir",
    "groovy",
    "julia",
    "lua",
    "node",
    "nodejs",
    "perl",
    "php",
    "pypy",
    "pypy3",
    "pwsh",
    "python*",
    "ruby",
    "tclsh",
    "ts-node",
    "tsx",
];

/// Shells.
pub const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// Programs by which scripts of checks judge, and which run tests.
pub const USUAL_PROGRAMS: &[&str] = &[
    "[", "awk", "bash", "bats", "cargo", "cat", "cmp", "comm", "cut", "diff", "egrep", "env",
    "expr", "find", "git", "go", "grep", "head", "jest", "jq", "make", "mocha", "node", "npm",
    "npx", "perl", "php", "printf", "prove", "pytest", "python", "python3", "rspec", "ruby", "sed",
    "sh", "sort", "tail", "test", "timeout", "tr", "true", "uniq", "vitest", "wc", "xargs",
];

/// Directories in which package managers install programs in a work tree.
pub const INSTALLED: &[&str] = &[".venv/bin", "node_modules/.bin", "vendor/bin", "venv/bin"];

/// Programs that run others in a virtual environment of the project.
pub const ENVIRONMENTS: &[&str] = &["hatch", "pdm", "pipenv", "poetry", "rye", "tox", "uv"];

/// Words that precede a command.
pub const BEFORE_A_COMMAND: &[&str] = &[
    "!",
    "command",
    "cross-env",
    "do",
    "elif",
    "else",
    "env",
    "eval",
    "exec",
    "if",
    "ionice",
    "nice",
    "nohup",
    "setsid",
    "stdbuf",
    "sudo",
    "then",
    "time",
    "timeout",
    "trap",
    "until",
    "while",
    "xargs",
    "xvfb-run",
    "{",
];

/// Programs that run the program in their arguments.
pub const EXECUTORS: &[&str] = &[
    "bun", "bundle", "bunx", "npm", "npx", "pdm", "pipenv", "pnpm", "pnpx", "poetry", "rye", "uv",
    "uvx", "yarn",
];

/// Programs that make or run the work, by a configuration that is a part of it.
pub const BUILDERS: &[&str] = &[
    "alembic",
    "caddy",
    "docker",
    "doxygen",
    "esbuild",
    "gunicorn",
    "helm",
    "hugo",
    "jekyll",
    "mkdocs",
    "nginx",
    "parcel",
    "postcss",
    "rollup",
    "rspack",
    "sphinx-build",
    "supervisord",
    "swc",
    "tailwindcss",
    "terraform",
    "tsup",
    "uvicorn",
    "webpack",
];

/// Programs that run the scripts of a `package.json`.
pub const PACKAGE_MANAGERS: &[&str] = &["bun", "npm", "pnpm", "yarn"];

/// Programs that run the scripts of a `package.json` which their arguments name.
pub const SCRIPT_RUNNERS: &[&str] = &[
    "concurrently",
    "npm-run-all",
    "run-p",
    "run-s",
    "start-server-and-test",
    "start-test",
];

/// Programs that run the commands which their arguments hold: `nix-shell --run 'make test'`.
pub const COMMAND_RUNNERS: &[&str] = &[
    "chronic",
    "concurrently",
    "firebase",
    "nix-shell",
    "parallel",
    "retry",
    "runuser",
    "start-server-and-test",
    "start-test",
    "su",
    "watch",
];

/// Directories that conventionally contain the work itself.
pub const PRODUCT_DIRECTORIES: &[&str] = &["", "app", "bin", "lib", "packages", "pkg", "src"];

/// Compilers: the files that they compile are the work.
pub const COMPILERS: &[&str] = &[
    "c++", "cc", "clang", "clang++", "g++", "gcc", "go", "javac", "rustc", "swiftc", "tsc",
];

/// Linters and formatters: the files that they judge are the work.
pub const LINTERS: &[&str] = &[
    "actionlint",
    "biome",
    "black",
    "clang-format",
    "clang-tidy",
    "codespell",
    "cppcheck",
    "cpplint",
    "cspell",
    "eslint",
    "flake8",
    "golangci-lint",
    "hadolint",
    "isort",
    "luacheck",
    "markdownlint",
    "markdownlint-cli2",
    "mypy",
    "oxlint",
    "php-cs-fixer",
    "phpcs",
    "phpstan",
    "prettier",
    "psalm",
    "pycodestyle",
    "pydocstyle",
    "pylint",
    "pyright",
    "rubocop",
    "ruff",
    "run-clang-tidy",
    "shellcheck",
    "staticcheck",
    "stylelint",
    "swiftlint",
    "typos",
    "xo",
    "yamllint",
];

/// Programs that work by a file of rules: `awk -f`, `grep -f`, `sha256sum -c`. Other files that they name are the work.
pub const TEXT_TOOLS: &[&str] = &[
    "awk",
    "b2sum",
    "egrep",
    "fgrep",
    "gawk",
    "grep",
    "jq",
    "mawk",
    "md5sum",
    "nawk",
    "sed",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "yq",
];

/// Programs that run nothing that their arguments name, and that print or find programs.
pub const SAYING: &[&str] = &["echo", "hash", "printf", "type", "which"];

/// Programs that install others.
pub const INSTALLERS: &[&str] = &[
    "apt", "apt-get", "brew", "bun", "bundle", "cargo", "composer", "gem", "go", "npm", "pdm",
    "pip", "pip3", "pipx", "pnpm", "poetry", "uv", "yarn",
];
