/* The binary form as a file: header, footer, table of sections, checksums. Nothing here looks into a section. */
#include "ir/binary.h"

#include "base/checksum.h"

const tn_binary_kind tn_binary_kinds[TN_SECTION_COUNT] = {
    [TN_SECTION_STRINGS] = {"STRS", 6},   [TN_SECTION_OPS] = {"OPS ", 8},      [TN_SECTION_SYMBOLS] = {"SYMB", 24},
    [TN_SECTION_DIMS] = {"DIMS", 4},      [TN_SECTION_TYPES] = {"TYPE", 8},    [TN_SECTION_ORIGINS] = {"ORIG", 16},
    [TN_SECTION_LOCATIONS] = {"LOCS", 8}, [TN_SECTION_VALUES] = {"VALU", 8},   [TN_SECTION_HELD] = {"HELD", 8},
    [TN_SECTION_REGIONS] = {"REGN", 8},   [TN_SECTION_NODES] = {"NODE", 44},   [TN_SECTION_FUNCTIONS] = {"FUNC", 8},
    [TN_SECTION_OUTPUTS] = {"OUTS", 4},   [TN_SECTION_DEFAULTS] = {"DFLT", 8}, [TN_SECTION_METADATA] = {"META", 8},
    [TN_SECTION_TENSORS] = {"TENS", 8},   [TN_SECTION_DATA] = {"DATA", 0},     [TN_SECTION_WEIGHTS] = {"WGHT", 0},
    [TN_SECTION_BLOBS] = {"BLOB", 32},
};

/* Entries that are looked at: more sections than any file needs are no table but an attack on the reader's time. */
#define MOST_SECTIONS 4096

typedef struct entry {
    char code[4];
    uint32_t flags;
    uint64_t offset, size, count, checksum;
    uint32_t align, zero;
} entry;
_Static_assert(sizeof(entry) == TN_BINARY_ENTRY, "the layout of an entry");

static uint64_t load64(const uint8_t *at) {
    uint64_t x;
    memcpy(&x, at, sizeof x);
    return x;
}

bool tn_binary_is(const void *bytes, size_t size) {
    return size >= 8 && memcmp(bytes, TN_BINARY_MAGIC, 8) == 0;
}

static tn_status check_header(const uint8_t *bytes, size_t size) {
    uint32_t endian;
    uint16_t version[2];
    if (!tn_binary_is(bytes, size))
        return tn_fail(TN_ERR_MODEL, "this is no saved Tenon graph");
    if (size < TN_BINARY_HEADER + TN_BINARY_FOOTER)
        return tn_fail(TN_ERR_MODEL, "the file is cut off: %zu bytes", size);
    memcpy(&endian, bytes + 8, sizeof endian);
    memcpy(version, bytes + 12, sizeof version);
    if (endian != TN_BINARY_ENDIAN)
        return endian == __builtin_bswap32(TN_BINARY_ENDIAN)
                   ? tn_fail(TN_ERR_UNSUPPORTED, "not supported: a file in the byte order of other machines")
                   : tn_fail(TN_ERR_MODEL, "the file's header is damaged");
    if (version[0] != TN_BINARY_MAJOR) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: version %u.%u of the binary form", version[0], version[1]);
        tn_fail_hint("this library reads versions %d.x", TN_BINARY_MAJOR);
        return TN_ERR_UNSUPPORTED;
    }
    return TN_OK;
}

/* Finds the table: `*count` entries at `*table`, before which all sections end. */
static tn_status check_footer(const uint8_t *bytes, size_t size, const uint8_t **table, uint32_t *count) {
    const uint8_t *footer = bytes + size - TN_BINARY_FOOTER;
    uint64_t room = size - TN_BINARY_FOOTER;
    if (memcmp(footer + 56, TN_BINARY_TAIL, 8) != 0)
        return tn_fail(TN_ERR_MODEL, "the file is cut off or has something behind its end");
    uint64_t at = load64(footer), entries = load64(footer + 8), whole = load64(footer + 16);
    if (whole != size)
        return tn_fail(TN_ERR_MODEL, "the file has %zu bytes, but was written with %llu", size,
                       (unsigned long long)whole);
    if (at < TN_BINARY_HEADER || at > room || entries > (room - at) / TN_BINARY_ENTRY || entries > MOST_SECTIONS)
        return tn_fail(TN_ERR_MODEL, "the table of sections does not lie inside the file");
    tn_checksum sum;
    tn_checksum_begin(&sum);
    tn_checksum_add(&sum, bytes, TN_BINARY_HEADER);
    tn_checksum_add(&sum, bytes + at, (size_t)entries * TN_BINARY_ENTRY);
    tn_checksum_add(&sum, footer, 48);
    if (tn_checksum_end(&sum) != load64(footer + 48))
        return tn_fail(TN_ERR_MODEL, "the table of sections is damaged: its checksum differs");
    *table = bytes + at;
    *count = (uint32_t)entries;
    return TN_OK;
}

