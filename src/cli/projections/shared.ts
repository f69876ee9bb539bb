/** How subcommands request maintenance, watch it, and carry it out where no other process does. */
import pino from 'pino';
import { pause } from '../../lib/async/pause.js';
import { resources } from '../../lib/async/resources.js';
import { currentTime } from '../../lib/clock.js';
import { randomUUID, ticks } from '../../lib/world.js';
import { findSealKeys } from '../../service/keys.js';
import { maintenanceTools } from '../../service/projector/inProcess.js';
import { diskRemedy } from '../../service/startFailure.js';
import { treeDir } from '../../service/tree.js';
import { LogSealedError } from '../../ports/eventStore.js';
import { AlteredEventError, UnavailableError } from '../../ports/unavailable.js';
import {
  type Requested,
  maintenance,
  type MaintenanceOptions,
  MaintenanceRefusedError,
  type Order,
  type Progress,
  type Projection,
  startMaintenance,
  startProjector,
} from '../../runtime/readmodels/index.js';
import { followers } from '../../runtime/supervision/followers.js';
import { recordedWork } from '../../ops/readmodels/orders.js';
import { PROJECTIONS } from '../../projections/index.js';
import { commandLineCaller, cliAccess, reasonOf } from '../exports.js';
import type { OpenedStores } from '../engines.js';
import { jsonLine, printable } from '../output.js';
import { progressBars } from '../progress.js';
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

/** Progress as a line of JSON shows it. */
export function progressShown(progress: Progress): object {
  const { share: _, ...shown } = progress;
  return shown;
}

interface MaintainingOptions {
  readonly projection: Projection;
  readonly reason: string | null;
  readonly json: boolean;
  readonly command: keyof typeof DOING;
}

const DOING = { rebuild: 'rebuilding', rollback: 'rolling back', verification: 'verifying', repair: 'repairing' };

/** A command's maintenance of a read model. Its process carries orders out as one with the role `projector` does. */
export class Maintaining {
  readonly requested: Requested;
  /** Whether an engine had to be waited for. */
  hasWaited = false;
  readonly #terminal: Terminal;
  readonly #opened: OpenedStores;
  readonly #options: MaintainingOptions;
  readonly #bars: ReturnType<typeof progressBars>;
  readonly #parts = followers({ logger: pino({ level: 'silent' }) });
  readonly #role: Omit<MaintenanceOptions, 'checkLog' | 'openScratch'>;
  readonly #running = resources();
  #carrier: ReturnType<typeof startMaintenance> | undefined;
  #leading: Promise<unknown> | undefined;

  constructor(terminal: Terminal, opened: OpenedStores, options: MaintainingOptions) {
    const { projection, reason } = options;
    const by = commandLineCaller().user ?? 'cli';
    const holder = `${by} (process ${process.pid}, ${randomUUID().slice(0, 8)})`;
    this.#terminal = terminal;
    this.#opened = opened;
    this.#options = options;
    this.#bars = progressBars(terminal.stderr);
    this.requested = { by, at: currentTime(), process: holder, ...(reason === null ? {} : { reason }) };
    // What fails though no engine does is a defect, and its trace is worth a line.
    const logger = pino({ level: 'error' }, terminal.stderr);
    const { events, store } = opened;
    this.#role = { events, store, logger, holder, projections: [projection], followers: this.#parts };
  }

