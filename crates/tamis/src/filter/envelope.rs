//! The part of a filter that is the same for every kind: hash function,
//! counts, memory and metadata; opened, copied, verified and written.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::{Error, Result};
use crate::format::{
    self, Counts, GeometryBytes, Image, ImageHeader, Kind, Metadata,
    SectionTag, Sections,
};
use crate::key::KeyHasher;
use crate::memory::Owned;

/// Everything around the blocks of a filter.
#[derive(Clone)]
pub(super) struct Envelope<D = Owned> {
    pub(super) hasher: KeyHasher,
    pub(super) counts: Counts,
    pub(super) data: D,
    /// Range of the blocks in `data`: behind a header if `data` is an image,
    /// from 0 on otherwise.
    pub(super) payload: Range<usize>,
    /// Range of the metadata section in `data`, if that is an image and has
    /// one; empty otherwise.
    stored_metadata: Range<usize>,
    /// The metadata section, if it is not in `data`; empty without metadata.
    own_metadata: Vec<u8>,
}

impl Envelope {
    /// Around zero bytes; `bytes` is `None` if their number overflows.
    pub(super) fn zeroed(
        bytes: Option<u64>,
        hasher: KeyHasher,
        counts: Counts,
    ) -> Result<Self> {
        let none = Envelope {
            hasher,
            counts,
            data: (),
            payload: 0..0,
            stored_metadata: 0..0,
            own_metadata: Vec::new(),
        };
        none.resized(bytes, counts)
    }

    pub(super) fn clear(&mut self) {
        self.counts.items = 0;
        self.data.as_mut().fill(0);
    }

    /// Counts inserted keys.
    #[inline(always)]
    pub(super) fn add_items(&mut self, added: u64) {
        self.counts.items = self.counts.items.saturating_add(added);
    }
}

impl<D> Envelope<D> {
    /// Around zero bytes, with the hash function and the metadata of an
    /// envelope that is no view; `bytes` is `None` if their number overflows.
    pub(super) fn resized(
        &self,
        bytes: Option<u64>,
        counts: Counts,
    ) -> Result<Envelope> {
        let bytes = bytes.ok_or(Error::Allocation { bytes: u64::MAX })?;
        let data = Owned::zeroed(bytes)?;
        let payload = 0..data.as_ref().len();
        Ok(Envelope {
            counts,
            payload,
            own_metadata: self.own_metadata.clone(),
            ..self.rebound(data)
        })
    }

    /// Around the same image elsewhere.
    #[inline(always)]
    pub(super) fn rebound<E>(&self, data: E) -> Envelope<E> {
        Envelope {
            hasher: self.hasher,
            counts: self.counts,
            data,
            payload: self.payload.clone(),
            stored_metadata: self.stored_metadata.clone(),
            own_metadata: Vec::new(),
        }
    }

    /// Around the same blocks in another form, in an envelope that is no view.
    #[cfg(feature = "std")]
    pub(super) fn map<E>(self, map: impl FnOnce(D) -> E) -> Envelope<E> {
        let Self { hasher, counts, data, payload, .. } = self;
        let Self { stored_metadata, own_metadata, .. } = self;
        Envelope {
            hasher,
            counts,
            data: map(data),
            payload,
            stored_metadata,
            own_metadata,
        }
    }
}

impl<D: AsRef<[u8]>> Envelope<D> {
    /// Around an image with this header. `sections` are the tags and lengths
    /// of the kind's sections, blocks first; also returns the ranges of all.
    pub(super) fn view<const N: usize>(
        header: &ImageHeader,
        data: D,
        sections: [(SectionTag, Option<u64>); N],
    ) -> Result<(Self, [Range<usize>; N])> {
        let Sections { places, metadata } = Sections::find(header, sections)?;
        let envelope = Self {
            hasher: header.hasher,
            counts: header.counts,
            data,
            payload: places[0].clone(),
            stored_metadata: metadata,
            own_metadata: Vec::new(),
        };
        Ok((envelope, places))
    }

