use super::*;
use crate::fence::scan;
use proptest::prelude::*;

/// A ledger and the files changed so far, both driven by text.
#[derive(Default)]
struct World {
    ledger: Ledger,
    changed: BTreeSet<String>,
}

impl World {
    fn say(&mut self, text: &str) -> Vec<Applied> {
        self.say_in(Mode::Normal, text)
    }

    fn say_in(&mut self, mode: Mode, text: &str) -> Vec<Applied> {
        let blocks = scan(text).blocks;
        let blocks = blocks.iter().map(PlanBlock::of);
        blocks
            .map(|block| self.ledger.apply(&block, &self.changed, mode))
            .collect()
    }

    fn change(&mut self, file: &str) {
        self.changed.insert(file.into());
        self.ledger.file_changed(file);
    }

    fn list(&self) -> String {
        checklist(&self.ledger)
    }
}

/// The plan as a checklist, one line per item.
pub(crate) fn checklist(ledger: &Ledger) -> String {
    let line = |item: &Item| {
        let mark = match item.state() {
            ItemState::Pending => ' ',
            ItemState::InProgress => '>',
            ItemState::Done => 'x',
            ItemState::Blocked => '!',
            ItemState::Superseded => '~',
            ItemState::AlreadySatisfied => '=',
        };
        format!("- [{mark}] {}", item.text)
    };
    let lines: Vec<String> = ledger.items.iter().map(line).collect();
    lines.join("\n")
}

fn plan(items: &str) -> World {
    let mut world = World::default();
    world.say(&format!("```SPRAG_PLAN\n{items}\n```"));
    world
}

fn update(lines: &str) -> String {
    format!("```SPRAG_PLAN_UPDATE\n{lines}\n```")
}

#[test]
fn a_plan_registers_its_items() {
    let world = plan("- [ ] src/a.rs, src/b.rs: add the parser\n- [>] write the docs");
    assert_eq!(
        world.list(),
        "- [ ] src/a.rs, src/b.rs: add the parser\n- [>] write the docs"
    );
    let files: Vec<_> = world.ledger.items()[0]
        .files
        .iter()
        .map(|it| &it.path)
        .collect();
    assert_eq!(files, ["src/a.rs", "src/b.rs"]);
    assert_eq!((world.ledger.planned(), world.ledger.updates()), (2, 0));
}

#[test]
fn an_update_appends_and_checks_off() {
    let mut world = plan("- [ ] src/a.rs: add");
    let applied = world.say(&update("- [ ] src/b.rs: test\n- [x] src/a.rs: done"));
    assert_eq!(applied, [Applied::default()]);
    assert_eq!(world.list(), "- [=] src/a.rs: add\n- [ ] src/b.rs: test");
}

#[test]
fn an_update_without_a_plan_registers() {
    let mut world = World::default();
    world.say(&update("- [ ] src/a.rs: add\n- [x] read the docs"));
    assert_eq!(world.list(), "- [x] read the docs\n- [ ] src/a.rs: add");
    assert_eq!(world.ledger.updates(), 1);
}

#[test]
fn every_update_of_a_response_counts() {
    let mut world = plan("- [ ] src/a.rs: add\n- [ ] src/b.rs: add");
    let first = update("- [x] src/a.rs: done");
    let second = update("- [x] src/b.rs: done");
    world.say(&format!("{first}\nand\n{second}"));
    assert_eq!((world.ledger.updates(), world.ledger.remaining()), (2, 0));
}

#[test]
fn an_item_is_done_when_all_of_its_files_were_changed() {
    let mut world = plan("- [ ] src/a.rs, src/b.rs: add the parser");
    world.change("src/a.rs");
    assert_eq!(world.list(), "- [>] src/a.rs, src/b.rs: add the parser");
    world.change("crate/src/b.rs");
    assert_eq!(world.list(), "- [x] src/a.rs, src/b.rs: add the parser");
}

