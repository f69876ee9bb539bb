/**
 * The log's seal: a second event in the stream of the log's id. EventStoreDB still takes appends, so every process
 * checks for it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LogSealedError } from '../../ports/eventStore.js';
import type { AppendTarget } from './appends.js';
import { LOG_STREAM } from './filters.js';
import { logEvent } from './log.js';

/** Longest time between a check of the seal and an append, in ms. */
const FRESH_MS = 1_000;

interface Seal {
  sealed(): Promise<boolean>;
  /** Refuses appends to a sealed log, mostly from memory. @throws LogSealedError */
  refuseWhenSealed(): Promise<void>;
  /** Sets the seal, and waits until every process has noticed it or stopped appending. */
  seal(): Promise<void>;
}

/** @param timeoutMs the longest duration of an append */
export function openSeal({ appender, reads }: AppendTarget, timeoutMs: number): Seal {
  let found = false;
  let openAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<boolean> | undefined;

  async function poll(): Promise<boolean> {
    const began = performance.now();
    if (!found) found = (await reads.last(LOG_STREAM)) > 0;
    if (!found) openAt = began;
    return found;
  }

  async function pollOnce(): Promise<boolean> {
    looking ??= poll().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  return {
    sealed: poll,
    async refuseWhenSealed() {
      const age = performance.now() - openAt;
      // After half of the time the seal is checked again without delaying the append; the next append meets a failure.
      if (!found && age < FRESH_MS) {
        if (age > FRESH_MS / 2) pollOnce().catch(() => undefined);
        return;
      }
      if (await pollOnce()) throw new LogSealedError();
    },
    async seal() {
      // A conflict means that it is sealed already.
      await appender.send(LOG_STREAM, [logEvent('LogSealed', {})], 0);
      found = true;
      await sleep(FRESH_MS + timeoutMs);
    },
  };
}
