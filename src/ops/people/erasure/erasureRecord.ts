/** Erasures as the key store keeps them. Their texts hold ids, never personal data. */
import { randomBytes } from 'node:crypto';
import { type Person, personId } from '../../../domain/erasure.js';
import type { Caller } from '../../../ports/eventStore.js';
import type { KeyStore } from '../../../ports/keyStore.js';

/** `at` and `done_at` are ISO 8601, UTC. Absent `done_at`: it is not finished. */
export interface Erasure {
  readonly id: string;
  readonly person: Person;
  readonly reason: string;
  readonly by: Caller;
  readonly request_id?: string;
  readonly at: string;
  readonly done_at?: string;
  /** Of the numbers that went with a user: once their keys are gone, nothing else tells which these were. */
  readonly phone_ids?: readonly string[];
}

type Erasures = Pick<KeyStore, 'erasures' | 'putErasure'>;

const AT_ONCE = 1_000;
const ID_BYTES = 16;

export const newErasureId = (): string => randomBytes(ID_BYTES).toString('base64url');

/** @throws UnavailableError */
export async function storeErasure(keys: Erasures, { id, ...rest }: Erasure): Promise<void> {
  await keys.putErasure({ id, text: JSON.stringify(rest) });
}

/** @throws UnavailableError */
export async function* storedErasures(keys: Pick<KeyStore, 'erasures'>): AsyncGenerator<Erasure> {
  for (let after: string | undefined; ;) {
    const rows = await keys.erasures(after, AT_ONCE);
    for (const { id, text } of rows) yield { id, ...(JSON.parse(text) as Omit<Erasure, 'id'>) };
    if (rows.length < AT_ONCE) return;
    after = rows.at(-1)?.id;
  }
}

/** The person's latest. @throws UnavailableError */
export async function erasureOf(keys: Erasures, person: Person): Promise<Erasure | undefined> {
  let latest: Erasure | undefined;
  for await (const erasure of storedErasures(keys))
    if (personId(erasure.person) === personId(person) && (latest === undefined || erasure.at > latest.at))
      latest = erasure;
  return latest;
}