#[test]
fn checked_with_no_change_is_already_satisfied_and_a_later_change_makes_it_done() {
    let mut world = plan("- [ ] src/a.rs, src/b.rs: add\n- [ ] look around");
    world.say(&update("- [x] src/a.rs, src/b.rs: add\n- [x] look around"));
    assert_eq!(
        world.list(),
        "- [=] src/a.rs, src/b.rs: add\n- [x] look around"
    );
    assert!(world.ledger.is_complete());
    world.change("src/b.rs");
    assert_eq!(
        world.list(),
        "- [x] src/a.rs, src/b.rs: add\n- [x] look around"
    );
}

#[test]
fn a_check_is_settled_against_all_that_the_session_changed() {
    let mut world = World::default();
    world.change("src/a.rs");
    world.say("```SPRAG_PLAN\n- [ ] src/a.rs: add\n```");
    assert_eq!(world.list(), "- [ ] src/a.rs: add");
    world.say(&update("- [x] src/a.rs: add"));
    assert_eq!(world.list(), "- [x] src/a.rs: add");
}

#[test]
fn the_files_of_an_item_can_be_checked_one_by_one() {
    let mut world = plan("- [ ] src/a.rs, src/b.rs: add\n- [ ] src/c.rs: add");
    world.say(&update("- [x] src/a.rs: done"));
    assert_eq!(world.ledger.remaining(), 2);
    world.say(&update("- [x] b.rs: done\n- [x] src/c.rs, src/d.rs: done"));
    assert_eq!(
        world.list(),
        "- [=] src/a.rs, src/b.rs: add\n- [=] src/c.rs: add"
    );
}

#[test]
fn of_several_items_with_one_file_a_line_retires_the_one_it_means() {
    let items = "- [ ] src/a.rs: add the parser\n- [ ] src/a.rs: add the printer";
    let mut world = plan(items);
    world.say(&update("- [x] src/a.rs: the printer is done"));
    assert_eq!(
        world.list(),
        "- [ ] src/a.rs: add the parser\n- [=] src/a.rs: add the printer"
    );
    let mut world = plan(items);
    world.say(&update("- [x] #1"));
    assert_eq!(
        world.list(),
        "- [=] src/a.rs: add the parser\n- [ ] src/a.rs: add the printer"
    );
}

#[test]
fn a_second_plan_replaces_what_is_left_and_keeps_what_is_finished() {
    let mut world = plan("- [ ] src/a.rs: add\n- [ ] src/b.rs: add\n- [ ] src/c.rs: add");
    world.change("src/a.rs");
    let applied = world
        .say("```SPRAG_PLAN\n- [ ] src/b.rs: add\n- [ ] src/d.rs: add\n- [ ] src/a.rs: add\n```");
    assert_eq!(applied, [Applied::default()]);
    assert_eq!(
        world.list(),
        "- [x] src/a.rs: add\n- [ ] src/b.rs: add\n- [~] src/c.rs: add\n- [ ] src/d.rs: add"
    );
    assert_eq!((world.ledger.updates(), world.ledger.planned()), (1, 3));
}

#[test]
fn an_empty_plan_does_not_wipe_the_ledger() {
    let mut world = plan("- [ ] src/a.rs: add");
    assert_eq!(
        world.say("```SPRAG_PLAN\nnothing yet\n```"),
        [Applied::default()]
    );
    assert_eq!((world.ledger.remaining(), world.ledger.updates()), (1, 0));
}

#[test]
fn repair_mode_retires_but_begins_nothing_new() {
    for kind in ["SPRAG_PLAN", "SPRAG_PLAN_UPDATE"] {
        let mut world = plan("- [ ] src/a.rs: add\n- [ ] src/b.rs: add");
        let text = format!("```{kind}\n- [ ] src/c.rs: more\n- [x] src/a.rs: done\n```");
        let applied = world.say_in(Mode::Repair, &text);
        assert_eq!(
            applied,
            [Applied {
                refused: 1,
                ..Applied::default()
            }]
        );
        assert_eq!(world.list(), "- [=] src/a.rs: add\n- [ ] src/b.rs: add");
        world.say(&update("- [!] src/b.rs: add"));
        let applied = world.say_in(Mode::Repair, &update("- [ ] src/b.rs: add"));
        assert_eq!((applied[0].refused, world.ledger.blocked()), (1, 1));
    }
}