  /** Writes a line of JSON, where lines of JSON are requested. */
  async say(action: string, more: object): Promise<void> {
    const { json, projection } = this.#options;
    if (json) await writeLines(this.#terminal.stdout, [jsonLine({ action, projection: projection.name, ...more })]);
  }

  /** Writes lines, where no lines of JSON are requested. */
  async write(...lines: readonly string[]): Promise<void> {
    if (!this.#options.json) await writeLines(this.#terminal.stdout, lines);
  }

  /**
   * Records who changes a read model, and why: before the work, and its end.
   * @throws UnavailableError where the record can't be appended, before any work; what `work` throws
   */
  async recorded<T>(
    details: Readonly<Record<string, unknown>>,
    work: () => Promise<T>,
    shown: (result: T) => number = () => 1,
  ): Promise<T> {
    const { command, projection, reason } = this.#options;
    const record = await cliAccess(this.#opened.events).start(
      `gift projections ${command}`,
      { name: projection.name, ...details },
      { personal: false, reason },
    );
    return recordedWork(record, work, (result) => [shown(result), true]);
  }

  /** Shows the progress of a fold on a terminal; `undefined`: nothing is folded any more. */
  bar(progress: Progress | undefined): void {
    const { command, projection } = this.#options;
    const { events, share = null } = progress ?? {};
    if (events === undefined) this.#bars.clear();
    else this.#bars.show(`${DOING[command]} ${projection.name}`, events, share === null ? undefined : { share });
  }

  /**
   * Polls until `look` returns something. Engines that do not answer are waited for.
   * @throws CommandFailure with `whenInterrupted`; UnavailableError after five minutes
   */
  async until<T>(look: () => Promise<T | undefined>, whenInterrupted: string): Promise<T> {
    const { stderr, signal } = this.#terminal;
    const { command, json, projection } = this.#options;
    let lostAt: number | undefined;
    let saidAt = Number.NEGATIVE_INFINITY;
    for (;;) {
      let lost: UnavailableError | undefined;
      try {
        const found = await look();
        if (found !== undefined) return found;
        lost = this.#outage();
      } catch (error) {
        // Waiting does not bring an altered event back.
        if (!(error instanceof UnavailableError) || error instanceof AlteredEventError) throw error;
        lost = error;
      }
      if (signal.aborted) throw interrupted(whenInterrupted);
      const now = ticks();
      if (lost === undefined) lostAt = undefined;
      else {
        if (lostAt === undefined && !json)
          await writeLines(stderr, [
            `${printable(lost.message)}: waiting for it; the ${command} of ${projection.name} goes on from where it was`,
          ]);
        lostAt ??= now;
        this.hasWaited = true;
        if (now - lostAt > MAX_OUTAGE_MS) throw lost;
        if (now - saidAt >= LINE_MS) {
          saidAt = now;
          await this.say('waiting', { cause: lost.message });
        }
      }
      await pause(POLL_MS, signal);
    }
  }

  /** What keeps this process from its work, if it has any. */
  #outage(): UnavailableError | undefined {
    const failing = this.#parts.health().find((one) => one.failing);
    return failing && new UnavailableError(failing.why ?? 'an engine does not answer');
  }

  /**
   * Places an order and waits for its end; an interrupt withdraws it. A rebuild's order whose engine did not answer is
   * placed again.
   * @throws as `until`, and what the order failed of
   */
  async order<K extends Order['kind']>(
    kind: K,
    request: Order<K>['request'],
    whenInterrupted: string,
    onPoll: (order: Order<K>) => Promise<void> = async () => undefined,
  ): Promise<NonNullable<Order<K>['result']>> {
    const { signal } = this.#terminal;
    const { records } = this.#opened.store;
    const { name } = this.#options.projection;
    let placed: Order<K> | undefined;
    let trouble: Error | undefined;
    try {
      const { state, result } = await this.until(async () => {
        if (placed === undefined) {
          placed = await maintenance.place(records, kind, name, request, this.requested);
          this.poll();
        }
        const order = await maintenance.now(records, placed);
        const { step } = order;
        if (step?.step === 'check') this.#bars.show('verifying the log', step.events, undefined);
        else this.bar(step?.step === 'fold' ? step.progress : undefined);
        await onPoll(order);
        if (order.state === 'failed') {
          if (kind !== 'rebuild' || order.unavailable !== true) throw maintenance.failureOf(order);
          trouble = maintenance.failureOf(order);
          placed = undefined;
          await pause(LINE_MS, signal);
        } else if (step !== null) trouble = undefined;
        if (order.state === 'done' || order.state === 'interrupted') return order;
        if (trouble !== undefined) throw trouble;
        return undefined;
      }, whenInterrupted);
      if (state === 'interrupted') throw new CommandFailure(`the ${kind} of ${name} was withdrawn`);
      if (result === null) throw new Error(`${name}: the ${kind} has no result`);
      return result;
    } catch (error) {
      // An order that can't be withdrawn now goes on.
      if (signal.aborted && placed !== undefined) await maintenance.withdraw(records, placed).catch(() => undefined);
      throw error;
    } finally {
      this.#bars.clear();
    }
  }

  /** Carries out at once what was requested, unless another process does. */
  poll(): void {
    const { config, stored } = this.#opened;
    // Not before the request: what another command has left is its affair.
    if (this.#carrier === undefined) {
      const tree = { dir: treeDir(config), keys: findSealKeys(config) ?? [] };
      const tools = maintenanceTools(stored, tree, config.dataDir);
      this.#carrier = this.#running.add(startMaintenance({ ...this.#role, ...tools }));
    } else this.#carrier.poll();
  }

  /** Leads the projection unless another process does, as what was requested needs a leading process. */
  async lead(): Promise<void> {
    this.#leading ??= startProjector(this.#role).then((projector) => this.#running.add(projector));
    await this.#leading;
  }

  async close(): Promise<void> {
    this.#bars.clear();
    await this.#running.close();
  }
}

/** @throws CommandFailure that says what to do; what else `work` throws */
export async function maintaining<T>(
  terminal: Terminal,
  opened: OpenedStores,
  options: MaintainingOptions,
  work: (maintaining: Maintaining) => Promise<T>,
): Promise<T> {
  const one = new Maintaining(terminal, opened, options);
  try {
    return await work(one);
  } catch (error) {
    const again =
      options.command === 'rebuild' ? 'repeat the command, it goes on from where it was' : 'repeat the command';
    throw commandFailureOf(error, options.projection.name, again);
  } finally {
    await one.close();
  }
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
