/** Erasures as the key store holds them. Their texts hold ids, never personal data. */
import { fold } from '../../../domain/decider.js';
import { erasedAggregate, type Person, personId } from '../../../domain/erasure.js';
import { pages } from '../../../lib/async/pages.js';
import { randomBytes } from '../../../lib/world.js';
import type { Caller, EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import type { ErasureRow, KeyStore } from '../../../ports/keyStore.js';
import type { Subjects } from '../../../runtime/personal/index.js';

/** A log with its key store. */
export interface ErasureLog {
  readonly events: EventStore;
  readonly keys: KeyStore;
  readonly subjects: Pick<Subjects, 'rowsForErasure' | 'secretsForErasure'>;
}

/** An erasure, which is unfinished with neither `done_at` nor `withdrawn_at`. Times are ISO 8601, UTC. */
export interface Erasure {
  readonly id: string;
  readonly person: Person;
  readonly reason: string;
  readonly by: Caller;
  readonly request_id?: string;
  readonly at: string;
  /** Time when a request over HTTP is carried out, unless it is withdrawn. */
  readonly due_at?: string;
  /** Time when the execution of a request began. */
  readonly started_at?: string;
  readonly done_at?: string;
  /**
   * Time when support withdrew the request, or a user was found to have taken the number before anything was destroyed.
   */
  readonly withdrawn_at?: string;
}

type Erasures = Pick<KeyStore, 'erasures' | 'putErasure'>;

const AT_ONCE = 1_000;
const ID_BYTES = 16;
const ID = /^[\w-]{22}$/;

export const newErasureId = (): string => randomBytes(ID_BYTES).toString('base64url');

/** @throws UnavailableError */
export async function storeErasure(keys: Erasures, { id, ...rest }: Erasure): Promise<void> {
  await keys.putErasure({ id, text: JSON.stringify(rest) });
}

/** @throws UnavailableError */
export async function* storedErasures(keys: Pick<KeyStore, 'erasures'>): AsyncGenerator<Erasure> {
  for await (const rows of pages<ErasureRow>(AT_ONCE, async (last) => keys.erasures(last?.id, AT_ONCE)))
    for (const { id, text } of rows) yield { id, ...(JSON.parse(text) as Omit<Erasure, 'id'>) };
}

export const isFinished = ({ done_at, withdrawn_at }: Erasure): boolean => (done_at ?? withdrawn_at) !== undefined;

/** Whether the erasure is a request for which nothing was done yet. */
export const isRequest = (erasure: Erasure): erasure is Erasure & { readonly due_at: string } =>
  erasure.due_at !== undefined && erasure.started_at === undefined && !isFinished(erasure);

export function unfinished(erasure: Erasure): Erasure {
  const { done_at: _, ...open } = erasure;
  return open;
}

/** The person's latest erasure that was not withdrawn. @throws UnavailableError */
export async function erasureOf(keys: Erasures, person: Person): Promise<Erasure | undefined> {
  let latest: Erasure | undefined;
  for await (const erasure of storedErasures(keys))
    if (
      personId(erasure.person) === personId(person) &&
      erasure.withdrawn_at === undefined &&
      (latest === undefined || erasure.at > latest.at)
    )
      latest = erasure;
  return latest;
}

/**
 * Position of the erasure; `undefined` where the person is not erased, or was added again by an import that raced with
 * the erasure.
 */
export function erasedIn(history: readonly RecordedEvent[]): Position | undefined {
  return fold(erasedAggregate, history) ? history.findLast(({ type }) => type === 'PersonErased')?.position : undefined;
}

/** The erasure in a line of an external list, which holds one as JSON; `undefined` for any other line. */
export function parseErasureLine(line: string): Erasure | undefined {
  try {
    const erasure = JSON.parse(line) as Partial<Erasure> | null;
    return isErasure(erasure) ? erasure : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isErasure(found: Partial<Erasure> | null): found is Erasure {
  const { id, person, reason, by, at } = found ?? {};
  const named =
    person?.kind === 'user'
      ? typeof person.userId === 'string' && person.userId !== ''
      : person?.kind === 'number' && ID.test(person.phoneId);
  return (
    typeof id === 'string' &&
    ID.test(id) &&
    named &&
    typeof reason === 'string' &&
    typeof by === 'object' &&
    typeof at === 'string' &&
    !Number.isNaN(Date.parse(at))
  );
}
