//! The projects, each with a fault of another class.

use super::Call::{Check, Delete, Edit, Finish, Lines, List, Move, Plan, Read, Search, Write};
use super::Repair;

pub(super) const REPAIRS: &[Repair] = &[
    // An off-by-one that is found by a search for the function's name.
    Repair {
        language: "python",
        needs: &["python3"],
        model: "openai/m",
        files: &[
            (
                "shop/paging.py",
                "\"\"\"Pages of a list.\"\"\"\n\n\ndef page_count(total, size):\n    return total // size\n\n\ndef page(items, number, size):\n    start = number * size\n    return items[start:start + size]\n",
            ),
            (
                "shop/catalogue.py",
                "from shop.paging import page, page_count\n\n\ndef pages(items, size=10):\n    return [page(items, n, size) for n in range(page_count(len(items), size))]\n",
            ),
            ("shop/__init__.py", ""),
            ("tests/__init__.py", ""),
            (
                "tests/test_catalogue.py",
                "import unittest\nfrom shop.catalogue import pages\n\n\nclass Pages(unittest.TestCase):\n    def test_the_last_page_may_be_short(self):\n        self.assertEqual(pages([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]])\n\n    def test_whole_pages(self):\n        self.assertEqual(pages([1, 2, 3, 4], 2), [[1, 2], [3, 4]])\n\n    def test_nothing(self):\n        self.assertEqual(pages([], 2), [])\n\n\nif __name__ == \"__main__\":\n    unittest.main()\n",
            ),
        ],
        check: "python3 -B -m unittest discover -s tests -t .",
        fails_with: "test_the_last_page_may_be_short",
        responses: &[
            &[Check, List("")],
            &[Search("page_count", None), Read("shop/catalogue.py")],
            &[Lines("shop/paging.py", 4, 5)],
            &[Edit(
                "shop/paging.py",
                "return total // size",
                "return (total + size - 1) // size",
            )],
            &[Check],
            &[Finish("Count the last page when it is short")],
        ],
        told: &[
            (1, "AssertionError: Lists differ"),
            (1, "shop/paging.py"),
            (2, "shop/paging.py:4: def page_count(total, size):"),
            (3, "     5\t    return total // size"),
            (5, "Ran 3 tests"),
        ],
        changed: &["M shop/paging.py"],
        adds: &["    return (total + size - 1) // size"],
    },
    // A module of the project hides one of the language's own: it is deleted, its caller changed.
    Repair {
        language: "python",
        needs: &["python3"],
        model: "gemini/m",
        files: &[
            ("random.py", "def choice(values):\n    return values[0]\n"),
            (
                "draw.py",
                "import random\n\n\ndef draw(values, seed):\n    return random.choice(values)\n",
            ),
            (
                "test_draw.py",
                "import unittest\nimport draw\n\n\nclass Draw(unittest.TestCase):\n    def test_a_seed_decides(self):\n        values = list(range(1000))\n        self.assertEqual(draw.draw(values, 7), draw.draw(values, 7))\n        self.assertNotEqual(draw.draw(values, 7), draw.draw(values, 8))\n",
            ),
        ],
        check: "python3 -B -m unittest test_draw",
        fails_with: "FAILED",
        responses: &[
            &[Check, Search("random", None), List("")],
            &[
                Delete("random.py"),
                Edit(
                    "draw.py",
                    "random.choice(values)",
                    "random.Random(seed).choice(values)",
                ),
            ],
            &[Check],
            &[Finish("Draw with the seed that is given")],
        ],
        told: &[
            (1, "draw.py:1: import random"),
            (1, "random.py"),
            (2, "deleted random.py"),
            (3, "OK\n(code 0)"),
        ],
        changed: &["M draw.py", "D random.py"],
        adds: &["    return random.Random(seed).choice(values)"],
    },
    // A missing check for nothing.
    Repair {
        language: "javascript",
        needs: &["node"],
        model: "openai-responses/m",
        files: &[
            (
                "lib/initials.js",
                "'use strict';\n\nexports.initials = (name) =>\n  name.split(' ').map((part) => part[0].toUpperCase()).join('');\n",
            ),
            (
                "lib/badge.js",
                "'use strict';\nconst { initials } = require('./initials');\n\nexports.badge = (user) => `[${initials(user.name)}]`;\n",
            ),
            (
                "test/badge.test.js",
                "'use strict';\nconst test = require('node:test');\nconst assert = require('node:assert');\nconst { badge } = require('../lib/badge');\n\ntest('two names', () => assert.strictEqual(badge({ name: 'ada byron' }), '[AB]'));\ntest('spaces', () => assert.strictEqual(badge({ name: ' ada  byron ' }), '[AB]'));\ntest('no name', () => assert.strictEqual(badge({}), '[?]'));\n",
            ),
        ],
        check: "node test/badge.test.js",
        fails_with: "Cannot read properties of undefined",
        responses: &[
            &[List("lib"), Read("test/badge.test.js"), Check],
            &[Search("initials", Some("lib"))],
            &[
                Plan(&[(
                    "lib/initials.js: names that are empty or missing",
                    "pending",
                )]),
                Write(
                    "lib/initials.js",
                    "'use strict';\n\nexports.initials = (name) => {\n  const parts = (name ?? '').split(' ').filter((part) => part !== '');\n  return parts.map((part) => part[0].toUpperCase()).join('') || '?';\n};\n",
                ),
                Check,
            ],
            &[Finish("Give a badge to users without a name")],
        ],
        told: &[
            (1, "lib/badge.js\nlib/initials.js"),
            (1, "Cannot read properties of undefined"),
            (2, "lib/badge.js:4: exports.badge"),
            (3, "fail 0"),
        ],
        changed: &["M lib/initials.js"],
        adds: &["  const parts = (name ?? '').split(' ').filter((part) => part !== '');"],
    },
    // A resource that is not where it is looked for.
    Repair {
        language: "shell",
        needs: &["sh", "sed"],
        model: "anthropic/m",
        files: &[
            ("template/welcome.txt", "Welcome, @NAME@.\n"),
            (
                "bin/greet",
                "#!/bin/sh\n# Fills templates/welcome.txt in.\nhere=$(dirname \"$0\")\nsed \"s/@NAME@/$1/\" \"$here/../templates/welcome.txt\"\n",
            ),
            (
                "test.sh",
                "out=$(sh bin/greet Ada 2>&1)\n[ \"$out\" = 'Welcome, Ada.' ] || { echo \"FAIL: $out\"; exit 1; }\nout=$(sh bin/greet 'A/B' 2>&1)\n[ \"$out\" = 'Welcome, A/B.' ] || { echo \"FAIL: $out\"; exit 1; }\necho ok\n",
            ),
        ],
        check: "sh test.sh",
        fails_with: "No such file or directory",
        responses: &[
            &[Check, List("")],
            &[Search("templates?/", None)],
            &[Move("template/welcome.txt", "templates/welcome.txt"), Check],
            &[Read("bin/greet")],
            &[Edit("bin/greet", "s/@NAME@/$1/", "s|@NAME@|$1|"), Check],
            &[Finish("Greet from where the templates are")],
        ],
        told: &[
            (1, "No such file or directory"),
            (1, "template/welcome.txt"),
            (2, "bin/greet:4:"),
            (3, "unknown option to"),
            (5, "ok\n(code 0)"),
        ],
        changed: &[
            "M bin/greet",
            "D template/welcome.txt",
            "A templates/welcome.txt",
        ],
        adds: &["sed \"s|@NAME@|$1|\" \"$here/../templates/welcome.txt\""],
    },
];
