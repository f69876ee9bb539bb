/**
 * The key store port: what the log and its copies must not hold of persons, one row a subject. A subject is a user, a
 * phone number or a username. Its id is random, and stands in events in place of what it stands for. Its secret is
 * wrapped under MASTER_KEY, which the store never sees (`runtime/personal/`). Removing a row is the only way in which
 * personal data ends.
 * Guarantees, tested for every adapter by `test/contract/keyStore.ts`:
 * - What `add`, `rewrap`, `fence`, `unfence`, `remove` and `putErasure` have resolved for is durable (fsynced; on a server by a
 * majority). When one fails, all or a part may be done, and the same call is safe.
 * - Of many rows that are added for one lookup at the same time, by any process, one stays, and all callers get it.
 * - What is removed is given to no reader, of any process, from then on, and no byte of its secret or lookup is left in
 *   the store's files; a server frees it by its own rules.
 * - A removed id never comes back: an `add` of it that arrives late, or comes from a backup, adds nothing.
 * - A malformed id is refused, and nothing is stored then: a removed one is kept for good, and must tell nothing.
 */
export interface SubjectRow {
  /** 22 characters of base64url, 128 random bits. */
  readonly id: string;
  /**
   * A keyed hash of what the subject is found by, which separates kinds; see `domain/keyedHash.ts`. Like the id 22
   * characters of base64url.
   */
  readonly lookup: string;
  /** Wrapped; at most `MAX_SECRET_BYTES`. */
  readonly secret: string;
  /** The subject is being erased: its row is only read by the erasure. Ignored by `add`. */
  readonly fenced?: true;
}

export const MAX_SECRET_BYTES = 4_096;

/** An erasure, kept beside the keys so that a log which is put back to an earlier time can't undo it. */
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

  /** The rows of these ids; what is not there is absent. @throws UnavailableError */
  byId(ids: readonly string[]): Promise<ReadonlyMap<string, SubjectRow>>;

  /** The rows of these lookups, by lookup; what is not there is absent. @throws UnavailableError */
  byLookup(lookups: readonly string[]): Promise<ReadonlyMap<string, SubjectRow>>;

  /**
   * Adds rows; where one of the same lookup stands, that one stays. @returns the rows that stand now, by lookup; one
   * whose id was removed before is absent
   * @throws UnavailableError
   * @throws Error when a row is malformed (nothing is stored then), or its id has another lookup
   */
  add(rows: readonly SubjectRow[]): Promise<ReadonlyMap<string, SubjectRow>>;

  /**
   * Puts other secrets in place of these rows' own; a row that is gone stays gone.
   * @throws UnavailableError
   * @throws Error when a secret is too long; nothing is stored then
   */
  rewrap(rows: readonly Pick<SubjectRow, 'id' | 'secret'>[]): Promise<void>;

  /** Rows in the order of their ids, after `after`, at most `limit`. @throws UnavailableError */
  page(after: string | undefined, limit: number): Promise<readonly SubjectRow[]>;

  /** Rows of these ids are given as `fenced` from now on, to every process. @throws UnavailableError */
  fence(ids: readonly string[]): Promise<void>;

  /** Ends fences: the rows are given as before, to every process. @throws UnavailableError */
  unfence(ids: readonly string[]): Promise<void>;

  /** Removes rows for good; an id that is not there can't be added from then on. @throws UnavailableError */
  remove(ids: readonly string[]): Promise<void>;

  /** Those of these ids that were removed. @throws UnavailableError */
  removed(ids: readonly string[]): Promise<ReadonlySet<string>>;

  /** Adds an erasure, or puts another text in place of its own. @throws UnavailableError; Error when malformed */
  putErasure(row: ErasureRow): Promise<void>;

  /** Erasures in the order of their ids, after `after`, at most `limit`. @throws UnavailableError */
  erasures(after: string | undefined, limit: number): Promise<readonly ErasureRow[]>;

  /** Resolves when the store answers. @throws UnavailableError */
  ping(): Promise<void>;

  close(): Promise<void>;
}
