/** Long polls of the event feed: one poll for new entries serves all requests that wait in this process. */
import { pause } from '../../lib/async/pause.js';
import { after, endTimer } from '../../lib/world.js';
import type { Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { FeedDocument } from '../../projections/feed/feed.js';
import { newSources } from '../../projections/feed/feedPage.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { HttpError } from '../pipeline/errors.js';

const POLL_MS = 50;
/** The most waiting requests, since each holds a connection. */
const MOST_WAITING = { inAll: 1_000, perCaller: 20 };

interface Wait {
  /** Name of the caller that holds the connection. */
  readonly caller: string;
  /** Sources of the events that the request waits for (`FeedPage.sources`). */
  readonly sources: readonly string[];
  /** Position up to which the caller has read the feed. */
  readonly position: Position | undefined;
  readonly ms: number;
  /** Signal that aborts once the caller has left. */
  readonly left: AbortSignal;
}

interface FeedWatch {
  /**
   * Waits until there is an event, the time is over, the caller has left, or the process stops.
   * @returns whether there may be an event
   * @throws HttpError `too_many_requests`; UnavailableError
   */
  wait(wait: Wait): Promise<boolean>;
}

interface Waiting extends Pick<Wait, 'sources'> {
  end(outcome: boolean | Error): void;
}

export function feedWatch(feed: Pick<ReadModel<FeedDocument>, 'folded' | 'find'>, stopping: AbortSignal): FeedWatch {
  const all = new Set<Waiting>();
  const byCaller = new Map<string, number>();
  /** Position up to which the feed was polled for all waiting requests. */
  let seen: Position = '';
  let looking = false;

  stopping.addEventListener('abort', () => {
    for (const one of all) one.end(false);
  });

  async function poll(): Promise<void> {
    while (all.size > 0) {
      await pause(POLL_MS, stopping);
      const now = await feed.folded();
      if (now === undefined || now <= seen) continue;
      const sources = await newSources(feed, seen, now);
      for (const one of all) if (sources === undefined || one.sources.some((name) => sources.has(name))) one.end(true);
      seen = now;
    }
  }

  function start(position: Position | undefined): void {
    if (looking) return;
    looking = true;
    seen = position ?? '';
    poll()
      .catch((error: unknown) => {
        for (const one of all) one.end(error as Error);
      })
      .finally(() => {
        looking = false;
        // A request may have begun to wait while the last ones were ended.
        if (all.size > 0) start(undefined);
      });
  }

  return {
    async wait({ caller, sources, position, ms, left }) {
      const own = byCaller.get(caller) ?? 0;
      if (own >= MOST_WAITING.perCaller) throw new HttpError('too_many_requests');
      if (all.size >= MOST_WAITING.inAll) throw new UnavailableError('too many requests wait for events');
      if (looking && (position ?? '') < seen) return true;
      byCaller.set(caller, own + 1);
      try {
        return await new Promise<boolean>((resolve, reject) => {
          const timer = after(ms, () => waiting.end(false));
          const leave = (): void => waiting.end(false);
          const waiting: Waiting = {
            sources,
            end(outcome) {
              endTimer(timer);
              left.removeEventListener('abort', leave);
              all.delete(waiting);
              if (outcome instanceof Error) reject(outcome);
              else resolve(outcome);
            },
          };
          all.add(waiting);
          left.addEventListener('abort', leave);
          if (left.aborted || stopping.aborted) waiting.end(false);
          start(position);
        });
      } finally {
        const rest = (byCaller.get(caller) ?? 1) - 1;
        if (rest > 0) byCaller.set(caller, rest);
        else byCaller.delete(caller);
      }
    },
  };
}
