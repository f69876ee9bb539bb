import type { Logger } from 'pino';
import type { Erasures } from '../ops/people/index.js';
import { UnavailableError } from '../ports/unavailable.js';

/**
 * Repeats erasures that a restore of the log or the key store has undone. An erasure that fails for its own reason is
 * left to the processes with the role `processor`, which report it.
 * @throws UnavailableError where an engine did not answer: not all erasures were repeated
 */
export async function repeatErasures(
  erasures: Pick<Erasures, 'repeat'>,
  options: Parameters<Erasures['repeat']>[0],
  logger: Logger,
): Promise<void> {
  const { again, open } = await erasures.repeat(options);
  if (again > 0)
    logger.warn(
      { repeated: again },
      'the log or the key store was put back to before these erasures: they were repeated',
    );
  for (const { erasure, error } of open)
    logger.error({ err: error, erasure: erasure.id }, 'an erasure that a restore had undone is not repeated');
  const unavailable = open.find(({ error }) => error instanceof UnavailableError);
  if (unavailable !== undefined) throw unavailable.error;
}
