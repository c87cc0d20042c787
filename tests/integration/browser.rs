//! `report.html` in a real browser: Chromium without a window, which `scripts/test` installs.

use crate::support::npm::not_tested;
use crate::support::project::Project;
use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const WIDTHS: [u64; 3] = [360, 768, 1280];

/// Lays the report out at each width with everything in it unfolded, and writes what it measured as the page.
const MEASURE: &str = "<!doctype html><meta charset=utf-8><body><script>
const widths = WIDTHS, found = [];
const measure = (width) => new Promise((done) => {
  const frame = document.createElement('iframe');
  frame.style.cssText = `border:0;height:900px;width:${width}px`;
  frame.onload = () => {
    const page = frame.contentDocument, root = page.documentElement;
    page.querySelectorAll('details').forEach((it) => { it.open = true; });
    const style = frame.contentWindow.getComputedStyle(page.body);
    found.push({
      width, seen: root.clientWidth, needed: root.scrollWidth,
      wide: [...page.querySelectorAll('body *')].filter((it) => it.getBoundingClientRect().right > width + 1
        && !it.closest('table, pre')).map((it) => it.outerHTML.slice(0, 200)),
      broken: [...page.querySelectorAll('.tasks th')].filter((it) => {
        const range = page.createRange();
        range.selectNodeContents(it);
        return new Set([...range.getClientRects()].map((line) => line.top)).size > 1;
      }).map((it) => it.innerText),
      requests: frame.contentWindow.performance.getEntriesByType('resource').map((it) => it.name),
      scripts: page.scripts.length, back: style.backgroundColor, text: style.color,
      words: page.body.innerText,
    });
    done();
  };
  frame.src = 'report.html';
  document.body.append(frame);
});
(async () => {
  for (const width of widths) await measure(width);
  const json = JSON.stringify(found), bytes = new TextEncoder().encode(json);
  document.body.textContent = 'MEASURED ' + Array.from(bytes, (it) => it.toString(16).padStart(2, '0')).join('') + ' END';
})();
</script>";

#[test]
fn the_report_fits_every_width_in_both_themes_and_asks_for_nothing() {
    let Some(chromium) = chromium() else {
        return not_tested("the report in a browser", "chromium is not on PATH");
    };
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(place.path().join("report.html"), report_of_a_failed_run()).unwrap();
    let measure = MEASURE.replace("WIDTHS", &format!("{WIDTHS:?}"));
    fs::write(place.path().join("measure.html"), measure).unwrap();
    let [dark, light] = ["0", "1"].map(|scheme| measured(&chromium, place.path(), scheme));
    for (pages, scheme) in [(&dark, "dark"), (&light, "light")] {
        assert_eq!(pages.len(), WIDTHS.len());
        for page in pages {
            let at = format!("{scheme}: {page:#}");
            assert!(page["needed"].as_u64() <= page["seen"].as_u64(), "{at}");
            assert_eq!(page["wide"].as_array().unwrap().len(), 0, "{at}");
            assert_eq!(page["broken"].as_array().unwrap().len(), 0, "{at}");
            assert_eq!(page["requests"].as_array().unwrap().len(), 0, "{at}");
            assert_eq!(page["scripts"], 0, "{at}");
            let words = page["words"].as_str().unwrap();
            let at = |what: &str| {
                words
                    .find(what)
                    .unwrap_or_else(|| panic!("{what}: {words}"))
            };
            assert!(at("What failed") < at("What changed") && at("What changed") < at("Tasks"));
            assert!(words.contains("expected fixed, got banana"), "{words}");
        }
    }
    assert_ne!(dark[0]["back"], light[0]["back"]);
    assert_ne!(dark[0]["text"], light[0]["text"]);
}

/// A run of two tasks, one committed and one failed, with lines that are wider than any window.
fn report_of_a_failed_run() -> String {
    let project = Project::new(&[("a.txt", "broken\n"), ("b.txt", "b\n")]);
    let long = "w".repeat(3_000);
    let check = project.check(&format!(
        "echo {long}; ! grep -qx banana a.txt || {{ echo \"FAIL a.txt: expected fixed, got $(cat a.txt)\"; exit 1; }}"
    ));
    let check = serde_json::to_string(&check).unwrap();
    project.write(
        "plan.yaml",
        &format!(
            "title: Example\nverify:\n  - {{ name: test, run: {check}, kind: test }}\ntasks:\n  - id: one\n    title: Change b.txt {long}\n  - id: two\n    title: Fix a.txt\n"
        ),
    );
    project.commit_all("plan");
    let agent = project.agent(&format!(
        "if [ $SPRAG_TASK_ID = one ]; then echo {long} > b.txt; echo done > one; else echo banana > a.txt; fi; echo Done."
    ));
    let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
    fs::read_to_string(run.dir.unwrap().join("report.html")).unwrap()
}

fn measured(chromium: &Path, place: &Path, scheme: &str) -> Vec<Value> {
    let profile = place.join(format!("profile-{scheme}"));
    let mut command = std::process::Command::new(chromium);
    command
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", place)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--allow-file-access-from-files",
            "--virtual-time-budget=60000",
        ])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--window-size=1400,1000", "--dump-dom"])
        .arg(format!("file://{}", place.join("measure.html").display()));
    let output = command.output().unwrap();
    let page = String::from_utf8_lossy(&output.stdout);
    let hex = page
        .split_once("MEASURED ")
        .and_then(|(_, rest)| rest.split_once(" END"))
        .unwrap_or_else(|| panic!("{page}\n{}", String::from_utf8_lossy(&output.stderr)))
        .0;
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    serde_json::from_slice(&bytes).unwrap()
}

fn chromium() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|program| program.is_file())
}
