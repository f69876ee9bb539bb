/** Each process records its failing parts, so that any process can show the status of all. */
import type { Logger } from 'pino';
import { everyBeats } from '../../lib/async/beats.js';
import { systemMs } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import type { FollowerHealth } from '../../runtime/supervision/followers.js';
import type { FailingPart } from './status.js';

const PREFIX = 'failing/';
const EVERY_MS = 1_000;
/** Milliseconds until a record expires, after its last renewal. */
const EXPIRES_MS = 5_000;

export interface OwnParts {
  readonly holder: string;
  readonly health: () => readonly FollowerHealth[];
}

export function reportFailing(
  { holder, health }: OwnParts,
  records: Records,
  logger: Logger,
): { close(): Promise<void> } {
  let recorded = false;
  let recording: Promise<void> | undefined;

  async function record(): Promise<void> {
    const parts = failingOf({ holder, health });
    if (parts.length > 0) await records.put(PREFIX + holder, parts, { expiresAt: systemMs() + EXPIRES_MS });
    else if (recorded) await records.delete(PREFIX + holder);
    recorded = parts.length > 0;
  }

  const stop = everyBeats(EVERY_MS, () => {
    // A failing engine may not take the record: readiness and metrics of this process show the failure all the same.
    recording ??= record()
      .catch((error: unknown) => logger.debug({ err: error }, 'could not say which parts of this process fail'))
      .finally(() => (recording = undefined));
  });
  return {
    async close() {
      stop();
      await recording;
    },
  };
}

export async function failingParts(records: Records, own?: OwnParts): Promise<FailingPart[]> {
  const all = await records.list<readonly FailingPart[]>(PREFIX);
  const others = all.filter(({ key }) => key !== PREFIX + (own?.holder ?? '')).flatMap(({ value }) => value);
  return [...(own === undefined ? [] : failingOf(own)), ...others];
}

function failingOf({ holder, health }: OwnParts): FailingPart[] {
  return health()
    .filter(({ failing }) => failing)
    .map(({ part, since = null, failures, why = null }) => ({
      kind: 'part',
      name: part,
      process: holder,
      since,
      failures,
      why,
    }));
}
