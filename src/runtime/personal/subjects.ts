/**
 * The subjects of personal data: users, phone numbers, usernames. Events and stream names hold a subject's id. It is
 * random: only the key store leads from a phone number to its id, or back (docs/design.md#personal-data).
 */
import { LRUCache } from 'lru-cache';
import { inSlices } from '../../lib/async/slices.js';
import { atMost } from '../../lib/lruOptions.js';
import { randomBytes, ticks } from '../../lib/world.js';
import type { KeyStore, SubjectRow } from '../../ports/keyStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { AlteredDataError } from './alteredData.js';
import type { MasterKeys } from './masterKeys.js';

/** Number of secrets that are cached in memory at most. */
const CACHED = 50_000;
/**
 * Milliseconds for which a process may still use a cached secret of a subject that another process has fenced: an
 * erasure waits for them. Ids are not cached, so that a fence applies to the next event.
 */
export const SECRETS_CACHED_MS = 5_000;
const ID_BYTES = 16;
const ADDED_AT_ONCE = 10_000;

/** The kind and text by which a subject is found, for example a phone number. */
export interface SubjectName {
  readonly kind: string;
  readonly text: string;
}

/** The id that a subject has, or would get when it is added. */
export interface Proposal {
  readonly id: string;
  /** The row to add for a new subject; absent: the subject is known. */
  readonly row?: SubjectRow;
}

interface SubjectsDeps {
  readonly store: KeyStore;
  readonly master: MasterKeys;
  /** The keyed hash of a name, as the key store's rows have it. */
  readonly lookupOf: (name: SubjectName) => string;
  /** The secret that is stored for a new subject: its data key, or the text that its id represents. */
  readonly secretFor: (name: SubjectName) => Buffer;
  /** Number of secrets that are cached in memory at most; default 50,000. */
  readonly cached?: number;
}

/** A subject that is being erased is unavailable. After the erasure its name gets a new id. */
export interface Subjects {
  /** Ids in the order of the names; new subjects are added. @throws UnavailableError */
  ids(names: readonly SubjectName[]): Promise<readonly string[]>;
  /**
   * As `ids`, but adds nothing: `undefined` for unknown subjects and those that are being erased. It takes as long for
   * unknown subjects, so that a login's duration does not reveal them. @throws UnavailableError
   */
  find(names: readonly SubjectName[]): Promise<readonly (string | undefined)[]>;
  /** Ids that the names have or would get; nothing is added. @throws UnavailableError */
  propose(names: readonly SubjectName[]): Promise<readonly Proposal[]>;
  /**
   * Adds the proposed subjects. False: another process was first to add one, or erased one, so all proposals are void.
   * @throws UnavailableError
   */
  store(proposals: readonly Proposal[]): Promise<boolean>;
  /** Whether none of these subjects was erased since `store` added them. @throws UnavailableError */
  areStored(proposals: readonly Proposal[]): Promise<boolean>;
  /** The secrets of ids; a subject that was erased, or is being erased, is absent. @throws UnavailableError */
  secrets(ids: readonly string[]): Promise<ReadonlyMap<string, Buffer>>;
  /** The key store's rows of the names, also of subjects that are being erased. @throws UnavailableError */
  rowsForErasure(names: readonly SubjectName[]): Promise<readonly (SubjectRow | undefined)[]>;
  /**
   * As `secrets`, but also of subjects that are being erased, and never from the cache. An altered row yields the error
   * for which it can't be read. @throws UnavailableError
   */
  secretsForErasure(ids: readonly string[]): Promise<ReadonlyMap<string, Buffer | AlteredDataError>>;
}

