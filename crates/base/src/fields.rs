//! Fields of a drive's state, encoded in the `postcard` format.
//!
//! A type that consists only of state derives serde's traits. With the derived traits, equal values
//! have equal bytes, and bytes that do not encode a value of the type are rejected. A type with
//! both configuration and state lists its state in [`saved!`](crate::saved). The macro restores the
//! state in place and leaves the configuration unchanged.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Error for bytes that do not encode a valid state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible;

/// State that can be saved, and restored in place.
pub trait Saved {
    /// Appends the state to `out`.
    fn save(&self, out: &mut FieldWriter);

    /// Restores the state that `save` wrote for a value with the same configuration.
    ///
    /// # Errors
    /// Returns an error if the fields are not a valid state. After an error, `self` is in an
    /// undefined state.
    fn restore(&mut self, input: &mut FieldReader<'_>) -> Result<(), Impossible>;
}

impl<T: Serialize + DeserializeOwned> Saved for T {
    fn save(&self, out: &mut FieldWriter) {
        out.put(self);
    }

    fn restore(&mut self, input: &mut FieldReader<'_>) -> Result<(), Impossible> {
        *self = input.get()?;
        Ok(())
    }
}

/// Collects fields in order.
#[derive(Default)]
pub struct FieldWriter {
    bytes: Vec<u8>,
}

impl FieldWriter {
    /// Appends a value.
    pub fn put<T: Serialize + ?Sized>(&mut self, value: &T) {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(value, bytes).expect("plain data can be encoded");
    }
}

/// Reads fields in the order in which they were written.
pub struct FieldReader<'a> {
    bytes: &'a [u8],
}

impl FieldReader<'_> {
    /// Reads the next value.
    ///
    /// # Errors
    /// Returns an error if the bytes do not encode a `T`.
    pub fn get<T: DeserializeOwned>(&mut self) -> Result<T, Impossible> {
        let (value, rest) = postcard::take_from_bytes(self.bytes).map_err(|_| Impossible)?;
        self.bytes = rest;
        Ok(value)
    }
}

/// Returns the encoded fields of `state`.
pub fn to_bytes(state: &impl Saved) -> Vec<u8> {
    let mut out = FieldWriter::default();
    state.save(&mut out);
    out.bytes
}

/// Restores `state` from the output of [`to_bytes`].
///
/// # Errors
/// Returns an error if the fields are not a valid state, or if bytes follow the fields.
pub fn from_bytes(bytes: &[u8], state: &mut impl Saved) -> Result<(), Impossible> {
    let mut input = FieldReader { bytes };
    state.restore(&mut input)?;
    if input.bytes.is_empty() { Ok(()) } else { Err(Impossible) }
}

/// Implements [`Saved`](crate::fields::Saved) for a type, given the list of its state fields:
/// `name` (or `part.name`) saves a field. `[name]` saves the elements of a list whose length is
/// configuration. `(name)` saves the value of an `Option` that is `Some` by configuration. The
/// method after `check` derives other fields from the restored fields and returns `false` if the
/// state is invalid. For an `enum` whose variant is configuration, the list contains the variants
/// that have state.
#[macro_export]
macro_rules! saved {
    (enum $type:ty { $($variant:ident),* $(,)? }) => {
        impl $crate::fields::Saved for $type {
            fn save(&self, out: &mut $crate::fields::FieldWriter) {
                #[allow(unused_imports)]
                use $crate::fields::Saved as _;
                match self {
                    $(Self::$variant(part) => part.save(out),)*
                    _ => {}
                }
            }

            fn restore(
                &mut self,
                input: &mut $crate::fields::FieldReader<'_>,
            ) -> Result<(), $crate::fields::Impossible> {
                #[allow(unused_imports)]
                use $crate::fields::Saved as _;
                match self {
                    $(Self::$variant(part) => part.restore(input),)*
                    _ => Ok(()),
                }
            }
        }
    };
    (<$generic:ident: $bound:path> $type:ty { $($fields:tt)* } $($check:tt)*) => {
        $crate::saved! { @impl [<$generic: $bound>] $type { $($fields)* } $($check)* }
    };
    ($type:ty { $($fields:tt)* } $($check:tt)*) => {
        $crate::saved! { @impl [] $type { $($fields)* } $($check)* }
    };
    (@impl [$($generic:tt)*] $type:ty { $($($field:tt).+),* $(,)? } $(check $check:ident)?) => {
        impl $($generic)* $crate::fields::Saved for $type {
            #[allow(unused_variables)]
            fn save(&self, out: &mut $crate::fields::FieldWriter) {
                $($crate::saved!(@save self out $($field).+);)*
            }

            #[allow(unused_variables)]
            fn restore(
                &mut self,
                input: &mut $crate::fields::FieldReader<'_>,
            ) -> Result<(), $crate::fields::Impossible> {
                $($crate::saved!(@restore self input $($field).+);)*
                $(if !self.$check() {
                    return Err($crate::fields::Impossible);
                })?
                Ok(())
            }
        }
    };
    (@save $self:ident $out:ident [$field:ident]) => {
        $self.$field.iter().for_each(|item| $crate::fields::Saved::save(item, $out))
    };
    (@save $self:ident $out:ident ($field:ident)) => {
        if let Some(part) = &$self.$field {
            #[allow(unused_imports)]
            use $crate::fields::Saved as _;
            part.save($out);
        }
    };
    (@save $self:ident $out:ident $($field:ident).+) => {
        $crate::fields::Saved::save(&$self.$($field).+, $out)
    };
    (@restore $self:ident $input:ident [$field:ident]) => {
        for item in &mut $self.$field {
            $crate::fields::Saved::restore(item, $input)?;
        }
    };
    (@restore $self:ident $input:ident ($field:ident)) => {
        if let Some(part) = &mut $self.$field {
            #[allow(unused_imports)]
            use $crate::fields::Saved as _;
            part.restore($input)?;
        }
    };
    (@restore $self:ident $input:ident $($field:ident).+) => {
        $crate::fields::Saved::restore(&mut $self.$($field).+, $input)?
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Part {
        limit: u32,
        used: u32,
    }

    saved! { Part { used } check is_within }

    impl Part {
        fn is_within(&mut self) -> bool {
            self.used <= self.limit
        }
    }

    #[derive(Debug, Default, PartialEq)]
    struct Whole {
        counts: Vec<u64>,
        parts: Vec<Part>,
        spare: Option<Box<Part>>,
    }

    saved! { Whole { counts, [parts], (spare) } }

    fn whole(used: u32) -> Whole {
        let part = || Part { limit: 9, used };
        Whole { counts: vec![1, 300], parts: vec![part(), part()], spare: Some(Box::new(part())) }
    }

    #[test]
    fn state_is_restored_and_configuration_kept() {
        let bytes = to_bytes(&whole(7));
        assert_eq!(bytes, [2, 1, 0xac, 2, 7, 7, 7]);
        let mut restored = whole(0);
        restored.counts.clear();
        from_bytes(&bytes, &mut restored).unwrap();
        assert_eq!(restored, whole(7));
    }

    #[test]
    fn impossible_bytes_are_refused() {
        let good = to_bytes(&whole(7));
        let refused = |bytes: &[u8]| from_bytes(bytes, &mut whole(0)) == Err(Impossible);
        assert!((0..good.len()).all(|end| refused(&good[..end])), "truncated bytes are accepted");
        assert!(refused(&[&good[..], &[0]].concat()), "trailing bytes are accepted");
        assert!(refused(&to_bytes(&whole(10))), "a value above its limit is accepted");
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(refused(&longest), "a list of 2^64 - 1 elements is accepted");
    }
}