#[test]
fn the_last_item_is_not_restated() {
    let mut world = plan("- [ ] src/a.rs, src/b.rs: add the parser");
    let applied = world.say(&update(
        "- [ ] src/a.rs: still to add\n- [ ] src/c.rs: other work",
    ));
    assert_eq!(
        applied,
        [Applied {
            refused: 1,
            ..Applied::default()
        }]
    );
    let mut world = plan("- [ ] write all of the docs");
    let applied = world.say(&update("- [ ] write all the docs"));
    assert_eq!(applied[0].refused, 1);
}

#[test]
fn a_check_comes_before_new_items_wherever_it_stands() {
    let mut world = plan("- [ ] src/a.rs: add\n- [ ] src/b.rs: add");
    let applied = world.say(&update("- [ ] src/b.rs: add more\n- [x] src/a.rs: add"));
    assert_eq!(
        applied,
        [Applied {
            refused: 1,
            ..Applied::default()
        }],
        "with the first item retired, the second is the last and cannot be restated"
    );
}

#[test]
fn a_new_item_for_the_same_files_supersedes_and_an_equal_one_is_dropped() {
    let mut world = plan("- [ ] src/a.rs, src/x.rs: add\n- [ ] src/b.rs: add");
    world.change("src/a.rs");
    let applied = world.say(&update(
        "- [ ] src/a.rs, src/x.rs: add it in another way\n- [ ] src/b.rs: add",
    ));
    assert_eq!(applied, [Applied::default()]);
    world.change("src/x.rs");
    assert_eq!(
        world.list(),
        "- [~] src/a.rs, src/x.rs: add\n- [ ] src/b.rs: add\n\
         - [x] src/a.rs, src/x.rs: add it in another way"
    );
}

#[test]
fn items_can_be_begun_blocked_taken_up_again_and_dropped() {
    let mut world = plan("- [ ] src/a.rs: add\n- [ ] src/b.rs: add\n- [ ] talk");
    world.say(&update(
        "- [>] src/b.rs: add\n- [!] src/a.rs: add\n- [~] talk",
    ));
    assert_eq!(
        world.list(),
        "- [!] src/a.rs: add\n- [>] src/b.rs: add\n- [~] talk"
    );
    assert_eq!(world.ledger.next(), world.ledger.items().get(1));
    world.say(&update("- [ ] src/a.rs: add"));
    assert_eq!(world.ledger.items()[0].state(), ItemState::Pending);
    world.change("src/a.rs");
    world.say(&update("- [!] src/a.rs: add"));
    assert_eq!(world.ledger.items()[0].state(), ItemState::Blocked);
    world.change("src/a.rs");
    assert_eq!(world.ledger.items()[0].state(), ItemState::Done);
}

#[test]
fn a_file_that_cannot_be_edited_blocks_its_open_items() {
    let mut world = plan("- [ ] src/a.rs: add\n- [x] src/a.rs: look\n- [ ] src/b.rs: add");
    world.ledger.file_blocked("src/a.rs");
    assert_eq!(
        world.list(),
        "- [!] src/a.rs: add\n- [=] src/a.rs: look\n- [ ] src/b.rs: add"
    );
    assert_eq!(world.ledger.blocked(), 1);
}

#[test]
fn checks_of_nothing_known_are_ignored() {
    let mut world = plan("- [ ] src/a.rs: add");
    let applied = world.say(&update(
        "- [x] everything is fine now\n- [~] src/q.rs: x\n- [ ] #9",
    ));
    assert_eq!(
        applied,
        [Applied {
            ignored: 3,
            ..Applied::default()
        }]
    );
    world.say(&update("- [x] src/new.rs: wrote it too"));
    assert!(world.ledger.items()[1].state().is_finished());
}

#[test]
fn a_restated_finished_item_stays_finished() {
    let mut world = plan("- [ ] src/a.rs: add\n- [ ] src/b.rs: add");
    world.change("src/a.rs");
    world.say(&update("- [ ] src/a.rs: add\n- [x] src/a.rs: once more"));
    assert_eq!(world.list(), "- [x] src/a.rs: add\n- [ ] src/b.rs: add");
}

#[test]
fn names_with_dots_are_files_and_need_a_change_or_a_check() {
    let mut world = plan("- [ ] app/[...slug].tsx: catch all");
    assert_eq!(world.ledger.remaining(), 1);
    world.change("app/[...slug].tsx");
    assert_eq!(world.list(), "- [x] app/[...slug].tsx: catch all");
}

