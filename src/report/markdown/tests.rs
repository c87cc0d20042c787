mod foreign_text;
mod github;

use super::escape::{fence, quotation};
use super::*;
use crate::report::samples;
use crate::secrets::redact::{MASK, Redactor};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

fn report(summary: &RunSummary) -> String {
    step_summary(summary, STEP_SUMMARY_BYTES)
}

#[test]
fn success() {
    insta::assert_snapshot!(report(&samples::success()), @r"
    ## ✅ Sprag: success, 2 of 2 tasks done

    **The checks passed** (`success` · `verified`)

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 3m 27s · 73.6k in (36.0k cached) / 8.6k out tokens, \$0.24 · 1 retry · 1 nudge

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ✅&nbsp;done `verified` | 2, 1&nbsp;nudge | `9b1e44c0aa27` | 2m&nbsp;37s | 61.6k, \$0.18 |
    | `t2` Quote fields | ✅&nbsp;done `verified` | 1 | `c0ffee123456` | 49s | 20.5k, \$0.06 |

    <details>
    <summary><b>t1</b> Serve /report.csv: checks passed, committed 9b1e44c0aa27</summary>

    **Turns**

    - Turn 1 (implement): planned, changed nothing, 41s: “I'll implement the route next” · “1\. Plan the columns”
    - Turn 2 (nudge): changed files, 41s
    - Turn 3 (retry): changed files, 41s

    **Attempts**

    - Attempt 1: src/report.rs → failed tests
      - assertion \`left == right\` failed: header differs
    - Attempt 2: src/report.rs, src/csv.rs → passed

    Changed: `src/report.rs`, `src/csv.rs`

    </details>

    <details>
    <summary><b>t2</b> Quote fields: checks passed, committed c0ffee123456</summary>

    **Turns**

    - Turn 1 (implement): changed files, 41s

    Changed: `src/csv.rs`

    </details>
    ");
}

#[test]
fn partial() {
    insta::assert_snapshot!(report(&samples::partial()), @r"
    ## ❌ Sprag: partly done, 1 of 3 tasks done, t2 failed

    **`t2`: the checks still fail and no retry is left** (`partial` · `verification_failed`)

    - `src/report.rs:41`: assertion \`left == right\` failed: header differs

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 2m 29s · 55.2k in (27.0k cached) / 6.4k out tokens, \$0.18 · 1 retry

    **Kept**

    - 1 commit on feature/csv
    - The work of t2 as a patch: /runs/01H-run/patches/t2.patch
    - The changes of t2 are still in the work tree, not committed

    **What to do next**

    - Look at the failing check: its log is in the run directory
    - Continue from here: `sprag run --resume 01H-run`
    - Apply the unfinished work to a clean checkout: `git apply /runs/01H-run/patches/t2.patch`
    - Discard the unfinished work here; the patch keeps it: `git apply -R /runs/01H-run/patches/t2.patch`

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ✅&nbsp;done `verified` | 1 | `9b1e44c0aa27` | 49s | 20.5k, \$0.06 |
    | `t2` Quote fields | ❌&nbsp;failed `verification_failed` | 2 | – | 1m&nbsp;39s | 41.1k, \$0.12 |
    | `t3` Document the route | ⏸️&nbsp;pending | – | – | – | – |

    ### `t2` Quote fields: failed (`verification_failed`)

    The checks still fail and no retry is left

    **Check `test`** in attempt 2: exit code 101, 2 failed, 12 passed, 8.3s · log `verify/01-test.log`

    ```text
    running 14 tests
    test csv::header ... FAILED

    ---- csv::header ----
    assertion `left == right` failed: header differs
    ```

    **Turns**

    - Turn 1 (implement): changed files, 41s
    - Turn 2 (retry): changed files, 41s

    **Attempts**

    - Attempt 1: src/csv.rs → failed tests
      - assertion \`left == right\` failed: header differs
    - Attempt 2: src/csv.rs → failed tests
      - assertion \`left == right\` failed: header differs
      - test csv::quote failed

    Changed: `src/csv.rs`  
    Patch of the unfinished work: `patches/t2.patch`

    <details>
    <summary><b>t1</b> Serve /report.csv: checks passed, committed 9b1e44c0aa27</summary>

    **Turns**

    - Turn 1 (implement): changed files, 41s

    Changed: `src/report.rs`

    </details>

    ### Warnings

    - files that the checks left behind: target/out.csv
    ");
}

#[test]
fn blocked() {
    insta::assert_snapshot!(report(&samples::blocked()), @r"
    ## ✋ Sprag: blocked, 0 of 1 task done

    **`t1`: the agent reported: the schema of the reports table is not in the repository** (`blocked` · `failed_report`)

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 41s · 18.4k in (9.0k cached) / 2.1k out tokens, \$0.06

    **What to do next**

    - Do what the report asks for, or change the task, then run it again
    - Continue from here: `sprag run --resume 01H-run`

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ✋&nbsp;blocked `failed_report` | 1 | – | 41s | 20.5k, \$0.06 |

    ### `t1` Serve /report.csv: blocked (`failed_report`)

    **The agent reports**

    > the schema of the reports table is not in the repository  

    **Requirements**

    > \- Serve every report as CSV  
    > \- Keep the order of columns  

    **Problems**

    > The table \`reports\` is created by another service.  

    **Possible solutions**

    > 1\. Add the schema under db/  
    > 2\. Name the columns in the plan  

    **Turns**

    - Turn 1 (implement): FAILED report, 41s
    ");
}

#[test]
fn planning_only() {
    insta::assert_snapshot!(report(&samples::planning_only()), @r"
    ## ❌ Sprag: failed, 0 of 1 task done

    **`t1`: the agent planned and never changed a file** (`failed` · `planning_only`)

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 2m 53s · 73.6k in (36.0k cached) / 8.6k out tokens, \$0.24 · 3 nudges

    **What to do next**

    - Say in the task which files to change and how, or try another model; if nothing needs to change, use --if-no-changes ok
    - Continue from here: `sprag run --resume 01H-run`

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ❌&nbsp;failed `planning_only` | 1, 3&nbsp;nudges | – | 2m&nbsp;53s | 82.2k, \$0.24 |

    ### `t1` Serve /report.csv: failed (`planning_only`)

    The agent planned and never changed a file

    **Turns**

    - Turn 1 (implement): planned, changed nothing, 41s: “I'll implement the route next” · “1\. Plan the columns”
    - Turn 2 (nudge): planned, changed nothing, 41s: “Proceeding with the route”
    - Turn 3 (nudge): planned, changed nothing, 41s: “Proceeding with the route”
    - Turn 4 (nudge): planned, changed nothing, 41s: “Proceeding with the route”
    ");
}

#[test]
fn no_progress() {
    insta::assert_snapshot!(report(&samples::no_progress()), @r"
    ## ❌ Sprag: failed, 0 of 1 task done

    **`t1`: No progress detected - agent made no file changes** (`failed` · `no_progress`)

    - `src/report.rs:41`: assertion \`left == right\` failed: header differs

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 1m 31s · 36.8k in (18.0k cached) / 4.3k out tokens, \$0.12 · 1 retry

    **Kept**

    - The work of t1 as a patch: /runs/01H-run/patches/t1.patch
    - The changes of t1 are still in the work tree, not committed

    **What to do next**

    - Say in the task which files to change and how, or try another model
    - Continue from here: `sprag run --resume 01H-run`
    - Apply the unfinished work to a clean checkout: `git apply /runs/01H-run/patches/t1.patch`
    - Discard the unfinished work here; the patch keeps it: `git apply -R /runs/01H-run/patches/t1.patch`

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ❌&nbsp;failed `no_progress` | 2 | – | 1m&nbsp;31s | 41.1k, \$0.12 |

    ### `t1` Serve /report.csv: failed (`no_progress`)

    No progress detected - agent made no file changes

    **Check `test`** in attempt 1: exit code 101, 1 failed, 12 passed, 8.3s · log `verify/01-test.log`

    ```text
    running 14 tests
    test csv::header ... FAILED

    ---- csv::header ----
    assertion `left == right` failed: header differs
    ```

    **Turns**

    - Turn 1 (implement): changed files, 41s
    - Turn 2 (retry): said it is done, changed nothing, 41s: “All tests pass now”

    **Attempts**

    - Attempt 1: src/report.rs → failed tests
      - assertion \`left == right\` failed: header differs

    Changed: `src/report.rs`  
    Patch of the unfinished work: `patches/t1.patch`
    ");
}

#[test]
fn cancelled() {
    insta::assert_snapshot!(report(&samples::cancelled()), @r"
    ## 🛑 Sprag: cancelled, 0 of 2 tasks done

    **`t1`: cancelled by SIGTERM** (`cancelled` · `cancelled`)

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 41s · 18.4k in (9.0k cached) / 2.1k out tokens, \$0.06

    **Kept**

    - The work of t1 as a patch: /runs/01H-run/patches/t1.patch
    - The changes of t1 are still in the work tree, not committed

    **What to do next**

    - Continue from here: `sprag run --resume 01H-run`
    - Apply the unfinished work to a clean checkout: `git apply /runs/01H-run/patches/t1.patch`
    - Discard the unfinished work here; the patch keeps it: `git apply -R /runs/01H-run/patches/t1.patch`

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ⏸️&nbsp;pending `cancelled` | 1 | – | 41s | 20.5k, \$0.06 |
    | `t2` Quote fields | ⏸️&nbsp;pending | – | – | – | – |

    ### `t1` Serve /report.csv: pending (`cancelled`)

    Cancelled by SIGTERM

    **Turns**

    - Turn 1 (implement): changed files, 41s

    **Attempts**

    - Attempt 1: src/report.rs → passed

    Changed: `src/report.rs`  
    Patch of the unfinished work: `patches/t1.patch`
    ");
}

#[test]
fn budget() {
    insta::assert_snapshot!(report(&samples::budget()), @r"
    ## ⏱️ Sprag: budget used up, 1 of 2 tasks done

    **`t2`: the token limit is reached: 41100 of 40000** (`budget` · `budget`)

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 1m 31s · 36.8k in (18.0k cached) / 4.3k out tokens, \$0.12

    **Kept**

    - 1 commit on feature/csv

    **What to do next**

    - Raise --max-tokens or --max-cost-usd
    - Continue from here: `sprag run --resume 01H-run`

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ✅&nbsp;done `verified` | 1 | `9b1e44c0aa27` | 49s | 20.5k, \$0.06 |
    | `t2` Quote fields | ⏸️&nbsp;pending `budget` | 1 | – | 41s | 20.5k, \$0.06 |

    ### `t2` Quote fields: pending (`budget`)

    The token limit is reached: 41100 of 40000

    **Turns**

    - Turn 1 (implement): said nothing, changed nothing, 41s

    <details>
    <summary><b>t1</b> Serve /report.csv: checks passed, committed 9b1e44c0aa27</summary>

    **Turns**

    - Turn 1 (implement): changed files, 41s

    Changed: `src/report.rs`

    </details>
    ");
}

#[test]
fn unverified() {
    insta::assert_snapshot!(report(&samples::unverified()), @r"
    ## ⚪ Sprag: unverified, 1 committed but not verified

    **No check confirms it** (`unverified` · `unverified`)

    Plan CSV export · branch `feature/csv` · head `9b1e44c0aa27` · agent codex · 41s · 18.4k in (9.0k cached) / 2.1k out tokens, \$0.06

    **What to do next**

    - Add a check to .sprag/config.yaml, so that work is verified: `verify: [{ name: test, run: <command>, kind: test }]`
    - Or name one for a single run, with --verify 'COMMAND'

    | Task | Status | Attempts | Commit | Time | Tokens, cost |
    |---|---|---:|---|---:|---:|
    | `t1` Serve /report.csv | ⚪&nbsp;not&nbsp;verified `unverified` | 1 | `9b1e44c0aa27` | 41s | 20.5k, \$0.06 |

    <details>
    <summary><b>t1</b> Serve /report.csv: committed as 9b1e44c0aa27, and no check confirms it</summary>

    **Turns**

    - Turn 1 (implement): changed files, 41s

    Changed: `src/report.rs`

    </details>
    ");
}

#[test]
fn foreign_text_shows_as_what_it_says() {
    let table = [
        ("ask @org/team", "ask @&#8203;org/team"),
        (
            "fixes #1, GH-12, o/r#3",
            "fixes #&#8203;1, GH-&#8203;12, o/r#&#8203;3",
        ),
        ("/merge", "&#47;merge"),
        (
            "![x](https://e.invalid/i.png)",
            "!\\[x\\](https:&#8203;//e.invalid/i.png)",
        ),
        (
            "<img src=x> </details> &lt;",
            "&lt;img src=x&gt; &lt;/details&gt; &amp;lt;",
        ),
        (
            "a | b\nc `d` $x$ _e_ ~f~",
            "a \\| b c \\`d\\` \\$x\\$ \\_e\\_ \\~f\\~",
        ),
        ("# head", "\\# head"),
        ("1. one", "1\\. one"),
        ("www.e.invalid", "www&#8203;.e.invalid"),
        ("a\u{202e}b\u{200b}c\u{e0041}", "abc"),
    ];
    for (text, expected) in table {
        assert_eq!(inline(text, 200), expected);
    }
    assert_eq!(code("a|b`c", 20), "``a\\|b`c``");
    assert_eq!(code("`", 20), "`` ` ``");
}

#[test]
fn a_fence_is_longer_than_any_in_it_and_holds_no_command() {
    let text = "````\n/merge now\n/usr/bin/x\n::error::x\n</details>";
    assert_eq!(
        fence(text, 1_000),
        "`````text\n````\n\u{200b}/merge now\n/usr/bin/x\n: :error::x\n</details>\n`````"
    );
    let long: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    let cut = fence(&long, 300);
    assert!(
        cut.len() < 400 && cut.contains("not shown") && cut.contains("\nline 500\n"),
        "{cut}"
    );
}

#[test]
fn a_quotation_cannot_be_left() {
    assert_eq!(
        quotation("a\n\n</details>\r```", 100),
        "> a  \n>\n> &lt;/details&gt;  \n> \\`\\`\\`  "
    );
}

