//! Enumerations with a word for each variant, for the command line and files.

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
            /// All variants, in the order of their declaration.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];
            /// The words and their variants.
            pub const WORDS: &[(&'static str, Self)] = &[$(($word, Self::$variant)),*];

            /// Returns the word of the variant.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Returns the variant of a word, if it is known.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == word)
            }
        }
    )*};
}
