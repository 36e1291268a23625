//! Owns the joining of rows that share a text into one group (union-find).
//! Must not know which texts those are.

use std::collections::HashMap;

/// Sets of keys that grow together; the name of a set is its smallest key.
#[derive(Default)]
pub(crate) struct Groups {
    index: HashMap<String, usize>,
    parent: Vec<usize>,
    names: Vec<String>,
}

impl Groups {
    fn node(&mut self, key: &str) -> usize {
        if let Some(&i) = self.index.get(key) {
            return i;
        }
        let i = self.parent.len();
        self.parent.push(i);
        self.names.push(key.to_owned());
        self.index.insert(key.to_owned(), i);
        i
    }

    fn root(&mut self, mut i: usize) -> usize {
        while self.parent[i] != i {
            self.parent[i] = self.parent[self.parent[i]];
            i = self.parent[i];
        }
        i
    }

    /// Puts two keys (new ones are added) into one set. The set with the smaller name stays the
    /// root, so the result does not depend on the order of the calls.
    pub(crate) fn join(&mut self, a: &str, b: &str) {
        let (a, b) = (self.node(a), self.node(b));
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = if self.names[a] <= self.names[b] {
            (a, b)
        } else {
            (b, a)
        };
        self.parent[high] = low;
    }

    /// The name of a key's set.
    pub(crate) fn name(&mut self, key: &str) -> &str {
        let node = self.node(key);
        let root = self.root(node);
        &self.names[root]
    }
}

#[cfg(test)]
mod tests {
    use super::Groups;

    #[test]
    fn sets_grow_together_under_their_smallest_key() {
        let pairs = [("d", "c"), ("b", "a"), ("x", "y"), ("c", "b")];
        let mut forwards = Groups::default();
        let mut backwards = Groups::default();
        pairs.iter().for_each(|(a, b)| forwards.join(a, b));
        pairs.iter().rev().for_each(|(a, b)| backwards.join(b, a));
        for (key, want) in [("a", "a"), ("d", "a"), ("y", "x"), ("alone", "alone")] {
            assert_eq!(forwards.name(key), want);
            assert_eq!(backwards.name(key), want);
        }
    }
}
