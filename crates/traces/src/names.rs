//! Numbers of names: volumes and processes.

/// Names by number, in the order of their first use.
#[derive(Clone, Debug, Default)]
pub struct Names {
    words: Vec<String>,
    /// The bytes of each name, which need not be UTF-8.
    bytes: Vec<Vec<u8>>,
    /// Numbers + 1 by hash, 0 where there is none; open addressing.
    slots: Vec<u32>,
    last: u32,
}

/// More names than any trace has; the rest share the last number.
const NAMES_MAX: usize = 1 << 16;
const OTHERS: &str = "others";
const NAME_BYTES_MAX: usize = 256;

impl Names {
    /// The number of a name.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        if self.bytes.get(self.last as usize).is_some_and(|last| last == name) {
            return self.last;
        }
        self.last = self.find(&name[..name.len().min(NAME_BYTES_MAX)]);
        self.last
    }

    fn find(&mut self, name: &[u8]) -> u32 {
        if self.words.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mut at = self.slot(name);
        while self.slots[at] != 0 {
            let number = self.slots[at] - 1;
            if self.bytes[number as usize] == name {
                return number;
            }
            at = (at + 1) % self.slots.len();
        }
        if self.words.len() >= NAMES_MAX - 1 {
            if self.words.len() == NAMES_MAX - 1 {
                self.words.push(OTHERS.to_owned());
                self.bytes.push(Vec::new());
            }
            return NAMES_MAX as u32 - 1;
        }
        self.words.push(String::from_utf8_lossy(name).into_owned());
        self.bytes.push(name.to_vec());
        self.slots[at] = self.words.len() as u32;
        self.slots[at] - 1
    }

    fn slot(&self, name: &[u8]) -> usize {
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, add);
        (hash >> 20) as usize % self.slots.len()
    }

    fn grow(&mut self) {
        self.slots = vec![0; (self.slots.len() * 4).max(64)];
        for number in 0..self.bytes.len() {
            let mut at = self.slot(&self.bytes[number]);
            while self.slots[at] != 0 {
                at = (at + 1) % self.slots.len();
            }
            self.slots[at] = number as u32 + 1;
        }
    }

    /// All names, by their numbers.
    pub fn words(&self) -> &[String] {
        &self.words
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
        assert_eq!(names.words(), all);
    }

    #[test]
    fn names_beyond_the_limit_share_a_number() {
        let mut names = Names::default();
        for n in 0..NAMES_MAX + 10 {
            names.number(n.to_string().as_bytes());
        }
        assert_eq!(names.words().len(), NAMES_MAX);
        assert_eq!(names.number(b"another"), names.number(b"yet another"));
        assert_eq!(names.number(b"0"), 0);
    }
}