static tn_status check_entry(const uint8_t *bytes, uint64_t limit, const entry *e, tn_section_view sections[]) {
    if (e->align < TN_BINARY_ALIGN || (e->align & (e->align - 1)) || e->offset % e->align)
        return tn_fail(TN_ERR_MODEL, "section '%.4s' is not aligned: at byte %llu, alignment %u", e->code,
                       (unsigned long long)e->offset, e->align);
    if (e->offset < TN_BINARY_HEADER || e->offset > limit || e->size > limit - e->offset)
        return tn_fail(TN_ERR_MODEL, "section '%.4s' does not lie inside the file", e->code);
    tn_section kind = 0;
    while (kind < TN_SECTION_COUNT && memcmp(e->code, tn_binary_kinds[kind].code, 4) != 0)
        kind++;
    if (kind == TN_SECTION_COUNT) {
        if (!(e->flags & TN_SECTION_REQUIRED))
            return TN_OK;
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: section '%.4s', which the file says is needed to read it", e->code);
        tn_fail_hint("the file was written by a newer version");
        return TN_ERR_UNSUPPORTED;
    }
    if (sections[kind].there)
        return tn_fail(TN_ERR_MODEL, "section '%.4s' is there twice", e->code);
    uint64_t least = tn_binary_kinds[kind].least_record;
    if (e->count > UINT32_MAX / 2 || (least && e->count > e->size / least))
        return tn_fail(TN_ERR_MODEL, "section '%.4s' of %llu bytes cannot hold %llu records", e->code,
                       (unsigned long long)e->size, (unsigned long long)e->count);
    if (kind != TN_SECTION_WEIGHTS && tn_checksum_of(bytes + e->offset, (size_t)e->size) != e->checksum)
        return tn_fail(TN_ERR_MODEL, "section '%.4s' is damaged: its checksum differs", e->code);
    sections[kind] = (tn_section_view){bytes + e->offset, (size_t)e->size, (uint32_t)e->count, true};
    return TN_OK;
}

tn_status tn_binary_open(const uint8_t *bytes, size_t size, tn_section_view sections[TN_SECTION_COUNT]) {
    const uint8_t *table = NULL;
    uint32_t count = 0;
    memset(sections, 0, TN_SECTION_COUNT * sizeof *sections);
    TN_TRY(check_header(bytes, size));
    TN_TRY(check_footer(bytes, size, &table, &count));
    for (uint32_t i = 0; i < count; i++) {
        entry e;
        memcpy(&e, table + i * (size_t)TN_BINARY_ENTRY, sizeof e);
        TN_TRY(check_entry(bytes, (uint64_t)(table - bytes), &e, sections));
    }
    for (int kind = 0; kind < TN_SECTION_COUNT; kind++)
        if (!sections[kind].there)
            return tn_fail(TN_ERR_MODEL, "section '%s' is missing", tn_binary_kinds[kind].code);
    return TN_OK;
}

tn_status tn_binary_blob(const tn_section_view *sections, uint32_t blob, tn_section_view *out, uint64_t *checksum) {
    const tn_section_view *table = &sections[TN_SECTION_BLOBS];
    if (blob >= table->count)
        return tn_fail(TN_ERR_MODEL, "there are no bytes %u of a tensor", blob);
    const uint8_t *at = table->data + blob * (size_t)32;
    uint64_t place = load64(at), offset = load64(at + 8), size = load64(at + 16);
    const tn_section_view *in = &sections[place ? TN_SECTION_WEIGHTS : TN_SECTION_DATA];
    if (place > 1 || offset > in->size || size > in->size - offset || offset % TN_BINARY_ALIGN)
        return tn_fail(TN_ERR_MODEL, "the bytes %u of a tensor do not lie where they should", blob);
    *out = (tn_section_view){.data = in->data + offset, .size = (size_t)size, .there = true};
    *checksum = load64(at + 24);
    return TN_OK;
}

tn_status tn_binary_check_weights(const void *bytes, size_t size) {
    tn_section_view sections[TN_SECTION_COUNT], blob;
    uint64_t checksum;
    TN_TRY(tn_binary_open(bytes, size, sections));
    for (uint32_t i = 0; i < sections[TN_SECTION_BLOBS].count; i++) {
        TN_TRY(tn_binary_blob(sections, i, &blob, &checksum));
        if (tn_checksum_of(blob.data, blob.size) != checksum)
            return tn_fail(TN_ERR_MODEL, "the bytes of a tensor (%zu, from byte %zu of the file) are damaged",
                           blob.size, (size_t)(blob.data - (const uint8_t *)bytes));
    }
    return TN_OK;
}
