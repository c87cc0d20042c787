//! Outputs as gcc 8, ESLint 9, jest 30 and vitest 4 print them, shortened.

use super::diagnostics::expect;

#[test]
fn gcc_and_what_belongs_to_its_messages() {
    expect(
        "In file included from mid.h:1,
                 from main.c:2:
a.h: In function ‘broken’:
a.h:2:27: error: ‘mising’ undeclared (first use in this function)
    2 | int broken(void) { return mising; }
      |                           ^~~~~~
a.h:2:27: note: each undeclared identifier is reported only once for each function it appears in
main.c: In function ‘main’:
main.c:6:10: warning: passing argument 1 of ‘take’ makes integer from pointer without a cast [-Wint-conversion]
    6 |     take(\"text\");
      |          ^~~~~~
/usr/include/x.h:3:14: note: expected ‘int’ but argument is of type ‘char *’
main.c:8:13: error: expected ‘;’ before ‘}’ token
main.c:9:1: error: unused variable ‘z’ [-Werror=unused-variable]
main.c:9:2: error: unused variable 'y' [-Werror,-Wunused-variable]
gone.c:1:10: fatal error: not_there.h: No such file or directory
    1 | #include \"not_there.h\"
      |          ^~~~~~~~~~~~~
compilation terminated.
",
        &[
            "a.h:2:27 Error - gcc | ‘mising’ undeclared (first use in this function)⏎note: a.h:2: each undeclared identifier is reported only once for each function it appears in",
            "main.c:8:13 Error - gcc | expected ‘;’ before ‘}’ token",
            "main.c:9:1 Error -Wunused-variable gcc | unused variable ‘z’",
            "main.c:9:2 Error -Wunused-variable gcc | unused variable 'y'",
            "gone.c:1:10 Error - gcc | not_there.h: No such file or directory",
            "main.c:6:10 Warning -Wint-conversion gcc | passing argument 1 of ‘take’ makes integer from pointer without a cast⏎note: expected ‘int’ but argument is of type ‘char *’",
        ],
    );
}

#[test]
fn a_message_about_a_foreign_header_is_told_where_the_project_reaches_it() {
    expect(
        "t.cpp: In instantiation of ‘void f(T) [with T = int]’:
t.cpp:4:34:   required from here
t.cpp:3:36: error: request for member ‘missing’ in ‘t’, which is of non-class type ‘int’
In file included from /usr/include/c++/8/algorithm:62,
                 from /proj/src/t.cpp:7:
/usr/include/c++/8/bits/stl_algo.h: In instantiation of ‘sort’:
/usr/include/c++/8/bits/stl_algo.h:4834:18:   required from ‘void sort()’
/proj/src/t.cpp:5:30:   required from here
/usr/include/c++/8/bits/stl_algo.h:1969:22: error: no match for ‘operator-’
In file included from lib.c:3:
/usr/include/old.h:9:2: error: #error do not include this
",
        &[
            "t.cpp:3:36 Error - gcc | request for member ‘missing’ in ‘t’, which is of non-class type ‘int’",
            "src/t.cpp:5:30 Error - gcc | no match for ‘operator-’",
            "lib.c:3:- Error - gcc | #error do not include this",
        ],
    );
}

#[test]
fn linkers() {
    expect(
        "/usr/bin/ld: /tmp/ccfgi1mS.o: in function `main':
link.c:(.text+0xa): undefined reference to `nowhere'
/proj/src/other.c:2: undefined reference to `gone'
/usr/bin/ld: b.o:(.bss+0x0): multiple definition of `x'; a.o:(.bss+0x0): first defined here
/usr/bin/ld: cannot find -lnotthere: No such file or directory
ld.lld: error: undefined symbol: nowhere
>>> referenced by link.c:2
>>>               /tmp/link-1.o:(main)
collect2: error: ld returned 1 exit status
",
        &[
            "link.c:-:- Error - gcc | undefined reference to `nowhere'",
            "src/other.c:2:- Error - gcc | undefined reference to `gone'",
            "-:-:- Error - gcc | multiple definition of `x'; a.o:(.bss+0x0): first defined here",
            "-:-:- Error - gcc | cannot find -lnotthere: No such file or directory",
            "link.c:2:- Error - gcc | undefined symbol: nowhere",
        ],
    );
}

/// The diagnostics that every ESLint format gives for the same two files.
const ESLINT: [&str; 4] = [
    "src/a.js:1:17 Error semi eslint | Missing semicolon",
    "src/a.js:2:30 Error no-undef eslint | 'nothing' is not defined",
    "src/b.js:1:17 Error - eslint | Parsing error: Unexpected token (",
    "src/a.js:1:7 Warning no-unused-vars eslint | 'unused' is assigned a value but never used",
];

fn with_full_stops() -> Vec<String> {
    let stop = |line: &&str| {
        if line.ends_with('(') {
            (*line).to_owned()
        } else {
            format!("{line}.")
        }
    };
    ESLINT.iter().map(stop).collect()
}

