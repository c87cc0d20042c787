use super::*;
use crate::process::CancelReason;

#[expect(clippy::disallowed_methods, reason = "tests read PATH to find git")]
fn git() -> GitProgram {
    let path = std::env::var_os("PATH").unwrap();
    GitProgram::find("git", &path, Path::new("/nonexistent")).unwrap()
}

/// A git command that runs a script.
fn script<'a>(git: &'a GitProgram, script: &str) -> Call<'a> {
    let alias = format!("alias.look=!{script}");
    git.call(Path::new("/")).args(["-c", &alias, "look"])
}

#[test]
fn a_command_that_writes_without_end_is_stopped() {
    let git = git();
    let flooded = script(&git, "yes").status();
    assert!(
        matches!(flooded, Err(GitError::Flooded { .. })),
        "{flooded:?}"
    );
    let limit = Duration::from_millis(300);
    let late = script(&git, "yes").timeout(limit).stream(&mut |_| {});
    assert!(matches!(late, Err(GitError::TimedOut { .. })), "{late:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_has_limited_memory_unless_it_may_be_large() {
    let git = git();
    // Input comes when the limit is set. The parent of the script is git.
    let asked = || script(&git, "read go; grep data /proc/$PPID/limits").stdin("go\n");
    let limited = asked().line().unwrap();
    assert!(limited.contains(&MEMORY.to_string()), "{limited}");
    let large = asked().of_any_size().line().unwrap();
    assert!(!large.contains(&MEMORY.to_string()), "{large}");
}

#[test]
fn after_a_signal_commands_end_soon_whether_they_write_close_their_output_or_wait() {
    for busy in ["yes", "exec >/dev/null 2>&1; sleep 100", "sleep 100"] {
        let mut git = git();
        let cancel = Cancel::new();
        git.stop = Stop::after(Duration::from_millis(100));
        git.stop.follow(&cancel, 1);
        cancel.trigger(CancelReason::Interrupt);
        let ended = script(&git, busy).stream(&mut |_| {});
        assert!(
            matches!(ended, Err(GitError::Cancelled { .. })),
            "{ended:?}"
        );
        let next = script(&git, "true").status();
        assert!(matches!(next, Err(GitError::Cancelled { .. })), "{next:?}");
        let _unbroken = git.stop.unbroken();
        script(&git, "true").run().unwrap();
    }
}

#[test]
fn a_login_is_told_once_and_to_its_server_and_stands_in_no_environment() {
    let git = git();
    let login = |host: &str| Login {
        server: format!("https://{host}"),
        password: SecretString::from("s3cret-token"),
    };
    let ask = |login: Login, script: &str| {
        let output = self::script(&git, script)
            .login(Some(login))
            .status()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let fill = "printf 'protocol=https\\nhost=example.org\\n\\n' | git credential fill";
    let credentials = ask(login("example.org"), fill);
    let is_whole = credentials.contains("username=x-access-token\n")
        && credentials.contains("password=s3cret-token\n");
    assert!(is_whole, "{credentials}");
    let twice = ask(
        login("example.org"),
        &format!("{fill} >/dev/null; {fill} 2>/dev/null; echo asked"),
    );
    assert_eq!(twice, "asked\n");
    let elsewhere = ask(
        login("example.net"),
        &format!("{fill} 2>/dev/null; echo asked"),
    );
    assert_eq!(elsewhere, "asked\n");
    let seen = ask(
        login("example.org"),
        "env; tr '\\0' '\\n' </proc/self/cmdline; echo seen",
    );
    assert!(seen.contains("seen") && !seen.contains("s3cret"), "{seen}");
}
