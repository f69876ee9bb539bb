/** How subcommands request maintenance, watch it, and carry it out where no other process does. */
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { pause } from '../../lib/async/pause.js';
import { resources } from '../../lib/async/resources.js';
import { currentTime } from '../../lib/clock.js';
import { findSealKeys } from '../../service/keys.js';
import { maintenanceTools } from '../../service/projector/inProcess.js';
import { diskRemedy } from '../../service/startFailure.js';
import { treeDir } from '../../service/tree.js';
import { type EventStore, LogSealedError } from '../../ports/eventStore.js';
import { AlteredEventError, UnavailableError } from '../../ports/unavailable.js';
import {
  type Requested,
  maintenance,
  MaintenanceRefusedError,
  type Order,
  type Projection,
  startMaintenance,
  startProjector,
} from '../../runtime/readmodels/index.js';
import { followers } from '../../runtime/supervision/followers.js';
import { recordedWork } from '../../ops/readmodels/orders.js';
import { PROJECTIONS } from '../../projections/index.js';
import { commandLineCaller } from '../caller.js';
import type { OpenedStores } from '../engines.js';
import { cliAccess, reasonOf } from '../exports.js';
import { jsonLine, printable } from '../output.js';
import { type Progress, progressBar } from '../progress.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from '../terminal.js';

/** Milliseconds between lines of JSON that say the same. */
export const LINE_MS = 1_000;
const POLL_MS = 50;
const MAX_OUTAGE_MS = 300_000;

export interface MaintenanceFlags {
  readonly altered?: true;
  readonly reason?: string;
  readonly json?: true;
}

export const ALTERED_OPTION = [
  '--altered',
  'also from a log that is not what was signed (gift audit verify); wants --reason',
] as const;

/** The reason; null: none was given. @throws CommandFailure for `--altered` without a reason */
export function maintenanceReason({ altered, reason }: MaintenanceFlags): string | null {
  const text = reasonOf(reason);
  if (altered === true && text === null) throw usageFailure('--altered wants --reason "<why>"');
  return text;
}

/** @throws CommandFailure naming the projections */
export function projectionOf(name: string): Projection {
  const found = PROJECTIONS.find((projection) => projection.name === name);
  if (found === undefined)
    throw new CommandFailure(
      `there is no projection ${JSON.stringify(name)}: there are ${PROJECTIONS.map((projection) => projection.name).join(', ')}`,
    );
  return found;
}

export interface Maintaining {
  readonly requested: Requested;
  readonly bar: Progress;
  /** Writes a line of JSON, where lines of JSON are requested. */
  say(action: string, more: object): Promise<void>;
  /** Writes lines, where no lines of JSON are requested. */
  write(...lines: readonly string[]): Promise<void>;
  /**
   * Polls until `look` returns something. Engines that do not answer are waited for.
   * @throws CommandFailure with `whenInterrupted`; UnavailableError after five minutes
   */
  until<T>(look: () => Promise<T | undefined>, whenInterrupted: string): Promise<T>;
  /**
   * Places an order and waits for its end; an interrupt withdraws it.
   * @throws as `until`, and what the order failed of
   */
  order<K extends Order['kind']>(
    kind: K,
    request: Order<K>['request'],
    whenInterrupted: string,
    onPoll: (order: Order<K>) => Promise<void>,
  ): Promise<Order<K>>;
  /** Whether an engine had to be waited for. */
  hasWaited(): boolean;
  /** Carries out at once what was requested, unless another process does. */
  poll(): void;
  /** Leads the projection unless another process does, as what was requested needs a leading process. */
  lead(): Promise<void>;
}

export interface MaintainingOptions {
  readonly projection: Projection;
  readonly reason: string | null;
  readonly json: boolean;
  readonly command: keyof typeof DOING;
}

const DOING = { rebuild: 'rebuilding', rollback: 'rolling back', verification: 'verifying', repair: 'repairing' };

