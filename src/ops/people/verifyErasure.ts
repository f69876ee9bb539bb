/**
 * Searches for clear values in everything that an installation stores. It reads the log as it is stored: the layer that
 * decrypts would find what is encrypted.
 */
import { normaliseUsername } from '../../lib/precis.js';
import { readPhoneNumber } from '../../domain/phoneNumber.js';
import { pages } from '../../lib/async/pages.js';
import { INVISIBLE } from '../../lib/invisible.js';
import { type ByteSearch, byteSearch } from '../../lib/files/byteSearch.js';
import { searchFiles } from '../../lib/files/searchFiles.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { ErasureRow, KeyStore, SubjectRow } from '../../ports/keyStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { AlteredDataError, type MasterKeys } from '../../runtime/personal/index.js';

/** A value that was found at one location; it never holds the value itself. */
export interface Finding {
  /** Index of the value among those searched for. */
  readonly value: number;
  readonly in: 'event log' | 'read store' | 'key store' | 'erasures' | 'file';
  readonly location: string;
}

interface Scanned {
  events: number;
  /** Number of documents, records and other texts of the read store. */
  read_store: number;
  keys: number;
  erasures: number;
  files: number;
  bytes: number;
}

interface SearchedStores {
  /** The log as stored. */
  readonly events: EventStore;
  /** The read store; absent where there is none. */
  readonly store: ReadStore | undefined;
  readonly keys: KeyStore;
  readonly master: MasterKeys;
}

interface VerifyOptions {
  readonly signal: AbortSignal;
  readonly onFinding: (finding: Finding) => Promise<void>;
  /** Called with a location that could not be searched, because it was altered. */
  readonly onUnreadable: (location: string) => Promise<void>;
}

/** A search whose methods scan once. All methods throw UnavailableError, and the signal's reason. */
interface ErasureVerification {
  readonly scanned: Readonly<Scanned>;
  stores(stores: SearchedStores): Promise<void>;
  /** Searches a file, or all files below a folder; see `searchFiles`. */
  files(path: string): Promise<void>;
}

const UNSEEN = new RegExp(`[${INVISIBLE}]`, 'gu');
const PAGE = 1_000;
const HIDDEN = '(its name holds the value)';

/** @param values of at least 3 characters, without blanks around them */
export function verifyErasure(
  values: readonly string[],
  { signal, onFinding, onUnreadable }: VerifyOptions,
): ErasureVerification {
  const search = byteSearch(values.map(spellingsOf));
  const scanned: Scanned = { events: 0, read_store: 0, keys: 0, erasures: 0, files: 0, bytes: 0 };

  async function scan(bytes: Uint8Array, where: Finding['in'], location: string): Promise<void> {
    for (const { text } of search.in(bytes))
      await onFinding({ value: text, in: where, location: shown(search, location) });
  }

  async function scanRow({ id, secret }: SubjectRow, master: MasterKeys): Promise<void> {
    let opened: Buffer;
    try {
      opened = master.open(secret, id);
    } catch (error) {
      if (!(error instanceof AlteredDataError)) throw error;
      await onUnreadable(`row ${id} of the key store`);
      return;
    }
    await scan(opened, 'key store', `subject ${id}`);
  }

  return {
    scanned,
    async stores({ events, store, keys, master }) {
      for await (const batch of events.readAll(undefined))
        for (const event of batch.events) {
          signal.throwIfAborted();
          scanned.events += 1;
          await scan(Buffer.from(JSON.stringify(event)), 'event log', `event at ${event.position}`);
        }
      for await (const texts of store?.texts() ?? [])
        for (const { place, text } of texts) {
          signal.throwIfAborted();
          scanned.read_store += 1;
          await scan(Buffer.from(text), 'read store', place);
        }
      for await (const rows of pages<SubjectRow>(PAGE, async (last) => keys.page(last?.id, PAGE))) {
        signal.throwIfAborted();
        for (const row of rows) await scanRow(row, master);
        scanned.keys += rows.length;
      }
      for await (const rows of pages<ErasureRow>(PAGE, async (last) => keys.erasures(last?.id, PAGE))) {
        signal.throwIfAborted();
        for (const { id, text } of rows) await scan(Buffer.from(text), 'erasures', `erasure ${id}`);
        scanned.erasures += rows.length;
      }
    },
    async files(path) {
      const { files, bytes } = await searchFiles(
        path,
        search,
        async ({ text, file, at }) =>
          onFinding({ value: text, in: 'file', location: `${shown(search, file)}, byte ${at}` }),
        signal,
      );
      scanned.files += files;
      scanned.bytes += bytes;
    },
  };
}

/** Spellings of a value: as it was written, and as a search for persons reads it (docs/support.md#finding-people). */
function spellingsOf(value: string): string[] {
  const number = readPhoneNumber(value);
  const visible = value.replace(UNSEEN, '');
  const numbers = number === undefined ? [] : [number, visible.replaceAll(/\D/g, '')];
  return [value, visible, normaliseUsername(value), ...numbers];
}

const shown = (search: ByteSearch, location: string): string =>
  search.in(Buffer.from(location)).length > 0 ? HIDDEN : location;
