//! What is told of the programs of checks, and which programs run others.

use super::part::Part;

/// Programs that read the same files.
#[derive(Debug)]
pub struct Family {
    /// What it is called in tests.
    pub name: &'static str,
    /// Programs that belong to it, without a directory; `*` stands for anything.
    pub programs: &'static [&'static str],
    /// What they read besides the work itself.
    pub files: &'static [File],
}

/// Files that decide what a check does.
#[derive(Debug)]
pub struct File {
    /// A name, or the end of a path; `*` stands for anything but a slash. With a final slash all
    /// that lies below.
    pub name: &'static str,
    /// Which part of its content decides.
    pub part: Part,
    /// When a new one takes the place of something that decided before.
    pub added: Added,
}

/// When a file that was not there before changes what a check does.
#[derive(Debug, Clone, Copy)]
pub enum Added {
    /// Never: nothing was decided before it.
    Never,
    /// Where there were tests, which it may leave out.
    WithTests,
    /// Where one of these was there, beside it or at the top of the work tree.
    Beside(&'static [&'static str]),
}

/// Test runners: every file that their command names is a test, every directory holds tests.
pub const RUNNERS: &[&str] = &[
    "ava",
    "bats",
    "cypress",
    "deno",
    "jest",
    "mocha",
    "nose2",
    "nosetests",
    "pest",
    "phpunit",
    "playwright",
    "prove",
    "py.test",
    "pytest",
    "rspec",
    "tap",
    "tape",
    "unittest",
    "vitest",
];

/// Programs that run the script that they are given.
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

/// Where package managers install programs in a work tree.
pub const INSTALLED: &[&str] = &[".venv/bin", "node_modules/.bin", "vendor/bin", "venv/bin"];

/// What runs the scripts of a `package.json`.
pub const PACKAGE_MANAGERS: &[&str] = &["bun", "npm", "pnpm", "yarn"];
