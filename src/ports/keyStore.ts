/**
 * The key store port: the personal data and keys that the log and its copies must not hold, one row a subject. A
 * subject is a user, a phone number or a username. Events name it by its random id. Its secret is wrapped under
 * MASTER_KEY, which the store never sees (`runtime/personal/`). Personal data is erased only by removing its row.
 * Guarantees, tested for every adapter by `test/contract/keyStore.ts`:
 * - The changes of `add`, `rewrap`, `fence`, `unfence`, `remove` and `putErasure` are durable when the call resolves
 *   (fsynced; on a server by a majority). After a failed call all or a part may be stored, and the same call is safe.
 * - Of many rows that are added for one lookup at the same time, by any process, one stays, and all callers get it.
 * - A removed row is given to no reader, of any process, from then on. No byte of its secret or lookup is left in the
 *   store's files; a server frees those bytes by its own rules.
 * - A removed id never comes back: an `add` of it that arrives late, or comes from a backup, adds nothing.
 * - A malformed id is refused, and nothing is stored then. Removed ids are retained for good, so an id must reveal
 *   nothing.
 */
export interface SubjectRow {
  /** 22 characters of base64url, 128 random bits. */
  readonly id: string;
  /**
   * Keyed hash of the subject's kind and text, by which its row is found; see `domain/keyedHash.ts`. Like the id 22
   * characters of base64url.
   */
  readonly lookup: string;
  /** The subject's secret, wrapped under a master key; at most `MAX_SECRET_BYTES`. */
  readonly secret: string;
  /** The subject is being erased: its row is only read by the erasure. Ignored by `add`. */
  readonly fenced?: true;
}

export const MAX_SECRET_BYTES = 4_096;

/** An erasure, stored alongside the keys so that a log which is restored to an earlier time can't undo it. */
export interface ErasureRow {
  /** 22 characters of base64url, 128 random bits. */
  readonly id: string;
  /** JSON without personal data; at most `MAX_ERASURE_BYTES`. */
  readonly text: string;
}

export const MAX_ERASURE_BYTES = 8_192;

export interface KeyStore {
  /** `embedded` or `mongodb`, as shown by `/readyz`, metrics and the command line. */
  readonly engine: string;

  /** The rows of these ids, by id; an id without a row is absent. @throws UnavailableError */
  byId(ids: readonly string[]): Promise<ReadonlyMap<string, SubjectRow>>;

  /** The rows of these lookups, by lookup; a lookup without a row is absent. @throws UnavailableError */
  byLookup(lookups: readonly string[]): Promise<ReadonlyMap<string, SubjectRow>>;

  /**
   * Adds rows; an existing row of the same lookup stays in place of the added one.
   * @returns the rows that now exist, by lookup; a row whose id was removed before is absent
   * @throws UnavailableError
   * @throws Error when a row is malformed (nothing is stored then), or its id has another lookup
   */
  add(rows: readonly SubjectRow[]): Promise<ReadonlyMap<string, SubjectRow>>;

  /**
   * Replaces the secrets of these rows; a removed row stays removed.
   * @throws UnavailableError
   * @throws Error when a secret is too long; nothing is stored then
   */
  rewrap(rows: readonly Pick<SubjectRow, 'id' | 'secret'>[]): Promise<void>;

  /** Rows in the order of their ids, after `after`, at most `limit`. @throws UnavailableError */
  page(after: string | undefined, limit: number): Promise<readonly SubjectRow[]>;

  /** Marks the rows of these ids: every process reads them as `fenced` from now on. @throws UnavailableError */
  fence(ids: readonly string[]): Promise<void>;

  /** Ends fences: every process reads the rows without `fenced` again. @throws UnavailableError */
  unfence(ids: readonly string[]): Promise<void>;

  /** Removes rows for good. None of these ids, with or without a row, can be added again. @throws UnavailableError */
  remove(ids: readonly string[]): Promise<void>;

  /** The removed ids among these. @throws UnavailableError */
  removed(ids: readonly string[]): Promise<ReadonlySet<string>>;

  /** Adds an erasure, or replaces the text of a stored one. @throws UnavailableError; Error when malformed */
  putErasure(row: ErasureRow): Promise<void>;

  /** Erasures in the order of their ids, after `after`, at most `limit`. @throws UnavailableError */
  erasures(after: string | undefined, limit: number): Promise<readonly ErasureRow[]>;

  /** Resolves when the store answers. @throws UnavailableError */
  ping(): Promise<void>;

  close(): Promise<void>;
}