    /// Copies the blocks and the metadata.
    pub(super) fn into_owned(self) -> Result<Envelope> {
        let data = Owned::copy_of(self.blocks())?;
        Ok(Envelope {
            payload: 0..data.as_ref().len(),
            stored_metadata: 0..0,
            own_metadata: self.checked_metadata()?.to_vec(),
            ..self.rebound(data)
        })
    }

    #[inline(always)]
    pub(super) fn blocks(&self) -> &[u8] {
        &self.data.as_ref()[self.payload.clone()]
    }

    /// The metadata section, not checked.
    fn metadata_bytes(&self) -> &[u8] {
        match self.stored_metadata.is_empty() {
            false => &self.data.as_ref()[self.stored_metadata.clone()],
            true => &self.own_metadata,
        }
    }

    /// The metadata section, after a check of its checksum.
    fn checked_metadata(&self) -> Result<&[u8]> {
        match self.stored_metadata.is_empty() {
            false => format::metadata_bytes(self.data.as_ref()),
            true => Ok(&self.own_metadata),
        }
    }

    pub(super) fn metadata(&self) -> Result<Metadata<'_>> {
        Metadata::parse(self.checked_metadata()?)
    }

    pub(super) fn set_metadata(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<()> {
        self.own_metadata = self.metadata()?.with(name, value)?;
        self.stored_metadata = 0..0;
        Ok(())
    }

    /// Checks the image, if the filter is a view of one, and the metadata.
    pub(super) fn verify(&self) -> Result<()> {
        self.verify_range(0..u64::MAX)?;
        self.metadata().map(|_| ())
    }

    /// Checks the chunks that overlap a range of the image, if the filter is
    /// a view of one.
    pub(super) fn verify_range(&self, range: Range<u64>) -> Result<()> {
        match self.payload.start {
            0 => Ok(()),
            _ => format::verify(self.data.as_ref(), range),
        }
    }

    /// The header of the image with this geometry and an overflow list of
    /// `list` bytes.
    pub(super) fn header(
        &self,
        kind: Kind,
        geometry: GeometryBytes,
        list: Option<usize>,
    ) -> ImageHeader {
        let metadata = self.metadata_bytes().len();
        let sections = [
            (SectionTag::BLOCKS, Some(self.payload.len())),
            (SectionTag::LIST, list),
            (SectionTag::METADATA, (metadata > 0).then_some(metadata)),
        ];
        let sections = sections.into_iter();
        ImageHeader::layout(
            (kind, self.hasher, self.counts),
            geometry,
            sections.filter_map(|(tag, len)| Some((tag, len? as u64))),
        )
    }

    /// The image, with this geometry and overflow list.
    pub(super) fn image<'a>(
        &'a self,
        kind: Kind,
        geometry: GeometryBytes,
        list: Option<Cow<'a, [u8]>>,
    ) -> Image<'a> {
        let list_bytes = list.as_ref().map(|list| list.len());
        let header = self.header(kind, geometry, list_bytes);
        let metadata = self.metadata_bytes();
        let metadata = (!metadata.is_empty()).then_some(metadata.into());
        let sections = [Some(self.blocks().into()), list, metadata];
        Image { header, sections: sections.into_iter().flatten().collect() }
    }
}

/// The methods of `Filter` that the field `envelope` answers.
macro_rules! envelope_methods {
    () => {
        #[inline]
        fn hasher(&self) -> &$crate::KeyHasher {
            &self.envelope.hasher
        }

        fn len(&self) -> u64 {
            self.envelope.counts.items
        }

        fn capacity(&self) -> u64 {
            self.envelope.counts.design_items
        }

        fn design_fpr(&self) -> f64 {
            self.envelope.counts.design_fpr
        }
    };
}
pub(super) use envelope_methods;
