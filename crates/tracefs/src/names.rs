//! Numbering of names: volumes, processes and threads.

use std::collections::HashMap;

/// Maximum number of distinct names. Few traces have as many; further names share one number.
const NAMES_MAX: usize = 1 << 16;
const OTHERS: &str = "others";
const NAME_BYTES_MAX: usize = 256;

/// Names by number, in the order of first use.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names by number; bytes that are not UTF-8 are replaced.
    pub words: Vec<String>,
    /// Numbers by name bytes, which need not be UTF-8. The order of the map is not used.
    numbers: HashMap<Vec<u8>, u32>,
    /// Most recently used name, because most I/Os have the volume or thread of the previous I/O.
    last: Vec<u8>,
    last_number: u32,
}

impl Names {
    /// Returns the number of a name.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        if self.words.is_empty() || self.last != name {
            self.last.clear();
            self.last.extend_from_slice(name);
            self.last_number = self.find(&name[..name.len().min(NAME_BYTES_MAX)]);
        }
        debug_assert!((self.last_number as usize) < self.words.len());
        self.last_number
    }

    fn find(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.words.len().min(NAMES_MAX - 1) as u32;
        if self.words.len() < NAMES_MAX - 1 {
            self.words.push(String::from_utf8_lossy(name).into_owned());
            self.numbers.insert(name.to_vec(), number);
        } else if self.words.len() < NAMES_MAX {
            self.words.push(OTHERS.to_owned());
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Names::default();
        let all: Vec<_> = (0..1000).map(|n| format!("volume {n}")).collect();
        for _ in 0..2 {
            for (number, name) in all.iter().enumerate() {
                assert_eq!(names.number(name.as_bytes()) as usize, number);
            }
        }
        assert_eq!(names.words, all);
    }

    #[test]
    fn names_beyond_the_limit_share_a_number() {
        let mut names = Names::default();
        for n in 0..NAMES_MAX + 10 {
            names.number(n.to_string().as_bytes());
        }
        assert_eq!(names.words.len(), NAMES_MAX);
        assert_eq!(names.number(b"another"), names.number(b"yet another"));
        assert_eq!(names.number(b"0"), 0);
    }
}
