//! F30: line endings, modes, names of any bytes: the exact difference, and nothing beside it.

use super::{assert_exact, delta, work};
use crate::support::project::Project;

#[test]
fn a_file_that_is_only_touched_is_no_change_whatever_its_line_endings() {
    for (name, value) in [("core.autocrlf", "true"), ("core.eol", "crlf")] {
        let project = Project::new(&[]);
        project.git(&["config", name, value]);
        project.write(
            ".gitattributes",
            "*.win text eol=crlf\n*.nix text eol=lf\n*.auto text=auto\n",
        );
        for file in ["x.win", "y.nix", "z.auto", "plain.txt"] {
            project.write(file, "one\r\ntwo\r\n");
        }
        project.commit_all("crlf");
        project.git(&["rm", "--quiet", "--cached", "-r", "."]);
        project.git(&["reset", "--quiet", "--hard"]);
        let base = project.head();
        let rewrite = "for f in x.win y.nix z.auto plain.txt; do cp $f t; cat t > $f; touch -d 2001-01-01 $f; done; rm t";
        let run = work(
            &project,
            &format!("{rewrite}; printf 'new\\r\\n' > new.win"),
        );
        assert_exact(&project, run, &base, &["A new.win"]);
        assert_eq!(
            project.git(&["show", "HEAD:new.win"]),
            "new",
            "{name}={value}"
        );
        let base = project.head();
        let run = work(
            &project,
            "printf 'one\\r\\nedited\\r\\n' > x.win; printf 'one\\nedited\\n' > y.nix",
        );
        assert_exact(&project, run, &base, &["M x.win", "M y.nix"]);
        for file in ["x.win", "y.nix"] {
            let blob = project.git(&["show", &format!("HEAD:{file}")]);
            assert_eq!(blob, "one\nedited", "{name}={value} {file}");
        }
    }
}

#[test]
fn a_line_ending_alone_is_a_change_where_nothing_converts_it() {
    let project = Project::new(&[("a.txt", "one\n")]);
    let base = project.head();
    let run = work(&project, "printf 'one\\r\\n' > a.txt");
    assert_exact(&project, run, &base, &["M a.txt"]);
}

#[test]
fn a_mode_alone_is_a_change_whatever_is_configured() {
    let project = Project::new(&[("run.sh", "true\n"), ("a.txt", "a\n")]);
    let base = project.head();
    let run = work(&project, "chmod 755 run.sh");
    assert_exact(&project, run, &base, &["M run.sh"]);
    assert!(
        project
            .git(&["ls-tree", "HEAD", "run.sh"])
            .starts_with("100755 ")
    );

    project.git(&["config", "core.fileMode", "false"]);
    let base = project.head();
    let run = work(
        &project,
        "chmod 644 run.sh; chmod 755 a.txt; echo b > a.txt; echo c > c; chmod 755 c",
    );
    assert_exact(&project, run, &base, &["A c", "M a.txt", "M run.sh"]);
    let modes = project.git(&["ls-tree", "--format=%(objectmode) %(path)", "HEAD"]);
    assert_eq!(modes, "100755 a.txt\n100755 c\n100644 run.sh");
}

#[test]
fn renames_that_only_change_case_or_normal_form_are_a_deletion_and_an_addition() {
    let project = Project::new(&[("readme.md", "x\n"), ("caf\u{e9}", "y\n")]);
    let base = project.head();
    let run = work(&project, "mv readme.md README.md; mv caf\u{e9} cafe\u{301}");
    let expected = ["A README.md", "A cafe\u{301}", "D caf\u{e9}", "D readme.md"];
    assert_exact(&project, run, &base, &expected);
    let base = project.head();
    let run = work(&project, "cp cafe\u{301} caf\u{e9}; cp README.md ReadMe.md");
    assert_exact(&project, run, &base, &["A ReadMe.md", "A caf\u{e9}"]);
}

#[test]
fn names_of_any_bytes_come_and_go() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    let script = r#"mkdir ' '
        for name in -rf --cached '::error::x' 'a"b' "a'b" 'a\b' '*' '?' '[a]' ':(top)x' '#x' '!x' '~' ' x ' \
            "$(printf 'new\nline')" "$(printf 'tab\there')" "$(printf '\377\376')" "$(printf 'bell\007')" ; do
          echo x > "./$name"
        done"#;
    let run = work(&project, script).expect(0);
    assert_eq!(delta(&project, &base).len(), 18, "{}", run.stdout);
    assert_eq!(project.status(), "");
    let base = project.head();
    let run = work(
        &project,
        "for f in ./*; do case $f in ./a.txt) ;; ./-rf) echo y > \"$f\";; *) rm -f \"$f\" 2>/dev/null || true;; esac; done",
    ).expect(0);
    let changed = delta(&project, &base);
    assert_eq!(changed.len(), 18, "{}", run.stdout);
    assert_eq!(changed.last().unwrap(), "M -rf");
    assert_eq!(
        project.git(&["ls-tree", "--name-only", "HEAD"]),
        "-rf\na.txt"
    );
}

