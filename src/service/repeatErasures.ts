/** Detects a log or key store that was restored to an earlier time, before anything is served from it. */
import type { Logger } from 'pino';
import { currentTime } from '../lib/clock.js';
import { eraseRecordsOf, type ErasureDeps, type Looked, reapplyErasures } from '../ops/people/index.js';
import type { Records } from '../ports/readStore.js';
import { storedPosition } from '../ports/storedPosition.js';
import { UnavailableError } from '../ports/unavailable.js';

const LOOKED = 'erasures/looked';

/**
 * Repeats erasures that a restore of the log or the key store has undone. An erasure that fails for its own reason is
 * left to the processes with the role `processor`, which report it.
 * @throws UnavailableError where an engine did not answer: not all erasures were repeated
 */
export async function repeatErasures(
  deps: Pick<ErasureDeps, 'events' | 'keys' | 'subjects' | 'hash'>,
  records: Records,
  logger: Logger,
): Promise<void> {
  const nothing = async (): Promise<void> => undefined;
  const { again, open, looked } = await reapplyErasures(
    {
      ...deps,
      settle: nothing,
      removeRecords: async (person) => eraseRecordsOf({ records, hash: deps.hash }, person),
      removeDerived: nothing,
    },
    currentTime(),
    { looked: await earlierLook(records, deps) },
  );
  if (again > 0)
    logger.warn(
      { repeated: again },
      'the log or the key store was put back to before these erasures: they were repeated',
    );
  for (const { erasure, error } of open)
    logger.error({ err: error, erasure: erasure.id }, 'an erasure that a restore had undone is not repeated');
  const unavailable = open.find(({ error }) => error instanceof UnavailableError);
  if (unavailable !== undefined) throw unavailable.error;
  if (looked !== undefined) await unlessAway(records.put(LOOKED, looked));
}

async function earlierLook(records: Records, { events }: Pick<ErasureDeps, 'events'>): Promise<Looked | undefined> {
  const looked = (await unlessAway(records.get<Looked>(LOOKED)))?.value;
  return looked !== undefined && (await storedPosition(events, looked.position)).invalid === null ? looked : undefined;
}

/** The call's result; `undefined` while the read store is unavailable: a start can do without the record. */
async function unlessAway<T>(call: Promise<T>): Promise<T | undefined> {
  return call.catch((error: unknown) => {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  });
}
