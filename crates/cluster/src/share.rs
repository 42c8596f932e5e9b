//! How work is divided among nodes. Pure.

/// How many of `works` one of `nodes` does at most, so that all is done and nobody does it all.
///
/// As long as something is undone, some node does less than its share: the shares of all together are at least `works`.
pub fn share(works: usize, nodes: usize) -> usize {
    works.div_ceil(nodes.max(1))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_cover_all_work_and_differ_from_an_even_split_by_less_than_one() {
        for works in 0..20 {
            for nodes in 1..20 {
                let share = share(works, nodes);
                assert!(share * nodes >= works && share * nodes < works + nodes, "{works} works, {nodes} nodes: {share}");
            }
        }
        assert_eq!(share(5, 0), 5, "who sees nobody is alone");
    }
}
