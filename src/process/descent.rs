//! Finds the descendants of processes.

use super::host::Proc;
use std::collections::HashSet;

/// The seeds and all of their descendants, but never `own`. `is_marked` is expensive, so it is called
/// only for processes that are not known as descendants already.
pub(super) fn claim(
    procs: &[Proc],
    own: i32,
    is_seed: impl Fn(&Proc) -> bool,
    is_marked: impl Fn(&Proc) -> bool,
) -> Vec<Proc> {
    let pids = |wanted: &dyn Fn(&Proc) -> bool| -> HashSet<i32> {
        let others = procs.iter().filter(|proc| proc.pid != own && wanted(proc));
        others.map(|proc| proc.pid).collect()
    };
    let mut ours = pids(&is_seed);
    add_descendants(procs, own, &mut ours);
    ours.extend(pids(&|proc| !ours.contains(&proc.pid) && is_marked(proc)));
    add_descendants(procs, own, &mut ours);
    let ours = procs.iter().filter(|proc| ours.contains(&proc.pid));
    ours.copied().collect()
}

fn add_descendants(procs: &[Proc], own: i32, ours: &mut HashSet<i32>) {
    loop {
        let before = ours.len();
        for proc in procs.iter().filter(|proc| proc.pid != own) {
            if ours.contains(&proc.parent) {
                ours.insert(proc.pid);
            }
        }
        if ours.len() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::State;
    use super::*;

    fn proc(pid: i32, parent: i32) -> Proc {
        Proc {
            pid,
            parent,
            group: pid,
            start: 0,
            state: State::Running,
        }
    }

    fn pids(procs: &[Proc]) -> Vec<i32> {
        procs.iter().map(|proc| proc.pid).collect()
    }

    #[test]
    fn descendants_of_seeds_and_of_marked_processes_are_claimed_and_nothing_else() {
        // 10 is this process, 20 its child, 60 a daemon that init adopted.
        let procs = [
            proc(1, 0),
            proc(40, 30),
            proc(30, 20),
            proc(20, 10),
            proc(10, 1),
            proc(50, 10),
            proc(61, 60),
            proc(60, 1),
            proc(70, 1),
        ];
        let claimed = claim(&procs, 10, |p| p.pid == 20, |p| p.pid == 60);
        assert_eq!(pids(&claimed), [40, 30, 20, 61, 60]);
    }

    #[test]
    fn this_process_is_never_claimed_even_if_it_looks_like_a_member() {
        let procs = [proc(10, 20), proc(20, 1), proc(11, 10)];
        let claimed = claim(&procs, 10, |_| false, |_| true);
        assert_eq!(pids(&claimed), [20, 11]);
        let claimed = claim(&procs, 10, |p| p.pid == 20, |_| false);
        assert_eq!(pids(&claimed), [20]);
    }

    #[test]
    fn a_descendant_is_not_asked_for_its_mark() {
        let procs = [proc(20, 10), proc(21, 20), proc(30, 1)];
        let asked = std::cell::RefCell::new(Vec::new());
        let claimed = claim(
            &procs,
            10,
            |p| p.pid == 20,
            |p| {
                asked.borrow_mut().push(p.pid);
                false
            },
        );
        assert_eq!(
            (pids(&claimed), asked.into_inner()),
            (vec![20, 21], vec![30])
        );
    }
}
