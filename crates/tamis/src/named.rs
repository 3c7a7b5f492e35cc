//! Names of enum variants on the command line and in reports.

/// Implements `ALL`, `name`, `Display` and `FromStr` for an enum without
/// fields. `$what` names the argument in the error of a failed parse.
macro_rules! named_enum {
    ($type:ident, $what:literal, {
        $first:ident => $first_name:literal
        $(, $variant:ident => $name:literal)* $(,)?
    }) => {
        impl $type {
            /// Every variant, in the order of their codes.
            ///
            /// ```
            #[doc = concat!("for value in tamis::", stringify!($type), "::ALL {")]
            ///     assert_eq!(value.name().parse(), Ok(value));
            /// }
            /// ```
            pub const ALL: [Self; [$first_name $(, $name)*].len()] =
                [Self::$first $(, Self::$variant)*];

            /// The name on the command line and in reports.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($type), ";")]
            #[doc = concat!(
                "assert_eq!(", stringify!($type), "::", stringify!($first),
                ".name(), ", stringify!($first_name), ");"
            )]
            /// ```
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::$first => $first_name,
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(
                &self,
                f: &mut core::fmt::Formatter<'_>,
            ) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl core::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name).ok_or(
                    $crate::Error::InvalidArgument {
                        what: $what,
                        why: concat!(
                            "expected one of ", $first_name $(, ", ", $name)*
                        ),
                    },
                )
            }
        }
    };
}

pub(crate) use named_enum;
