/** `Gift-Position` (design: read-your-writes): names a log and a position in it, `{log id}:{position}`. */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { ReadBySome } from '../../projections/index.js';
import { within } from '../../lib/async/within.js';
import { HttpError } from './errors.js';

/** How long a read waits for the position it asks for, and a write for its own read models, milliseconds. */
const POSITION_WAIT_MS = 1000;

const POSITION = /^([0-9a-f-]{36}):([0-9a-z]{1,64})$/;

/** Header of the log position that a write reached, or that a read wants to see. */
export const POSITION_HEADER = 'Gift-Position';

/** A position as the header says it. */
export const positionText = (logId: string, position: Position): string => `${logId}:${position}`;

/** Something that follows the log: a read model, or a view made of one. */
export interface Follower {
  /** Waits until everything up to `position` is in it, at most `timeoutMs`. @returns whether it is. */
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}

/** What a log's gate waits for. */
export interface Followers {
  /** Waited for on every route. */
  readonly always: readonly Follower[];
  /** Waited for on the routes that read them. */
  readonly where: Readonly<Record<ReadBySome, Follower>>;
}

/**
 * Waits until the read models that a write touches show it, a second at most. What has been written stands, and is
 * answered all the same where they are late or can't be reached: who is told otherwise would buy once more.
 */
export async function waitUntilProjected(position: Position, followers: readonly Follower[]): Promise<void> {
  const reached = Promise.all(followers.map((follower) => follower.reached(position, POSITION_WAIT_MS))).catch(
    (error: unknown) => {
      if (!(error instanceof UnavailableError)) throw error;
    },
  );
  await within(reached, POSITION_WAIT_MS, () => undefined);
}

/** Reads, writes and waits for positions of one log. */
export interface PositionGate {
  /**
   * The position that a header names; `undefined` without a header, and for one of another log. @throws HttpError
   * `invalid_position`
   */
  parse(header: string | undefined): Position | undefined;
  /**
   * The position of a header that was stored with an answer; `undefined` without one, and where none of this log can be
   * meant: such a one counts as absent.
   */
  stored(header: string | undefined): Position | undefined;
  /** A position as a header says it. */
  format(position: Position): string;
  /**
   * Waits until every read model that a route answers from has reached the position. @throws UnavailableError after a
   * second
   */
  wait(position: Position, reads?: readonly ReadBySome[]): Promise<void>;
  /**
   * Waits until every read model that a route answers from shows the whole log as it stands now. @throws
   * UnavailableError after a second, or where the log can't be reached
   */
  waitForEnd(reads?: readonly ReadBySome[]): Promise<void>;
}

/** The gate of a log, for the read models that answers are made of. */
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
  const read = (header: string): { readonly log?: string | undefined; readonly position?: string | undefined } => {
    const [, log, position] = POSITION.exec(header) ?? [];
    return { log, position };
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
      const { log, position } = read(header);
      if (log === undefined || position === undefined) throw new HttpError('invalid_position');
      if (log !== logId) return undefined;
      if (!events.isPosition(position)) throw new HttpError('invalid_position');
      return position;
    },
    stored(header) {
      const { log, position } = read(header ?? '');
      return log === logId && position !== undefined && events.isPosition(position) ? position : undefined;
    },
    format: (position) => positionText(logId, position),
  };
}