#[test]
fn links_are_committed_as_links_wherever_they_lead() {
    let project = Project::new(&[("a.txt", "a\n"), ("dir/b.txt", "b\n")]);
    let base = project.head();
    let script = "ln -s /etc/passwd out; ln -s loop loop; ln -s . self; ln -s nowhere dangling
        rm -r dir; ln -s /etc dir; rm a.txt; ln -s \"$(printf 'odd\\ntarget')\" a.txt";
    let run = work(&project, script);
    let expected = [
        "A dangling",
        "A dir",
        "A loop",
        "A out",
        "A self",
        "D dir/b.txt",
        "T a.txt",
    ];
    assert_exact(&project, run, &base, &expected);
    assert_eq!(project.git(&["cat-file", "blob", "HEAD:dir"]), "/etc");
    assert_eq!(
        project.git(&["cat-file", "blob", "HEAD:a.txt"]),
        "odd\ntarget"
    );
}

#[test]
fn a_link_checked_out_as_a_file_is_no_change() {
    let project = Project::new(&[("a.txt", "a\n")]);
    std::os::unix::fs::symlink("a.txt", project.repo().join("link")).unwrap();
    project.commit_all("link");
    project.git(&["config", "core.symlinks", "false"]);
    std::fs::remove_file(project.repo().join("link")).unwrap();
    project.git(&["checkout", "--quiet", "--", "link"]);
    assert!(
        project
            .repo()
            .join("link")
            .symlink_metadata()
            .unwrap()
            .is_file()
    );
    let base = project.head();
    let run = work(&project, "touch link; echo b > a.txt");
    assert_exact(&project, run, &base, &["M a.txt"]);
    assert!(
        project
            .git(&["ls-tree", "HEAD", "link"])
            .starts_with("120000 ")
    );
}

/// `git rm --cached` of a file that rules ignore is how people stop tracking it.
#[test]
fn an_ignored_file_that_the_agent_stops_tracking_is_removed_from_the_commit_alone() {
    let commit = "git -c user.name=x -c user.email=x@y commit -qam theirs";
    for then in ["", commit] {
        let project = Project::new(&[("a.txt", "a\n"), ("out.log", "old\n"), ("kept.txt", "k\n")]);
        let base = project.head();
        let script = format!(
            "echo '*.log' > .gitignore; git add .gitignore; git rm -q --cached out.log kept.txt; {then}"
        );
        let run = work(&project, &script).expect(0);
        let expected = ["A .gitignore", "D out.log"];
        assert_eq!(delta(&project, &base), expected, "{then}\n{}", run.stdout);
        assert_eq!(project.status(), "", "{then}");
        assert_eq!(project.read("out.log"), "old\n", "{then}");
    }
}

#[test]
fn a_name_that_git_does_not_take_commits_nothing_in_silence() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    let run = work(&project, "mkdir .GIT; echo x > .GIT/config; echo b > a.txt").expect(1);
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(
        message.contains("git does not accept files with these names: .GIT/config"),
        "{message}"
    );
    assert_eq!(project.head(), base);
}

#[test]
fn a_file_that_git_streams_is_committed_beside_small_ones() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.git(&["config", "core.bigFileThreshold", "20m"]);
    let base = project.head();
    let run = work(
        &project,
        "echo b > a.txt; truncate -s 30M big.bin; cp big.bin more.bin; echo c > z.txt",
    );
    let expected = ["A big.bin", "A more.bin", "A z.txt", "M a.txt"];
    assert_exact(&project, run, &base, &expected);
    project.git(&["fsck", "--strict"]);
}

/// A repository that was copied from a machine whose file system takes both names for the same.
#[test]
fn a_file_with_a_name_in_other_letter_case_is_committed_whatever_the_configuration_says() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.git(&["config", "core.ignoreCase", "true"]);
    let base = project.head();
    let run = work(&project, "mv a.txt A.txt; echo b > B.txt");
    assert_exact(&project, run, &base, &["A A.txt", "A B.txt", "D a.txt"]);
}
