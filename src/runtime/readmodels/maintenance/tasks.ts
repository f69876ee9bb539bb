/**
 * Verifications and repairs that a service carries out for somebody who does not wait: what became of the last one of
 * each kind stands in a record, which any process can show. One of a kind and projection at a time.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { within } from '../../../lib/async/within.js';
import type { ReadStore } from '../../../ports/readStore.js';

/** How often a task says that it lives, in ms. */
const TELL_MS = 1_000;
/** One that has said nothing for so long is dead, in ms. */
const DEAD_MS = 10_000;
/** How long what became of it is kept, in ms. */
const KEEP_MS = 7 * 86_400_000;

/** What is done. */
export type TaskKind = 'verification' | 'repair';

/** One task. */
export interface Task<R = unknown> {
  readonly id: string;
  readonly kind: TaskKind;
  /** The projection's name. */
  readonly projection: string;
  /** `interrupted`: the process that carried it out has ended. */
  readonly state: 'running' | 'done' | 'failed' | 'interrupted';
  readonly by: string;
  readonly reason: string | null;
  /** When it was asked for, and when it last said something: ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly told_at: string;
  /** How far it is: 0 to 1; null: not known yet. */
  readonly progress: number | null;
  /** What came of it; null until it is done. */
  readonly result: R | null;
  /** Why it failed. */
  readonly failure: string | null;
}

/** Another of its kind is under way. */
export class TaskRunningError extends Error {
  override readonly name = 'TaskRunningError';
}

/** Carries tasks out. */
export interface Tasks {
  /**
   * Begins one. `work` tells now and then how far it is. An error's message becomes the task's failure where `explains`
   * says that it is meant to be shown.
   * @returns the task as it stands after `waitMs` at most. @throws TaskRunningError, UnavailableError; within that
   * time, what `work` fails with where `explains` does not know it
   */
  begin<R>(
    asked: Pick<Task, 'kind' | 'projection' | 'by' | 'reason'>,
    work: (signal: AbortSignal, tell: (share: number) => void) => Promise<R>,
    options: { readonly waitMs: number; readonly explains: (error: unknown) => boolean },
  ): Promise<Task<R>>;
  /** The last one of its kind; `undefined`: none is known. @throws UnavailableError */
  last<R>(kind: TaskKind, projection: string): Promise<Task<R> | undefined>;
  /** Ends those that are under way here. */
  close(): Promise<void>;
}

/** Makes ready. `now`: ISO 8601, UTC, milliseconds. */
export function openTasks(store: Pick<ReadStore, 'records'>, logger: Logger, now: () => string): Tasks {
  const { records } = store;
  const closing = new AbortController();
  const running = new Set<Promise<unknown>>();
  const keyOf = (kind: TaskKind, projection: string): string => `task/${kind}/${projection}`;

  async function last<R>(kind: TaskKind, projection: string): Promise<Task<R> | undefined> {
    const task = (await records.get<Task<R>>(keyOf(kind, projection)))?.value;
    if (task?.state !== 'running' || Date.parse(now()) - Date.parse(task.told_at) < DEAD_MS) return task;
    return { ...task, state: 'interrupted' };
  }

  return {
    last,
    async begin<R>(
      asked: Pick<Task, 'kind' | 'projection' | 'by' | 'reason'>,
      work: (signal: AbortSignal, tell: (share: number) => void) => Promise<R>,
      { waitMs, explains }: { readonly waitMs: number; readonly explains: (error: unknown) => boolean },
    ) {
      const key = keyOf(asked.kind, asked.projection);
      const standing = await records.get<Task>(key);
      const before = await last(asked.kind, asked.projection);
      if (before?.state === 'running')
        throw new TaskRunningError(
          `a ${asked.kind} of ${asked.projection} is under way since ${before.at}, asked for by ${before.by}`,
        );
      let task: Task<R> = {
        id: randomUUID(),
        ...asked,
        state: 'running',
        at: now(),
        told_at: now(),
        progress: null,
        result: null,
        failure: null,
      };
      let version = await records.put(key, task, { expected: standing?.version ?? 0, expiresAt: Date.now() + KEEP_MS });
      if (version === undefined) {
        throw new TaskRunningError(`a ${asked.kind} of ${asked.projection} was begun in this moment by somebody else`);
      }
      /** Keeps how it stands. What has been begun since, by whoever took this one for dead, stays. */
      const keep = async (): Promise<void> => {
        task = { ...task, told_at: now() };
        for (;;) {
          const kept = await records.put(key, task, { expected: version ?? 0, expiresAt: Date.now() + KEEP_MS });
          if (kept !== undefined) {
            version = kept;
            return;
          }
          // An earlier word whose outcome was unknown may have been stored after all; then the record is still this
          // task's.
          const record = await records.get<Task>(key);
          if (record?.value.id !== task.id)
            throw new Error(`another ${asked.kind} of ${asked.projection} has taken its place`);
          version = record.version;
        }
      };
      let unforeseen: { readonly error: unknown } | undefined;
      let telling: Promise<void> | undefined;
      const timing = setInterval(() => {
        telling ??= keep()
          .catch((error: unknown) => logger.debug({ err: error }, 'could not tell how far a task is'))
          .finally(() => (telling = undefined));
      }, TELL_MS);
      const done = work(closing.signal, (share) => (task = { ...task, progress: share }))
        .then(
          (result) =>
            (task = closing.signal.aborted
              ? { ...task, state: 'interrupted' }
              : { ...task, state: 'done', result, progress: 1 }),
          (error: unknown) => {
            const known = explains(error);
            if (!known && !closing.signal.aborted) {
              unforeseen = { error };
              logger.error({ err: error, task: asked.kind, projection: asked.projection }, 'a task failed');
            }
            const failure = known && error instanceof Error ? error.message : 'it failed: see the log of the service';
            task = closing.signal.aborted ? { ...task, state: 'interrupted' } : { ...task, state: 'failed', failure };
          },
        )
        .then(async () => {
          clearInterval(timing);
          // One word at a time: an earlier one that is still on its way must not come after the last.
          await telling;
          await keep().catch((error: unknown) =>
            logger.warn({ err: error, task: asked.kind }, 'what became of a task could not be kept'),
          );
          running.delete(done);
        });
      running.add(done);
      await within(done, waitMs, () => undefined);
      if (unforeseen !== undefined) throw unforeseen.error;
      return task;
    },
    async close() {
      closing.abort();
      await Promise.all(running);
    },
  };
}
