//! The axes along which a fast block is specialised.

use crate::block::fingerprint::layout::HeadLayout;

/// [`Form`](crate::block::fingerprint::Form) without its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormKind {
    Plain,
    Capped,
    Elastic,
}

impl FormKind {
    /// Number of flag bits.
    pub(crate) const fn flags(self) -> u32 {
        match self {
            Self::Plain => 0,
            Self::Capped => 1,
            Self::Elastic => 2,
        }
    }
}

/// A form as a type.
pub(crate) trait FormSpec: 'static {
    const KIND: FormKind;
    /// Whether chains can move to a second level.
    const SPILLS: bool = matches!(Self::KIND, FormKind::Capped);
    const ELASTIC: bool = matches!(Self::KIND, FormKind::Elastic);
}

/// [`FormKind::Plain`] as a type.
pub(crate) enum Plain {}
/// [`FormKind::Capped`] as a type.
pub(crate) enum Capped {}
/// [`FormKind::Elastic`] as a type.
pub(crate) enum Elastic {}

impl FormSpec for Plain {
    const KIND: FormKind = FormKind::Plain;
}

impl FormSpec for Capped {
    const KIND: FormKind = FormKind::Capped;
}

impl FormSpec for Elastic {
    const KIND: FormKind = FormKind::Elastic;
}

/// A head layout as a type.
pub(crate) trait HeadSpec: 'static {
    const LAYOUT: HeadLayout;
    /// Whether heads never have 8 bits.
    const IS_NIBBLES: bool = !matches!(Self::LAYOUT, HeadLayout::Bytes);
}

/// [`HeadLayout::Bytes`] as a type.
pub(crate) enum Bytes {}
/// [`HeadLayout::Nibbles`] as a type.
pub(crate) enum Nibbles {}
/// [`HeadLayout::NibblesReversed`] as a type.
pub(crate) enum Reversed {}

impl HeadSpec for Bytes {
    const LAYOUT: HeadLayout = HeadLayout::Bytes;
}

impl HeadSpec for Nibbles {
    const LAYOUT: HeadLayout = HeadLayout::Nibbles;
}

impl HeadSpec for Reversed {
    const LAYOUT: HeadLayout = HeadLayout::NibblesReversed;
}
