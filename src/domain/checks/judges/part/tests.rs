use super::{Part, Restored};

const FREE: Part = Part::Json("dependencies version");
const CARGO: Part = Part::Toml("dependencies package.version features.*");

fn mixed(part: Part, old: &str, new: &str) -> String {
    match part.restored(old, new) {
        Some(Restored::Mixed(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_decide_is_no_change() {
    let old = r#"{"version":"1","scripts":{"test":"jest"},"dependencies":{"a":"1"}}"#;
    let new = r#"{"scripts": {"test": "jest"}, "dependencies": {"a": "1", "b": "2"}}"#;
    assert_eq!(FREE.restored(old, new), None);
    let old = "[package]\nname = \"a\"\nversion = \"1\"\n[dependencies]\n";
    let new =
        "[package]\nname = \"a\"\nversion = \"2\"\n[dependencies]\nb = \"1\"\n[features]\nx = []\n";
    assert_eq!(CARGO.restored(old, new), None);
    let old = "module a\n\ngo 1.9\n\nrequire b v1\n";
    let new = "module a\n\ngo 1.22.1\n\nrequire (\n\tb v1\n\tc v2 // indirect\n)\n";
    assert_eq!(Part::GoMod.restored(old, new), None);
    for lowered in ["go 1.8\n", "go one\n", "go 1.22\ngo 1.8\n", ""] {
        let new = format!("module a\n\n{lowered}");
        let kept = "module a\ngo 1.9\n".to_owned();
        assert_eq!(
            Part::GoMod.restored(old, &new),
            Some(Restored::Mixed(kept)),
            "{lowered}"
        );
    }
    let ini = Part::Ini("metadata options");
    let old = "[metadata]\nname = a\n\n[tool:pytest]\naddopts = -q\n";
    let new = "[metadata]\nname = a\n[options.extras_require]\nx = y\n[tool:pytest]\n# why\naddopts = -q\n";
    assert_eq!(ini.restored(old, new), None);
}

#[test]
fn what_decides_is_put_back_and_the_rest_stays() {
    let old = r#"{"version":"1","scripts":{"test":"jest"}}"#;
    let new = r#"{"version":"2","scripts":{"test":"true"},"dependencies":{"b":"2"}}"#;
    let back: serde_json::Value = serde_json::from_str(&mixed(FREE, old, new)).unwrap();
    let expected = r#"{"version":"2","scripts":{"test":"jest"},"dependencies":{"b":"2"}}"#;
    assert_eq!(
        back,
        serde_json::from_str::<serde_json::Value>(expected).unwrap()
    );

    let old = "[package]\nname = \"a\"\n";
    let new = "[package]\nname = \"a\"\n[lib]\ntest = false\n[dependencies]\nb = \"1\"\n";
    let back = mixed(CARGO, old, new);
    assert!(
        !back.contains("lib") && back.contains("[dependencies]"),
        "{back}"
    );

    let old = "module a\ngo 1.22\nrequire b v1\n";
    let new = "module a\ngo 1.22\nrequire (\n\tb v1\n\tc v1\n)\nreplace b => ./fake\n";
    let back = mixed(Part::GoMod, old, new);
    assert!(!back.contains("replace") && back.contains("c v1"), "{back}");

    let ini = Part::Ini("metadata");
    let old = "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n";
    let new = "[metadata]\nname = b\n[tool:pytest]\naddopts = --ignore=tests\n";
    assert_eq!(
        mixed(ini, old, new),
        "[tool:pytest]\naddopts = -q\n[metadata]\nname = b\n"
    );
}

#[test]
fn a_default_feature_decides_what_is_compiled() {
    let old = "[features]\ndefault = [\"x\"]\nx = []\n";
    let new = "[features]\ndefault = []\nx = []\ny = []\n";
    let back = mixed(CARGO, old, new);
    assert!(
        back.contains("default = [\"x\"]") && back.contains('y'),
        "{back}"
    );
}

#[test]
fn features_that_the_default_ones_turn_on_decide_as_well() {
    let old = "[features]\ndefault = [\"std\"]\nstd = [\"full\"]\nfull = []\nx = [\"a\"]\n";
    let other = old.replace("x = [\"a\"]", "x = []\ny = [\"full\"]");
    assert_eq!(CARGO.restored(old, &other), None);
    let back = mixed(CARGO, old, &other.replace("std = [\"full\"]", "std = []"));
    assert!(
        back.contains("std = [\"full\"]") && back.contains("x = []"),
        "{back}"
    );
}

#[test]
fn what_a_default_feature_turns_on_of_dependencies_is_free() {
    let old =
        "[features]\ndefault = [\"std\"]\nstd = [\"full\", \"dep:a\", \"b/std\"]\nfull = []\n";
    let new = old.replace("\"dep:a\", \"b/std\"", "\"dep:c\"");
    assert_eq!(CARGO.restored(old, &new), None);
    let back = mixed(CARGO, old, &new.replace("\"full\", ", ""));
    assert!(back.contains("std = [\"dep:c\", \"full\"]"), "{back}");
}

#[test]
fn a_dependency_that_is_taken_from_the_work_tree_now_decides() {
    let of = |dependency: &str| format!("{{\"dependencies\":{{\"a\":{dependency}}}}}");
    let cargo = |dependency: &str| format!("[dependencies]\na = {dependency}\n");
    for (old, new, decides) in [
        ("\"^1\"", "\"file:fake\"", true),
        ("\"^1\"", "\"../fake\"", true),
        ("\"^1\"", "\"^2\"", false),
        ("\"file:a\"", "\"file:b\"", false),
        ("\"file:a\"", "\"^1\"", false),
    ] {
        let restored = FREE.restored(&of(old), &of(new));
        assert_eq!(restored.is_some(), decides, "{old} {new}");
    }
    for (old, new, decides) in [
        ("\"1\"", "{ path = \"fake\" }", true),
        ("{ version = \"1\" }", "{ path = \"fake\" }", true),
        ("\"1\"", "{ version = \"2\", features = [\"x\"] }", false),
        ("{ path = \"a\" }", "{ path = \"b\" }", false),
    ] {
        let restored = CARGO.restored(&cargo(old), &cargo(new));
        assert_eq!(restored.is_some(), decides, "{old} {new}");
    }
    let main = |path: &str| format!("{{\"main\":\"{path}\"}}");
    let free = Part::Json("main");
    assert_eq!(free.restored(&main("a.js"), &main("./b.js")), None);
}

#[test]
fn a_file_that_cannot_be_read_decides_as_a_whole() {
    assert_eq!(FREE.restored("{", "{}"), Some(Restored::Old));
    assert_eq!(CARGO.restored("a = 1", "a ="), Some(Restored::Old));
    assert_eq!(Part::Whole.restored("a", "b"), Some(Restored::Old));
    assert_eq!(Part::Whole.restored("a", "a"), None);
}

const SOURCE: &str = "pub fn f() -> i32 {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    use super::f;\n    #[test]\n    fn one() {\n        assert_eq!(f(), 1);\n    }\n}\n";

#[test]
fn test_modules_of_rust_are_put_back_in_the_new_source() {
    let part = Part::RustTests;
    let work = SOURCE.replace("    1\n", "    2 - 1\n");
    assert_eq!(part.restored(SOURCE, &work), None);
    let weaker = work.replace("assert_eq!(f(), 1)", "f()");
    assert_eq!(mixed(part, SOURCE, &weaker), work);
    let without = work.split("#[cfg(test)]").next().unwrap();
    let back = mixed(part, SOURCE, without);
    assert!(
        back.starts_with(without) && back.contains("assert_eq!(f(), 1)"),
        "{back}"
    );
}

#[test]
fn new_test_modules_are_no_change_of_old_ones() {
    let new = format!("{SOURCE}\n#[cfg(test)]\nmod more {{\n}}\n");
    assert_eq!(Part::RustTests.restored(SOURCE, &new), None);
    assert_eq!(Part::RustTests.restored("fn a() {}\n", SOURCE), None);
}

#[test]
fn conditions_that_leave_code_out_of_a_build_for_tests_are_taken_back() {
    let part = Part::RustTests;
    let source = format!("pub mod parser;\n{SOURCE}");
    let whole = format!("#![cfg(not(test))]\n{source}");
    assert_eq!(mixed(part, &source, &whole), source);
    let module = format!("#[cfg(not(test))]\n{source}");
    assert_eq!(mixed(part, &source, &module), source);
    assert_eq!(
        part.restored(&whole, &whole.replace("    1\n", "    2 - 1\n")),
        None
    );
    let attribute = format!("#![cfg_attr(all(), cfg(not(test)))]\n{source}");
    assert_eq!(mixed(part, &source, &attribute), source);
    let allowed = format!("#![cfg_attr(test, allow(unused))]\n{source}");
    assert_eq!(part.restored(&source, &allowed), None);
    let quiet = "macro_rules! assert_eq { ($($t:tt)*) => {}; }\n";
    let renamed = quiet.replace("assert_eq", "_eq");
    assert_eq!(
        mixed(part, &source, &format!("{quiet}{source}")),
        format!("{renamed}{source}")
    );
    let function = format!("#[cfg(not(test))]\nfn g() {{}}\n{source}");
    assert_eq!(part.restored(&source, &function), None);
}

#[test]
fn a_raised_edition_decides_nothing_and_a_lower_one_is_put_back() {
    let edition = Part::Toml("package.edition+");
    let of = |edition: &str| format!("[package]\nname = \"a\"\nedition = \"{edition}\"\n");
    assert_eq!(edition.restored(&of("2018"), &of("2021")), None);
    assert!(mixed(edition, &of("2021"), &of("2018")).contains("2021"));
    let none = "[package]\nname = \"a\"\n";
    assert!(mixed(edition, &of("2021"), none).contains("2021"));
    assert_eq!(edition.restored(none, &of("2021")), None);
}

const OUTSIDE: &str = "pub fn f() -> i32 { 1 }\n\n#[test]\nfn one() { assert_eq!(f(), 1); }\n\npub mod m {\n    pub fn g() {}\n\n    #[cfg(test)]\n    mod tests {\n        #[test]\n        fn two() { assert!(\"}\" != \"{\"); }\n    }\n}\n";

#[test]
fn tests_of_rust_are_found_at_any_depth_and_in_any_format() {
    let part = Part::RustTests;
    for (from, to) in [
        ("f(), 1", "f(), f()"),
        ("#[test]\nfn one", "#[test]\n#[ignore]\nfn one"),
        ("#[test]\nfn one", "#[ignore]\n#[test]\nfn one"),
        ("!= \"{\"", "== \"}\""),
    ] {
        let weaker = OUTSIDE.replace(from, to);
        assert_ne!(weaker, OUTSIDE);
        assert_eq!(mixed(part, OUTSIDE, &weaker), OUTSIDE, "{to}");
    }
    // What is gone comes back into the module around it.
    let without = OUTSIDE.replace("    #[cfg(test)]\n    mod tests {\n        #[test]\n        fn two() { assert!(\"}\" != \"{\"); }\n    }\n", "");
    let back = mixed(part, OUTSIDE, &without);
    assert!(
        back.contains("fn two") && back.trim_end().ends_with("}\n}"),
        "{back}"
    );
    for work in [
        OUTSIDE.replace("{ 1 }", "{ 2 - 1 }"),
        format!("{OUTSIDE}\n#[test]\nfn three() {{}}\n"),
        OUTSIDE.replace("pub mod m", "pub mod n"),
        OUTSIDE.replace(
            "pub fn g() {}",
            "pub fn g() {}\n\n    #[cfg(feature = \"x\")]\n    pub fn h() {}",
        ),
    ] {
        assert_eq!(part.restored(OUTSIDE, &work), None, "{work}");
    }
    // A text of the work that looks like a test is none.
    let template =
        |test: &str| format!("const T: &str = r#\"\n#[test]\nfn x() {{ {test} }}\n\"#;\n");
    assert_eq!(part.restored(&template("a"), &template("b")), None);
}

#[test]
fn tests_of_rust_are_found_in_each_form_of_item_and_condition() {
    let part = Part::RustTests;
    for form in [
        "#[test]\nfn t() { check([1]) }\n#[cfg(test)]\nfn check(a: [i32; 1]) -> [[i32; 1]; 2] { WEAK }\n",
        "#[test]\n#[case(vec![[1, 2]])]\nfn t() { WEAK }\n",
        "#[cfg(test)]\nimpl<T> Own<T> { fn is(&self) -> bool { WEAK } }\n",
        "#[cfg(test)]\nconst LIMIT: i32 = WEAK;\n",
        "#[cfg(any(test, feature = \"x\"))]\nmod helper { fn h() { WEAK } }\n",
        "#[cfg(all(not(miri), test))]\nmod tests { fn t() { WEAK } }\n",
        "/* a /* b */ \" */\n#[cfg(test)]\nmod tests { fn t() { WEAK } }\n// \"\n",
        "#[tokio::test]\nasync fn t() { WEAK }\n",
    ] {
        let old = form.replace("WEAK", "true && own");
        let weaker = form.replace("WEAK", "true");
        assert_eq!(mixed(part, &old, &weaker), old, "{form}");
    }
    for other in [
        "#[cfg(not(test))]\nfn real() { WORK }\n",
        "/* a /* b */ #[test] */\nfn real() { WORK }\n",
        "#[cfg(feature = \"test\")]\nfn real() { WORK }\n",
    ] {
        let new = other.replace("WORK", "more");
        assert_eq!(part.restored(other, &new), None, "{other}");
    }
    // Adding a comment changes no test.
    let commented = format!("/* a /* b */ \"c */\n{OUTSIDE}");
    assert_eq!(part.restored(OUTSIDE, &commented), None);
}

#[test]
fn tests_of_a_renamed_module_stand_for_themselves_beside_a_new_module_above() {
    let module = |name: &str, test: &str| {
        format!("mod {name} {{\n    #[cfg(test)]\n    mod tests {{ fn t() {{ {test} }} }}\n}}\n")
    };
    let new = format!("{}{}", module("new", "other"), module("b", "own"));
    assert_eq!(Part::RustTests.restored(&module("a", "own"), &new), None);
}

#[test]
fn plugins_of_the_runner_among_what_a_package_says_of_itself_decide() {
    let part = super::super::manifests::PYPROJECT;
    let old = "[project]\nname = \"a\"\nversion = \"1\"\n";
    let new = old.replace("\"1\"", "\"2\"")
        + "[project.scripts]\na = \"a:main\"\n[project.entry-points.other]\nb = \"a\"\n";
    assert_eq!(part.restored(old, &new), None);
    let plugin = format!("{new}[project.entry-points.pytest11]\nx = \"a.plug\"\n");
    let back = mixed(part, old, &plugin);
    assert!(
        !back.contains("pytest11") && back.contains("version = \"2\""),
        "{back}"
    );
    assert_eq!(
        part.restored(&plugin, &plugin.replace("\"2\"", "\"3\"")),
        None
    );
    let ini = Part::Ini("options !options.entry_points");
    let old = "[options]\npackages = a\n";
    let plugin = "[options]\npackages = a, b\n[options.entry_points]\npytest11 =\n  x = a.plug\n";
    assert_eq!(mixed(ini, old, plugin), "[options]\npackages = a, b\n");
}

#[test]
fn imports_are_free_unless_they_come_from_the_work_tree() {
    const DENO: Part = Part::Json("imports@");
    let old = r#"{"imports":{"a":"jsr:a@1","@/":"./src/"},"tasks":{"t":"x"}}"#;
    for new in [
        r#"{"imports":{"a":"jsr:a@2","@/":"./src/","b":"npm:b"},"tasks":{"t":"x"}}"#,
        r#"{"imports":{"@/":"./src/"},"tasks":{"t":"x"}}"#,
    ] {
        assert_eq!(DENO.restored(old, new), None, "{new}");
    }
    assert_eq!(DENO.restored("{}", r#"{"imports":{"b":"npm:b"}}"#), None);
    let new = r#"{"imports":{"a":"./fake.ts","@/":"./other/","https://x/y.ts":"./fake.ts","b":"npm:b"},"tasks":{"t":"x"}}"#;
    let json: serde_json::Value = serde_json::from_str(&mixed(DENO, old, new)).unwrap();
    let expected = serde_json::json!({"a": "jsr:a@1", "@/": "./src/", "b": "npm:b"});
    assert_eq!(json["imports"], expected);
}
