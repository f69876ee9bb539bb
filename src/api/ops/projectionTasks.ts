import type { StartedOperation } from '../../commands/recordAccess.js';
import type { ReadStore } from '../../ports/readStore.js';
import { refuseAlteredLog } from '../../ops/readmodels/refuseAlteredLog.js';
import { type RepairedDocuments, repairReadModel } from '../../ops/readmodels/repairReadModel.js';
import { verifyReadModel } from '../../ops/readmodels/verifyReadModel.js';
import { AlteredEventError } from '../../ports/unavailable.js';
import {
  type BuildId,
  buildOf,
  MaintenanceRefusedError,
  MAX_REPAIRS,
  type RepairOutcome,
  type Task,
  type TaskKind,
  TaskRunningError,
} from '../../runtime/readmodels/index.js';
import type { Pace } from '../../runtime/coordination/index.js';
import { dataSchema, record } from '../representation/schemas.js';
import { HttpError } from '../pipeline/errors.js';
import type { Call, Schema } from '../pipeline/route.js';
import type { Named, Upkeep } from './deps.js';
import { alteredProperty, type OpsAnswer, type OpsRoute, reasonProperty } from './frame.js';
import {
  repairExample,
  repairSchema,
  taskSchema,
  verificationExample,
  verificationSchema,
} from './projectionSchemas.js';

/** How long an answer waits for the end of a task, ms. */
export const TASK_WAIT_MS = 5_000;
const MAX_DIFFERENCES = 1_000;
const MAX_SAMPLE = 10_000;

export interface TaskRoutesOptions {
  readonly of: (call: Call) => Named;
  readonly exists: NonNullable<OpsRoute['exists']>;
  readonly upkeep: Upkeep;
  readonly store: ReadStore;
  readonly pace: () => Pace;
  readonly params: Readonly<Record<string, string>>;
}

interface VerificationResult extends BuildId {
  readonly documents: number;
  readonly differences: number;
  readonly unsettled: number;
  readonly behind: boolean;
  readonly position: string | null;
  readonly found: readonly object[];
}

/** Whether a failed task shows the error's message. */
export const explains = (error: unknown): boolean =>
  error instanceof MaintenanceRefusedError || error instanceof AlteredEventError;

export const busy = (message: string): HttpError => new HttpError('projection_busy', { message });