#[test]
fn the_ledger_is_bounded() {
    let lines: Vec<String> = (0..MAX_ITEMS + 50)
        .map(|n| format!("- [ ] src/f{n}.rs: add"))
        .collect();
    let mut world = plan(&lines.join("\n"));
    assert_eq!(world.ledger.planned(), MAX_ITEMS);
    let applied = world.say(&update(
        "- [ ] src/more.rs: add\n- [ ] src/f0.rs: add it otherwise",
    ));
    assert_eq!(applied[0].ignored, 2);
    assert_eq!(world.ledger.remaining(), MAX_ITEMS);
}

#[test]
fn the_todo_list_says_how_far_the_plan_is() {
    let mut world = plan("- [ ] a\n- [>] b\n- [x] c\n- [=] d\n- [!] e\n- [~] f");
    world.change("nothing.rs");
    let todo = world.ledger.todo();
    let shown: Vec<_> = todo
        .iter()
        .map(|it| (it.text.as_str(), it.status))
        .collect();
    assert_eq!(
        shown,
        [
            ("a", TodoStatus::Pending),
            ("b", TodoStatus::InProgress),
            ("c", TodoStatus::Completed),
            ("d (already satisfied)", TodoStatus::Completed),
            ("e (blocked)", TodoStatus::Pending),
        ]
    );
}

fn lines() -> impl Strategy<Value = String> {
    let boxed = prop::sample::select(vec![" ", ">", "x", "!", "~", "="]);
    let text = prop::sample::select(vec![
        "src/a.rs: add",
        "src/a.rs: add more",
        "src/a.rs, src/b.rs: both",
        "b.rs: end",
        "talk",
        "talk more",
        "#1",
        "#2: other",
    ]);
    let line = (boxed, text).prop_map(|(state, text)| format!("- [{state}] {text}"));
    prop::collection::vec(line, 0..5).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_history_breaks_the_ledger(
        history in prop::collection::vec((0..4u8, lines(), any::<bool>()), 0..12),
    ) {
        let mut world = World::default();
        for (what, lines, repair) in history {
            let before = world.ledger.clone();
            let mode = if repair { Mode::Repair } else { Mode::Normal };
            match what {
                0 => drop(world.say_in(mode, &format!("```SPRAG_PLAN\n{lines}\n```"))),
                1 => drop(world.say_in(mode, &update(&lines))),
                2 => world.change("src/a.rs"),
                _ => world.change("src/b.rs"),
            }
            let after = &world.ledger;
            prop_assert!(after.items().len() >= before.items().len(), "no item is ever lost");
            prop_assert!(after.updates() >= before.updates());
            let counted = after.finished() + after.remaining() + after.blocked();
            prop_assert_eq!(counted, after.planned());
            prop_assert_eq!(after.next().is_some(), after.remaining() > 0);
            if mode == Mode::Repair && what < 2 {
                let new = &after.items()[before.items().len()..];
                prop_assert!(new.iter().all(|item| !item.state().is_open()), "new work in repair");
            }
        }
    }

    #[test]
    fn whether_an_edit_or_its_check_comes_first_makes_no_difference(
        checked in prop::sample::subsequence(vec![0usize, 1, 2], 0..=3),
        changed in prop::sample::subsequence(vec!["src/a.rs", "src/b.rs", "src/c.rs"], 0..=3),
    ) {
        let items = ["src/a.rs: add", "src/b.rs, src/c.rs: add", "look around"];
        let planned = items.map(|item| format!("- [ ] {item}")).join("\n");
        let checks: Vec<String> =
            checked.iter().map(|index| format!("- [x] {}", items[*index])).collect();
        let checks = update(&checks.join("\n"));
        let mut check_first = plan(&planned);
        let mut edit_first = plan(&planned);
        check_first.say(&checks);
        changed.iter().for_each(|file| check_first.change(file));
        changed.iter().for_each(|file| edit_first.change(file));
        edit_first.say(&checks);
        prop_assert_eq!(check_first.list(), edit_first.list());
    }
}