export function openSubjects({ store, master, lookupOf, secretFor, cached = CACHED }: SubjectsDeps): Subjects {
  const secretById = new LRUCache<string, Buffer>({
    ...atMost(cached),
    ttl: SECRETS_CACHED_MS,
    ttlResolution: 0,
    perf: { now: ticks },
  });

  const lookupsOf = async (names: readonly SubjectName[]): Promise<string[]> => {
    const lookups: string[] = [];
    await inSlices(names, (name) => lookups.push(lookupOf(name)));
    return lookups;
  };

  const rowsOf = async (names: readonly SubjectName[]): Promise<readonly (SubjectRow | undefined)[]> => {
    const lookups = await lookupsOf(names);
    const rows = await store.byLookup(lookups);
    return lookups.map((lookup) => rows.get(lookup));
  };

  const propose = async (names: readonly SubjectName[]): Promise<readonly Proposal[]> => {
    const lookups = await lookupsOf(names);
    const known = unfenced(await store.byLookup([...new Set(lookups)]));
    const made = new Map<string, Proposal>();
    const proposals: Proposal[] = [];
    await inSlices(names, (name, index) => {
      const lookup = lookups[index] as string;
      const id = known.get(lookup)?.id;
      let proposal = id === undefined ? made.get(lookup) : { id };
      if (proposal === undefined) {
        const newId = randomBytes(ID_BYTES).toString('base64url');
        const secret = secretFor(name);
        proposal = { id: newId, row: { id: newId, lookup, secret: master.seal(secret, newId) } };
        made.set(lookup, proposal);
        secretById.set(newId, secret);
      }
      proposals.push(proposal);
    });
    return proposals;
  };

  /** Adds the new rows among the proposals. @returns the rows that now exist, by lookup */
  const add = async (proposals: readonly Proposal[]): Promise<ReadonlyMap<string, SubjectRow>> => {
    const rows = [
      ...new Map(proposals.flatMap(({ id, row }) => (row === undefined ? [] : [[id, row] as const]))).values(),
    ];
    const present = new Map<string, SubjectRow>();
    for (let from = 0; from < rows.length; from += ADDED_AT_ONCE)
      for (const row of unfenced(await store.add(rows.slice(from, from + ADDED_AT_ONCE))).values())
        present.set(row.lookup, row);
    return present;
  };

  /** Whether none of these subjects was removed. @throws UnavailableError where one of them is being erased */
  const areAllStored = async (ids: readonly string[]): Promise<boolean> =>
    ids.length === 0 || unfenced(await store.byId(ids)).size === ids.length;

  const open = async (rows: Iterable<SubjectRow>, each: (id: string, secret: Buffer) => void): Promise<void> =>
    inSlices(rows, ({ id, secret }) => each(id, master.open(secret, id)));

  return {
    propose,
    async ids(names) {
      const proposals = await propose(names);
      const present = await add(proposals);
      return proposals.map(({ id, row }) => {
        if (row === undefined) return id;
        const stored = present.get(row.lookup);
        if (stored === undefined) throw beingErased();
        return stored.id;
      });
    },
    find: async (names) => (await rowsOf(names)).map((row) => (row?.fenced === true ? undefined : row?.id)),
    rowsForErasure: rowsOf,
    async store(proposals) {
      const known = new Set(proposals.flatMap(({ id, row }) => (row === undefined ? [id] : [])));
      if (!(await areAllStored([...known]))) return false;
      const present = await add(proposals);
      return proposals.every(({ id, row }) => row === undefined || present.get(row.lookup)?.id === id);
    },
    areStored: async (proposals) => areAllStored([...new Set(proposals.map(({ id }) => id))]),
    async secrets(ids) {
      const found = new Map<string, Buffer>();
      const missing: string[] = [];
      for (const id of new Set(ids)) {
        const secret = secretById.get(id);
        if (secret === undefined) missing.push(id);
        else found.set(id, secret);
      }
      if (missing.length === 0) return found;
      // The cache's time starts before the read, since a fence may be set while the read is in progress.
      const start = ticks();
      const rows = [...(await store.byId(missing)).values()].filter(({ fenced }) => fenced !== true);
      await open(rows, (id, secret) => {
        secretById.set(id, secret, { start });
        found.set(id, secret);
      });
      return found;
    },
    async secretsForErasure(ids) {
      const found = new Map<string, Buffer | AlteredDataError>();
      for (const row of (await store.byId([...new Set(ids)])).values())
        await open([row], (id, secret) => found.set(id, secret)).catch((error: unknown) => {
          if (!(error instanceof AlteredDataError)) throw error;
          found.set(row.id, error);
        });
      return found;
    },
  };
}

/** The rows themselves. @throws UnavailableError where one of them is being erased */
function unfenced(rows: ReadonlyMap<string, SubjectRow>): ReadonlyMap<string, SubjectRow> {
  for (const { fenced } of rows.values()) if (fenced === true) throw beingErased();
  return rows;
}

function beingErased(): UnavailableError {
  return new UnavailableError('a person is being erased');
}