export function taskRoutes({
  of,
  exists,
  upkeep: { tasks, openScratch, signedLog },
  store,
  pace,
  params,
}: TaskRoutesOptions): OpsRoute[] {
  async function startTask<R>(
    kind: TaskKind,
    { projection, asked }: Named,
    work: (signal: AbortSignal, report: (share: number) => void) => Promise<R>,
    count: (result: R) => number,
  ): Promise<OpsAnswer> {
    try {
      const task = await tasks.start(
        { kind, projection: projection.name, by: asked.by, reason: asked.reason ?? null },
        work,
        { waitMs: TASK_WAIT_MS, explains },
      );
      if (task.state === 'failed' && task.failure !== null)
        throw new HttpError('projection_refused', { message: task.failure });
      return {
        status: task.state === 'running' ? 202 : 200,
        body: { data: task },
        shown: task.result === null ? 0 : count(task.result),
      };
    } catch (error) {
      if (error instanceof TaskRunningError) throw busy(error.message);
      throw error;
    }
  }

  async function last<R>(kind: TaskKind, { projection }: Named, count: (result: R) => number): Promise<OpsAnswer> {
    const task: Task<R> | undefined = await tasks.last<R>(kind, projection.name);
    if (task === undefined) throw new HttpError('task_not_found');
    return { status: 200, body: { data: task }, shown: task.result === null ? 0 : count(task.result) };
  }

  async function verification(
    { projection, deps: { events } }: Named,
    sample: number | undefined,
    signal: AbortSignal,
    report: (share: number) => void,
  ): Promise<VerificationResult> {
    const found: object[] = [];
    const verified = await verifyReadModel({
      events,
      store,
      projection,
      pace: pace(),
      signal,
      sample,
      openScratch,
      onDifference({ id, kind, servedAt, logAt, fields }) {
        if (found.length < MAX_DIFFERENCES)
          found.push({
            id,
            kind,
            ...(servedAt === undefined ? {} : { served_at: servedAt }),
            ...(logAt === undefined ? {} : { log_at: logAt }),
            fields,
          });
      },
      onProgress(progress) {
        // Folding takes most of the time.
        if (progress.step === 'fold' && progress.progress.total !== undefined)
          report(Math.min(0.7, (progress.progress.events / Math.max(1, progress.progress.total)) * 0.7));
      },
    });
    const { build, documents, differences, unsettled, behind, through } = verified;
    return { ...buildOf(build), documents, differences, unsettled, behind, position: through ?? null, found };
  }

  async function repairs(
    { projection, deps }: Named,
    wanted: RepairedDocuments,
    altered: boolean,
    operation: StartedOperation,
    signal: AbortSignal,
    report: (share: number) => void,
  ): Promise<{ documents: readonly RepairOutcome[] }> {
    try {
      if (!altered) await refuseAlteredLog(signedLog, { signal });
      const outcomes = await repairReadModel(deps, projection, wanted, {
        pace: pace(),
        signal,
        onProgress: (_, share) => report(share * 0.9),
        record: async () => operation,
      });
      return { documents: outcomes ?? [] };
    } catch (error) {
      // Ends the access record also where nothing was found to repair.
      await operation.end(0, null, false);
      throw error;
    }
  }

  const shared = { tag: 'Projections', roles: ['support'], params, exists } as const;
  const task = (kind: 'Verification' | 'Repair'): { schema: Schema; example: object } =>
    kind === 'Verification'
      ? { schema: dataSchema(taskSchema(kind, verificationSchema)), example: { data: verificationExample } }
      : { schema: dataSchema(taskSchema(kind, repairSchema)), example: { data: repairExample } };
  const running = (kind: 'Verification' | 'Repair'): { schema: Schema; example: object } => {
    const { schema, example } = task(kind);
    return {
      schema,
      example: { data: { ...(example as { data: object }).data, state: 'running', progress: 0.4, result: null } },
    };
  };
  const differences = (result: VerificationResult): number => result.found.length;
  const documents = (result: { readonly documents: readonly unknown[] }): number => result.documents.length;

  return [
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/:name/verification',
      operation: 'verifyProjection',
      roles: ['support', 'auditor'],
      summary: 'Compare a read model with the log, document by document',
      description:
        'Folds the log into a temporary copy and compares it by id with the served documents, which stay in use; documents that changed meanwhile are compared again. The answer is 202 where this takes longer than 5 s. ' +
        'With `sample` only this many random documents are compared: quick, but missing documents are not found.',
      body: {
        type: 'object',
        additionalProperties: false,
        properties: { sample: { type: 'integer', minimum: 1, maximum: MAX_SAMPLE }, reason: reasonProperty },
      },
      bodyOptional: true,
      bodyExample: { sample: 500 },
      answers: [
        { status: 200, description: 'It has ended.', ...task('Verification') },
        { status: 202, description: 'It is under way.', ...running('Verification') },
      ],
      errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
      handle: async (call) => {
        const named = of(call);
        return startTask(
          'verification',
          named,
          async (signal, report) => verification(named, call.body['sample'] as number | undefined, signal, report),
          differences,
        );
      },
    },
    {
      ...shared,
      method: 'GET',
      path: '/ops/projections/:name/verification',
      operation: 'getVerification',
      roles: ['support', 'auditor'],
      summary: 'The last verification of a read model',
      answers: [{ status: 200, description: 'Its progress or result.', ...task('Verification') }],
      errors: ['projection_not_found', 'task_not_found'],
      handle: async (call) => last('verification', of(call), differences),
    },
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/:name/repair',
      operation: 'repairProjection',
      summary: 'Repair single documents of a read model',
      description:
        'The log is first held against what was signed over it: one that was altered is refused. Folds the documents from the log and replaces them while they are served; quarantined documents return to service if this release can fold them. `found` repairs those that differed in the last verification. ' +
        'The answer is 202 where this takes longer than 5 s.',
      body: record(
        {
          ids: {
            type: 'array',
            minItems: 1,
            maxItems: MAX_REPAIRS,
            items: { type: 'string', minLength: 1, maxLength: 200 },
          },
          found: { type: 'boolean', const: true, 'x-message': 'found must be true' },
          altered: alteredProperty,
          reason: reasonProperty,
        },
        ['reason'],
      ),
      bodyExample: { ids: ['5f2c9d6a1b7e4c80d3a1'], reason: 'ticket 4711' },
      answers: [
        { status: 200, description: 'It has ended.', ...task('Repair') },
        { status: 202, description: 'It is under way.', ...running('Repair') },
      ],
      errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
      async handle(call, _sight, record) {
        const named = of(call);
        const { ids, found } = call.body as { readonly ids?: readonly string[]; readonly found?: true };
        if ((ids === undefined) === (found === undefined))
          throw new HttpError('schema', { message: 'give ids, or found' });
        // The call is recorded first: the projector carries out the request even if this process dies.
        const operation = await record();
        try {
          return await startTask(
            'repair',
            named,
            async (signal, report) =>
              repairs(named, ids ?? 'found', call.body['altered'] === true, operation, signal, report),
            documents,
          );
        } catch (error) {
          // Ends the access record also where the task never started.
          await operation.end(0, null, false);
          throw error;
        }
      },
    },
    {
      ...shared,
      method: 'GET',
      path: '/ops/projections/:name/repair',
      operation: 'getRepair',
      summary: 'The last repair of a read model',
      answers: [{ status: 200, description: 'Its progress, or the outcome for each document.', ...task('Repair') }],
      errors: ['projection_not_found', 'task_not_found'],
      handle: async (call) => last('repair', of(call), documents),
    },
  ];
}
