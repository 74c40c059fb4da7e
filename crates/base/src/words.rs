//! Enumerations with a word for each variant, for use on the command line and in files.

/// Declares an `enum` with a word for each variant, as `Variant = "word",`.
#[macro_export]
macro_rules! words {
    ($($(#[$attribute:meta])* $visible:vis enum $name:ident {
        $($(#[$of_variant:meta])* $variant:ident = $word:literal,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visible enum $name {
            $($(#[$of_variant])* $variant,)*
        }

        impl $name {
            /// All variants, in declaration order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];
            /// The words, each with its variant.
            pub const WORDS: &[(&'static str, Self)] = &[$(($word, Self::$variant)),*];

            /// Returns the word of the variant.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Returns the variant of a word, or `None` if the word is unknown.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == word)
            }
        }
    )*};
}
