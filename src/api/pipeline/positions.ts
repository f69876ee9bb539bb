/** `Gift-Position` (docs/design.md#read-your-writes): `{log id}:{position}`. */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { parsedPosition, positionText } from '../../ports/positionText.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { ReadBySome } from '../../projections/index.js';
import { within } from '../../lib/async/within.js';
import { HttpError } from './errors.js';

/** How long a read waits for its position, and a write for its read models, ms. */
const POSITION_WAIT_MS = 1000;

/** In an answer the position of its write; in a request the position to wait for. */
export const POSITION_HEADER = 'Gift-Position';

export interface Follower {
  /** Waits at most `timeoutMs`. False: not everything up to `position` is in it. */
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}

export interface Followers {
  /** For every route. */
  readonly always: readonly Follower[];
  /** For the routes that read them. */
  readonly where: Readonly<Record<ReadBySome, Follower>>;
}

/**
 * Waits at most a second for these read models. Late or unreachable ones are no error: the write stands, and a caller
 * with an error would buy once more.
 */
export async function waitUntilProjected(position: Position, followers: readonly Follower[]): Promise<void> {
  const reached = Promise.all(followers.map((follower) => follower.reached(position, POSITION_WAIT_MS))).catch(
    (error: unknown) => {
      if (!(error instanceof UnavailableError)) throw error;
    },
  );
  await within(reached, POSITION_WAIT_MS, () => undefined);
}

export interface PositionGate {
  /** `undefined`: no header, or another log. @throws HttpError `invalid_position` */
  parse(header: string | undefined): Position | undefined;
  /** From a stored answer; `undefined`: no header, or another log. */
  stored(header: string | undefined): Position | undefined;
  format(position: Position): string;
  /** @throws UnavailableError after a second */
  wait(position: Position, reads?: readonly ReadBySome[]): Promise<void>;
  /** Waits for the log's present end. @throws UnavailableError after a second, or without the log */
  waitForEnd(reads?: readonly ReadBySome[]): Promise<void>;
}

export function positionGate(
  events: Pick<EventStore, 'logId' | 'isPosition' | 'end'>,
  { always, where }: Followers,
): PositionGate {
  const { logId } = events;
  const wait: PositionGate['wait'] = async (position, reads = []) => {
    const reached = await Promise.all(
      [...always, ...reads.map((name) => where[name])].map((follower) => follower.reached(position, POSITION_WAIT_MS)),
    );
    if (reached.includes(false))
      throw new UnavailableError('the read models have not reached the position that was asked for');
  };
  return {
    wait,
    async waitForEnd(reads) {
      const last = await within(events.end(), POSITION_WAIT_MS, () => {
        throw new UnavailableError('the log does not say where it ends');
      });
      if (last !== undefined) await wait(last, reads);
    },
    parse(header) {
      if (header === undefined) return undefined;
      const parsed = parsedPosition(header);
      if (parsed === undefined) throw new HttpError('invalid_position');
      if (parsed.log !== logId) return undefined;
      if (!events.isPosition(parsed.position)) throw new HttpError('invalid_position');
      return parsed.position;
    },
    stored(header) {
      const parsed = parsedPosition(header ?? '');
      return parsed?.log === logId && events.isPosition(parsed.position) ? parsed.position : undefined;
    },
    format: (position) => positionText(logId, position),
  };
}
