//! Unused positions of a pass, in a tree of counts (Fenwick, 1994) that finds the n-th free
//! position in logarithmic time.

/// Free positions among 0 to n - 1.
#[derive(Clone, Debug)]
pub(super) struct FreePlaces {
    /// At index n: number of free positions in the range that ends before n + 1 and whose length is
    /// the lowest set bit of n + 1.
    tree: Vec<u32>,
    left: usize,
}

impl FreePlaces {
    pub(super) fn new(places: usize) -> Self {
        let lowest_bit = |n: usize| 1_u32 << n.trailing_zeros();
        Self { tree: (1..=places).map(lowest_bit).collect(), left: places }
    }

    /// Returns the number of free positions below `place`.
    pub(super) fn below(&self, place: usize) -> usize {
        let (mut n, mut sum) = (place, 0);
        while n > 0 {
            sum += self.tree[n - 1] as usize;
            n &= n - 1;
        }
        sum
    }

    /// Returns the free position with `before` free positions below it; this position must exist.
    pub(super) fn nth(&self, before: usize) -> usize {
        assert!(before < self.left, "{before} of {} free places", self.left);
        let (mut at, mut left) = (0, before);
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            let end = at + step;
            if end <= self.tree.len() && self.tree[end - 1] as usize <= left {
                left -= self.tree[end - 1] as usize;
                at = end;
            }
            step /= 2;
        }
        debug_assert!(at < self.tree.len());
        at
    }

    pub(super) fn take(&mut self, place: usize) {
        let mut n = place + 1;
        while n <= self.tree.len() {
            self.tree[n - 1] -= 1;
            n += 1 << n.trailing_zeros();
        }
        debug_assert!(self.left > 0, "place {place} is taken");
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_places_are_counted_and_found() {
        for size in [1_usize, 7, 8, 100] {
            let mut free = FreePlaces::new(size);
            let mut plain: Vec<usize> = (0..size).collect();
            for n in 0..size {
                for (before, place) in plain.iter().enumerate() {
                    assert_eq!(free.nth(before), *place);
                    assert_eq!(free.below(*place), before);
                }
                assert_eq!(free.below(size), plain.len());
                free.take(plain.remove((n * 7 + 3) % plain.len()));
            }
        }
    }
}