#[test]
fn seventy_kilobytes_of_emoji_fit_a_check_run() {
    let mut summary = samples::blocked();
    let emoji = format!("{}\n", "🦀👩‍👩‍👧".repeat(30)).repeat(120);
    assert!(emoji.len() > 70_000);
    summary.tasks[0].message.clone_from(&emoji);
    summary.tasks[0].title.clone_from(&emoji);
    if let Some(failed) = &mut summary.tasks[0].failed_report {
        failed.problems = Some(emoji.clone());
        failed.requirements = Some(emoji.repeat(9));
    }
    summary.tasks = vec![summary.tasks[0].clone(); 4];
    let whole = report(&summary);
    let cut = step_summary(&summary, CHECK_RUN_BYTES);
    assert!(cut.len() <= CHECK_RUN_BYTES && cut.len() < whole.len() && fit::is_whole(&cut));
}

#[test]
fn a_report_that_cannot_fit_is_cut_whole_with_a_notice() {
    let mut summary = samples::partial();
    let task = summary.tasks[1].clone();
    summary.tasks = (0..400)
        .map(|n| TaskSummary {
            id: format!("t{n}"),
            ..task.clone()
        })
        .collect();
    let cut = step_summary(&summary, 8_000);
    assert!(cut.len() <= 8_000 && fit::is_whole(&cut), "{cut}");
    assert!(cut.ends_with("(`sprag report`).*\n"), "{cut}");
}