/** Runs `work` in a process that carries orders out as a process with the role `projector` does. */
export async function maintaining<T>(
  { stdout, stderr, signal }: Terminal,
  { config, events, stored, store }: OpenedStores,
  { projection, reason, json, command }: MaintainingOptions,
  work: (maintaining: Maintaining) => Promise<T>,
): Promise<T> {
  const { name } = projection;
  const by = commandLineCaller().user ?? 'cli';
  const holder = `${by} (process ${process.pid}, ${randomUUID().slice(0, 8)})`;
  const parts = followers({ logger: pino({ level: 'silent' }) });
  // What fails though no engine does is a defect, and its trace is worth a line.
  const logger = pino({ level: 'error' }, stderr);
  const role = { events, store, logger, holder, projections: [projection], followers: parts };
  const tools = maintenanceTools(stored, { dir: treeDir(config), keys: findSealKeys(config) ?? [] }, config.dataDir);
  const bar = progressBar(stderr, { doing: `${DOING[command]} ${name}`, unit: 'events' });
  const open = resources();
  let carrier: ReturnType<typeof startMaintenance> | undefined;
  let leading: Promise<unknown> | undefined;
  let waited = false;
  const at = currentTime();
  const requested = { by, at, process: holder, ...(reason === null ? {} : { reason }) };

  function poll(): void {
    // Not before the request: what another command has left is its affair.
    if (carrier === undefined) carrier = open.add(startMaintenance({ ...role, ...tools }));
    else carrier.poll();
  }

  const say = async (action: string, more: object): Promise<void> => {
    if (json) await writeLines(stdout, [jsonLine({ action, projection: name, ...more })]);
  };

  /** What keeps this process from its work, if it has any. */
  function outage(): UnavailableError | undefined {
    const failing = parts.health().find((one) => one.failing);
    return failing && new UnavailableError(failing.why ?? 'an engine does not answer');
  }

  async function until<R>(look: () => Promise<R | undefined>, whenInterrupted: string): Promise<R> {
    let lostAt: number | undefined;
    let saidAt = Number.NEGATIVE_INFINITY;
    for (;;) {
      let lost: UnavailableError | undefined;
      try {
        const found = await look();
        if (found !== undefined) return found;
        lost = outage();
      } catch (error) {
        // Waiting does not bring an altered event back.
        if (!(error instanceof UnavailableError) || error instanceof AlteredEventError) throw error;
        lost = error;
      }
      if (signal.aborted) throw interrupted(whenInterrupted);
      const now = performance.now();
      if (lost === undefined) lostAt = undefined;
      else {
        if (lostAt === undefined && !json)
          await writeLines(stderr, [
            `${printable(lost.message)}: waiting for it; the ${command} of ${name} goes on from where it was`,
          ]);
        lostAt ??= now;
        waited = true;
        if (now - lostAt > MAX_OUTAGE_MS) throw lost;
        if (now - saidAt >= LINE_MS) {
          saidAt = now;
          await say('waiting', { cause: lost.message });
        }
      }
      await pause(POLL_MS, signal);
    }
  }

  try {
    return await work({
      requested,
      bar,
      say,
      write: async (...lines) => (json ? undefined : writeLines(stdout, lines)),
      until,
      async order(kind, request, whenInterrupted, onPoll) {
        const { records } = store;
        const place = async () => maintenance.place(records, kind, name, request, requested);
        const placed = await until(place, whenInterrupted);
        poll();
        const checking = progressBar(stderr, { doing: 'verifying the log', unit: 'events' });
        try {
          const ended = await until(async () => {
            const order = (await maintenance.now(records, placed))?.value ?? { ...placed, state: 'interrupted' };
            if (order.step?.step === 'check') checking(order.step.events, undefined);
            else checking.clear();
            await onPoll(order);
            return order.state === 'running' ? undefined : order;
          }, whenInterrupted);
          if (ended.state === 'failed') throw maintenance.failureOf(ended);
          if (ended.state === 'interrupted') throw new CommandFailure(`the ${kind} of ${name} was withdrawn`);
          return ended;
        } catch (error) {
          // An order that can't be withdrawn now goes on.
          if (signal.aborted) await maintenance.withdraw(records, placed).catch(() => undefined);
          throw error;
        } finally {
          checking.clear();
        }
      },
      hasWaited: () => waited,
      poll,
      async lead() {
        leading ??= startProjector(role).then((projector) => open.add(projector));
        await leading;
      },
    });
  } catch (error) {
    const again = command === 'rebuild' ? 'repeat the command, it goes on from where it was' : 'repeat the command';
    throw commandFailureOf(error, name, again);
  } finally {
    bar.clear();
    await open.close();
  }
}

/**
 * Records who changes a read model's builds and why: before the work, and its end.
 * @throws UnavailableError where the record can't be appended, before any work; what `work` throws
 */
export async function recorded<T>(
  events: EventStore,
  what: string,
  requested: Readonly<Record<string, unknown>>,
  reason: string | null,
  work: () => Promise<T>,
  shown?: (result: T) => number,
): Promise<T> {
  return recordedWork(await cliAccess(events).start(what, requested, { personal: false, reason }), work, shown);
}

const REMEDIES: Readonly<Record<NonNullable<MaintenanceRefusedError['refusal']['remedy']>, (name: string) => string>> =
  {
    abort: (name) => `gift projections rebuild ${name} --abort`,
    audit: () => 'gift audit verify names what was altered',
    rebuild: (name) => `gift projections rebuild ${name}`,
    rollback: (name) => `gift projections rollback ${name}`,
    status: () => 'gift projections status',
    verify: (name) => `gift projections verify ${name}`,
  };

/** Turns an error into a failure that says what to do. `again`: how to repeat the command. */
export function commandFailureOf(error: unknown, name: string, again: string): unknown {
  if (error instanceof MaintenanceRefusedError) {
    const { remedy } = error.refusal;
    return new CommandFailure(remedy === undefined ? error.message : `${error.message} (${REMEDIES[remedy](name)})`);
  }
  // Repeating the command does not help; the error's message says what does.
  if (error instanceof LogSealedError) return error;
  if (error instanceof UnavailableError) {
    const remedy = diskRemedy(error);
    return new CommandFailure(
      `${error.message}: ${remedy === undefined || remedy.endsWith('try again') ? again : `${remedy}; then ${again}`}`,
    );
  }
  return error;
}
