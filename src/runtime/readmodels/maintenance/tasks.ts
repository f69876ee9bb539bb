/**
 * Background verifications, repairs and requests of rebuilds of a service. A record holds the last one of each kind and
 * read model, for any process to show.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { within } from '../../../lib/async/within.js';
import type { ReadStore } from '../../../ports/readStore.js';

/** How often a task renews its record. */
const RENEW_MS = 1_000;
/** A task without a renewal for this long is dead. */
const DEAD_MS = 10_000;
const KEEP_MS = 7 * 86_400_000;

/** `rebuild`: the check of the log that precedes a rebuild, and the request of it. */
export type TaskKind = 'verification' | 'repair' | 'rebuild';

export interface Task<R = unknown> {
  readonly id: string;
  readonly kind: TaskKind;
  readonly projection: string;
  /** `interrupted`: its process has ended. */
  readonly state: 'running' | 'done' | 'failed' | 'interrupted';
  readonly by: string;
  readonly reason: string | null;
  /** Time of the start, ISO 8601, UTC, milliseconds; `told_at`: time of the last renewal. */
  readonly at: string;
  readonly told_at: string;
  /** Share of the work that is done, 0 to 1; null: unknown. */
  readonly progress: number | null;
  readonly result: R | null;
  readonly failure: string | null;
}

/** Another task of this kind runs for the same read model. */
export class TaskRunningError extends Error {
  override readonly name = 'TaskRunningError';
}

export interface Tasks {
  /**
   * Starts a task. The task's failure is the error's message if `explains` accepts the error.
   * @returns the task after `waitMs` at most
   * @throws TaskRunningError, UnavailableError; within `waitMs` also errors that `explains` does not accept
   */
  start<R>(
    asked: Pick<Task, 'kind' | 'projection' | 'by' | 'reason'>,
    work: (signal: AbortSignal, report: (share: number) => void) => Promise<R>,
    options: { readonly waitMs: number; readonly explains: (error: unknown) => boolean },
  ): Promise<Task<R>>;
  last<R>(kind: TaskKind, projection: string): Promise<Task<R> | undefined>;
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
      work: (signal: AbortSignal, report: (share: number) => void) => Promise<R>,
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
      /** Renews the task's record, unless a later task that took this one for dead has replaced it. */
      const keep = async (): Promise<void> => {
        task = { ...task, told_at: now() };
        for (;;) {
          const kept = await records.put(key, task, { expected: version ?? 0, expiresAt: Date.now() + KEEP_MS });
          if (kept !== undefined) {
            version = kept;
            return;
          }
          // An earlier renewal without an answer may have been stored.
          const record = await records.get<Task>(key);
          if (record?.value.id !== task.id)
            throw new Error(`another ${asked.kind} of ${asked.projection} has taken its place`);
          version = record.version;
        }
      };
      let unforeseen: { readonly error: unknown } | undefined;
      let renewing: Promise<void> | undefined;
      const timing = setInterval(() => {
        renewing ??= keep()
          .catch((error: unknown) => logger.debug({ err: error }, 'could not store how far a task is'))
          .finally(() => (renewing = undefined));
      }, RENEW_MS);
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
          // An earlier renewal must not overwrite the last one.
          await renewing;
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
