/** The failing parts of all processes: each process records its own, for status from any process. */
import type { Logger } from 'pino';
import type { Records } from '../../ports/readStore.js';
import type { FollowerHealth } from '../../runtime/supervision/followers.js';
import type { FailingPart } from './status.js';

const PREFIX = 'failing/';
const EVERY_MS = 1_000;
/** A record that was not renewed says nothing any more. */
const EXPIRES_MS = 5_000;

export interface OwnParts {
  readonly holder: string;
  readonly health: () => readonly FollowerHealth[];
}

/** Records which parts of this process fail, as long as any does. */
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
    // The failing engine may keep this from being recorded: readiness and metrics of the process show it all the same.
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

/** The failing parts of every process. `own`: this one's need no record. @throws UnavailableError */
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