#[test]
fn eslint_stylish() {
    expect(
        "
/proj/src/a.js
  1:7   warning  'unused' is assigned a value but never used  no-unused-vars
  1:17  error    Missing semicolon                            semi
  2:30  error    'nothing' is not defined                     no-undef

/proj/src/b.js
  1:17  error  Parsing error: Unexpected token (

✖ 4 problems (3 errors, 1 warning)
  1 error and 0 warnings potentially fixable with the `--fix` option.
",
        &ESLINT,
    );
}

#[test]
fn eslint_unix_and_compact() {
    let unix =
        "/proj/src/a.js:1:7: 'unused' is assigned a value but never used. [Warning/no-unused-vars]
/proj/src/a.js:1:17: Missing semicolon. [Error/semi]
/proj/src/a.js:2:30: 'nothing' is not defined. [Error/no-undef]
/proj/src/b.js:1:17: Parsing error: Unexpected token ( [Error]

4 problems
";
    assert_eq!(super::diagnostics::shown(unix), with_full_stops());
    let compact = "/proj/src/a.js: line 1, col 7, Warning - 'unused' is assigned a value but never used. (no-unused-vars)
/proj/src/a.js: line 1, col 17, Error - Missing semicolon. (semi)
/proj/src/a.js: line 2, col 30, Error - 'nothing' is not defined. (no-undef)
/proj/src/b.js: line 1, col 17, Error - Parsing error: Unexpected token (

4 problems
";
    assert_eq!(super::diagnostics::shown(compact), with_full_stops());
}

#[test]
fn eslint_json() {
    let json = r#"> npx eslint -f json
[{"filePath":"/proj/src/a.js","messages":[{"ruleId":"no-unused-vars","severity":1,"message":"'unused' is assigned a value but never used.","line":1,"column":7,"messageId":"unusedVar","endLine":1,"endColumn":13},{"ruleId":"semi","severity":2,"message":"Missing semicolon.","line":1,"column":17,"endLine":2,"endColumn":1,"fix":{"range":[16,16],"text":";"}},{"ruleId":"no-undef","severity":2,"message":"'nothing' is not defined.","line":2,"column":30}],"suppressedMessages":[],"errorCount":2,"source":"const unused = 1\n"},{"filePath":"/proj/src/b.js","messages":[{"ruleId":null,"fatal":true,"severity":2,"message":"Parsing error: Unexpected token (","line":1,"column":17}],"errorCount":1}]
"#;
    assert_eq!(super::diagnostics::shown(json), with_full_stops());
    let ends: Vec<_> = crate::checks::reading::parse_in(json, "/proj")
        .into_iter()
        .map(|it| it.end_line)
        .collect();
    assert_eq!(ends, [Some(2), None, None, Some(1)]);
    let cut = json.trim_end().trim_end_matches(']');
    assert_eq!(super::diagnostics::shown(cut), [""; 0]);
}

#[test]
fn jest_frames_of_the_project_and_files_that_do_not_parse() {
    expect(
        "FAIL t/a.test.js
  ● calc › adds

    expect(received).toBe(expected) // Object.is equality

    Expected: 3
    Received: 2

    > 1 | function helper(v) { expect(v).toBe(3); }
        |                                ^

      at toBe (node_modules/expect/build/index.js:1:1)
      at Object.helper (t/a.test.js:4:5)

FAIL t/syntax.test.js
  ● Test suite failed to run

    Jest encountered an unexpected token

    Details:

    SyntaxError: /proj/t/syntax.test.js: Unexpected token (1:10)

    > 1 | const x = ; test('a',()=>{})
        |           ^

      at constructor (node_modules/@babel/parser/src/parse-error.ts:96:45)

FAIL v/b.test.mjs (5.1 s)
  ● Test suite failed to run

    Must use import to load ES Module: /proj/v/b.test.mjs

      at createRequireEsmError (node_modules/jest-runtime/build/index.js:452:17)

Test Suites: 3 failed, 3 total
",
        &[
            "t/a.test.js:4:5 Error - jest | calc › adds: expect(received).toBe(expected) // Object.is equality⏎Expected: 3⏎Received: 2",
            "t/syntax.test.js:1:10 Error - jest | Test suite failed to run: SyntaxError: /proj/t/syntax.test.js: Unexpected token⏎Jest encountered an unexpected token⏎Details:",
            "v/b.test.mjs:-:- Error - jest | Test suite failed to run: Must use import to load ES Module: /proj/v/b.test.mjs",
        ],
    );
}

#[test]
fn vitest() {
    expect(
        " RUN  v4.1.12 /proj

 ❯ v/a.test.mjs (3 tests | 3 failed) 10ms
     × adds 6ms

⎯⎯⎯⎯⎯⎯ Failed Suites 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  v/b.test.mjs [ v/b.test.mjs ]
Error: Cannot find module './nothere.mjs' imported from /proj/v/b.test.mjs
 ❯ v/b.test.mjs:1:1
      1| import { x } from './nothere.mjs';
       | ^
      2|

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  v/a.test.mjs > calc > adds
AssertionError: expected 2 to be 3 // Object.is equality

\u{1b}[32m- Expected\u{1b}[39m
\u{1b}[31m+ Received\u{1b}[39m

 ❯ node_modules/dep/index.js:1:1
 ❯ helper v/a.test.mjs:2:32
 ❯ v/a.test.mjs:4:24

 Test Files  2 failed (2)
",
        &[
            "v/b.test.mjs:1:1 Error - vitest | v/b.test.mjs: Error: Cannot find module './nothere.mjs' imported from /proj/v/b.test.mjs",
            "v/a.test.mjs:2:32 Error - vitest | v/a.test.mjs > calc > adds: AssertionError: expected 2 to be 3 // Object.is equality⏎- Expected⏎+ Received",
        ],
    );
}
