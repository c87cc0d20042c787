//! The manifests of packages, of which only a part decides what a check does.

use super::part::Part;
use crate::pattern::Pattern;

/// A `package.json` except its dependencies and the keys that describe the package.
pub const PACKAGE_JSON: Part = Part::Json(
    "author bin browser bugs bundledDependencies contributors cpu dependencies description devDependencies
    engines exports files funding homepage imports keywords license main maintainers man module name
    optionalDependencies os overrides packageManager peerDependencies peerDependenciesMeta private publishConfig
    repository resolutions sideEffects type types typesVersions typings unpkg version",
);

/// A `deno.json` except the keys that describe the package, and imports from elsewhere.
pub const DENO_JSON: Part = Part::Json("exports imports@ license name publish version");

/// A `Cargo.toml` except its dependencies, its features, a raised edition and the keys that describe the package.
pub const CARGO_TOML: Part = Part::Toml(
    "badges build-dependencies dependencies dev-dependencies package.authors package.categories
    package.description package.documentation package.edition+ package.exclude package.homepage package.include
    package.keywords package.license package.license-file package.links package.metadata package.name
    package.publish package.readme package.repository package.rust-version package.version features.*
    target.*.build-dependencies target.*.dependencies target.*.dev-dependencies workspace.dependencies
    workspace.metadata workspace.package",
);

/// The tools' sections of a `pyproject.toml`, and the plugins of pytest among the entry points of the package.
pub const PYPROJECT: Part = Part::Toml(
    "build-system dependency-groups project tool.bumpversion tool.commitizen tool.flit tool.hatch.build
    tool.hatch.metadata tool.hatch.version tool.pdm.build tool.pdm.dev-dependencies tool.pdm.version tool.poetry
    tool.semantic_release tool.setuptools tool.setuptools_scm tool.towncrier tool.uv
    !project.entry-points.pytest11 !tool.poetry.plugins.pytest11",
);

/// A `composer.json` except its dependencies and the keys that describe the package.
pub const COMPOSER_JSON: Part = Part::Json(
    "authors conflict description homepage keywords license minimum-stability name provide replace repositories
    require require-dev suggest support type version",
);

/// A `setup.cfg` except what describes the package.
pub const SETUP_CFG: Part = Part::Ini(
    "bdist_wheel bumpversion egg_info metadata options sdist versioneer !options.entry_points",
);

/// Lines of a `pom.xml` that name a dependency or describe the package.
pub static POM: Pattern = Pattern::new(
    r"^\s*</?(?:artifactId|classifier|dependency|dependencies|description|exclusions?|groupId|name|optional|scope|type|url|version)\b",
);

/// Lines of a `build.gradle` that name a dependency or a version.
pub static GRADLE: Pattern = Pattern::new(
    r#"^\s*(?:annotationProcessor|api|classpath|compileOnly|developmentOnly|group|implementation|kapt|ksp|runtimeOnly|test(?:Compile|Runtime)Only|testImplementation|version)\b[\s(=]"#,
);

/// Lines of a project of .NET that name a dependency or describe the package.
pub static DOTNET: Pattern =
    Pattern::new(r"^\s*</?(?:Authors|Description|PackageReference|ProjectReference|Version\w*)\b");
