/**
 * Verifications and repairs that a service carries out while the caller does not wait. The last one of each kind and
 * read model stands in a record that any process can show.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { within } from '../../../lib/async/within.js';
import type { ReadStore } from '../../../ports/readStore.js';

/** How often a task renews its record, in ms. */
const TELL_MS = 1_000;
/** A task that has not renewed it for so long is dead, in ms. */
const DEAD_MS = 10_000;
/** How long the record is kept, in ms. */
const KEEP_MS = 7 * 86_400_000;

export type TaskKind = 'verification' | 'repair';

export interface Task<R = unknown> {
  readonly id: string;
  readonly kind: TaskKind;
  readonly projection: string;
  /** `interrupted`: the process that carried it out has ended. */
  readonly state: 'running' | 'done' | 'failed' | 'interrupted';
  readonly by: string;
  readonly reason: string | null;
  /** When it was asked for, and when the record was renewed: ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly told_at: string;
  /** 0 to 1; null: not known yet. */
  readonly progress: number | null;
  /** Null until it is done. */
  readonly result: R | null;
  readonly failure: string | null;
}

/** Another of its kind is under way. */
export class TaskRunningError extends Error {
  override readonly name = 'TaskRunningError';
}

export interface Tasks {
  /**
   * Starts one. `work` reports its share; an error's message becomes the task's failure where `explains` allows it.
   * @returns the task as it stands after `waitMs` at most. @throws TaskRunningError, UnavailableError; what `work`
   * fails with in that time where `explains` does not allow it
   */
  start<R>(
    asked: Pick<Task, 'kind' | 'projection' | 'by' | 'reason'>,
    work: (signal: AbortSignal, tell: (share: number) => void) => Promise<R>,
    options: { readonly waitMs: number; readonly explains: (error: unknown) => boolean },
  ): Promise<Task<R>>;
  /** The last one of its kind. @throws UnavailableError */
  last<R>(kind: TaskKind, projection: string): Promise<Task<R> | undefined>;
  /** Ends those under way here. */
  close(): Promise<void>;
}

/** `now`: ISO 8601, UTC, milliseconds. */
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
    async start<R>(
      asked: Pick<Task, 'kind' | 'projection' | 'by' | 'reason'>,
      work: (signal: AbortSignal, tell: (share: number) => void) => Promise<R>,
      { waitMs, explains }: { readonly waitMs: number; readonly explains: (error: unknown) => boolean },
    ) {
      const key = keyOf(asked.kind, asked.projection);
      const stored = await records.get<Task>(key);
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
      let version = await records.put(key, task, { expected: stored?.version ?? 0, expiresAt: Date.now() + KEEP_MS });
      if (version === undefined) {
        throw new TaskRunningError(`a ${asked.kind} of ${asked.projection} was begun in this moment by somebody else`);
      }
      /** Renews the record. A task started since, which took this one for dead, stays. */
      const keep = async (): Promise<void> => {
        task = { ...task, told_at: now() };
        for (;;) {
          const kept = await records.put(key, task, { expected: version ?? 0, expiresAt: Date.now() + KEEP_MS });
          if (kept !== undefined) {
            version = kept;
            return;
          }
          // An earlier renewal of unknown outcome may have been stored: the record is still this task's then.
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
          // One renewal at a time: an earlier one must not come after the last.
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
