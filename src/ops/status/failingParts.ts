/**
 * The parts of all processes that fail: each process says so of its own in a record that expires, which the status of
 * any process, and of the command line, shows.
 */
import type { Logger } from 'pino';
import type { Records } from '../../ports/readStore.js';
import type { FollowerHealth } from '../../runtime/supervision/followers.js';
import type { FailingPart } from './status.js';

const PREFIX = 'failing/';
const EVERY_MS = 1_000;
/** A report that was not renewed tells of nothing any more. */
const EXPIRES_MS = 5_000;

/** One process's followers. */
export interface OwnParts {
  /** Names the process. */
  readonly holder: string;
  readonly health: () => readonly FollowerHealth[];
}

/** Begins to say which parts of this process fail, as long as any does. */
export function reportFailing(
  { holder, health }: OwnParts,
  records: Records,
  logger: Logger,
): { close(): Promise<void> } {
  let said = false;
  let saying: Promise<void> | undefined;

  async function say(): Promise<void> {
    const parts = failingOf({ holder, health });
    if (parts.length > 0) await records.put(PREFIX + holder, parts, { expiresAt: Date.now() + EXPIRES_MS });
    else if (said) await records.delete(PREFIX + holder);
    said = parts.length > 0;
  }

  const timer = setInterval(() => {
    // What keeps the part from working may keep this from being said: readiness and metrics of the process tell it all
    // the same.
    saying ??= say()
      .catch((error: unknown) => logger.debug({ err: error }, 'could not say which parts of this process fail'))
      .finally(() => (saying = undefined));
  }, EVERY_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      await saying;
    },
  };
}

/** The parts that fail, of every process. `own`: of this one, which need not be read. @throws UnavailableError */
export async function failingParts(records: Records, own?: OwnParts): Promise<FailingPart[]> {
  const said = await records.list<readonly FailingPart[]>(PREFIX);
  const others = said.filter(({ key }) => key !== PREFIX + (own?.holder ?? '')).flatMap(({ value }) => value);
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
